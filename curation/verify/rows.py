"""Ids, values and texts of single rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from curation.ids import question_id, turns_sha256
from curation.load import is_placeholder
from curation.rows import source_names
from curation.schema import SENTINEL
from curation.verify.base import Fault, Row, Subject
from sources.base import CATEGORIES, DIFFICULTIES, TIERS, SourceSpec

SPEC_BENCH = "spec_bench"

_HEX64 = re.compile(r"[0-9a-f]{64}")
_REBUILD = "build it again"


def check_ids(subject: Subject) -> Iterator[Fault]:
    """Find ids that occur twice, and ids that are not the digest of config, source and src_id."""
    seen: dict[str, str] = {}
    for config in subject.schemas:
        for row in subject.rows(config, ["question_id", "source", "src_id"]):
            found, place = row["question_id"], f"{row.file} {row.name}"
            if found in seen:
                yield Fault("ids", row.file, row.name, f"its question_id stands at {seen[found]} too", _REBUILD)
            seen.setdefault(found, place)
            if config in subject.sound and found != question_id(config, row["source"], row["src_id"]):
                message = "its question_id is not the one of its config, source and src_id"
                yield Fault("ids", row.file, row.name, message, _REBUILD)


def check_values(subject: Subject) -> Iterator[Fault]:
    """Find values that no build gives: unknown categories, licences of other sources, rows out of order."""
    columns = [
        *("question_id", "category", "difficulty", "multiturn", "turns", "source", "license", "source_revision"),
        *("record_ids", "num_tokens", "pad_tokens", "turns_sha256"),
    ]
    for config in subject.sound:
        last = ("", "")
        for row in subject.rows(config, columns):
            for message in (*_value_messages(config, row), *_source_messages(subject, row)):
                yield Fault("values", row.file, row.name, message, _REBUILD)
            key = (row["category"], row["question_id"])
            if key < last:
                yield Fault("values", row.file, row.name, "out of order: category, then question_id", _REBUILD)
            last = key


def check_texts(subject: Subject) -> Iterator[Fault]:
    """Find placeholder text where text should be, text that may not be published, and text that was changed."""
    columns = ["question_id", "turns", "text_status", "record_ids", "turns_sha256"]
    for config in subject.sound:
        for row in subject.rows(config, columns):
            for message, remedy in _text_messages(subject, row):
                yield Fault("texts", row.file, row.name, message, remedy)


def _value_messages(config: str, row: Row) -> Iterator[str]:
    known = CATEGORIES if config.startswith("qualitative") else TIERS if config.startswith("throughput") else ()
    if (known and row["category"] not in known) or not row["category"]:
        yield f"category {row['category']!r} is none of {config}"
    if row["difficulty"] not in DIFFICULTIES:
        yield f"difficulty {row['difficulty']!r} is none of easy, medium, hard and empty"
    if not row["turns"]:
        yield "it has no turn"
    if row["multiturn"] != (len(row["turns"]) > 1):
        yield f"multiturn is {row['multiturn']} with {len(row['turns'])} turns"
    if row["num_tokens"] < 1 or row["pad_tokens"] < 0:
        yield f"num_tokens {row['num_tokens']} or pad_tokens {row['pad_tokens']} is out of range"
    if not _HEX64.fullmatch(row["turns_sha256"]):
        yield "turns_sha256 is not 64 hex digits"


def _source_messages(subject: Subject, row: Row) -> Iterator[str]:
    names = source_names(row["record_ids"])
    if not names:
        yield "it names no record"
    unknown = [name for name in names if name not in subject.specs]
    if unknown:
        yield f"its record is of {unknown[0]!r}, which is no registered source"
        return
    specs = [subject.specs[name] for name in names]
    own = [spec for spec in specs if spec.source == row["source"]]
    if names and not own:
        yield f"source {row['source']!r} is not the one of its records"
        return
    if own and not any(permits(spec, row["license"]) for spec in own):
        yield f"license {row['license']!r} is not the one of {own[0].name} ({own[0].license.id})"
    built = (subject.manifest or {}).get("sources", {})
    revisions = {built[spec.name]["revision"] for spec in own if spec.name in built}
    if revisions and row["source_revision"] not in revisions:
        yield f"source_revision {row['source_revision']!r} is not the one that was built from"


def permits(spec: SourceSpec, license_id: str) -> bool:
    """Tell whether rows of a source may state a licence: its own, or of a source of many repositories one of theirs."""
    return license_id.lower() in {spec.license.id, *spec.license.spdx.lower().split(" or ")} - {""}


def _text_messages(subject: Subject, row: Row) -> Iterator[tuple[str, str]]:
    turns, status = row["turns"], row["text_status"]
    specs = [subject.specs[name] for name in source_names(row["record_ids"]) if name in subject.specs]
    withheld = [spec for spec in specs if not spec.may_publish]
    if status == "placeholder":
        if any(turn != SENTINEL for turn in turns):
            yield "a placeholder row in which a turn is not the sentinel alone", "withhold every turn of it"
        if specs and not withheld:
            yield "a placeholder row, though every source of it may be published", _REBUILD
    elif status == "full":
        if is_placeholder(turns):
            places = ", ".join(str(i) for i, turn in enumerate(turns) if is_placeholder([turn]))
            yield f"placeholder text in turn {places} of a row that is not a placeholder", "fill it, or build again"
        elif turns_sha256(turns) != row["turns_sha256"]:
            yield "its text is not the one of its turns_sha256", _REBUILD
        for spec in withheld:
            yield f"text of {spec.name}, which may not be published: {spec.publish_reason}", "withhold the row"
    else:
        yield f"text_status {status!r} is neither full nor placeholder", _REBUILD
