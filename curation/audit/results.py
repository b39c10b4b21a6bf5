"""From the units of a run to its results: one table of pairs, and the counts that the report and the card state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.audit.arrow import arrow_numbers, arrow_strings, arrow_table, equals, read_plain
from curation.audit.errors import AuditError
from curation.audit.index import BenchmarkIndex
from curation.audit.plan import Plan
from curation.audit.run import hits_path, marker_path, read_plan
from curation.kernels.audit_index import OK, STATUS, TOO_SHORT
from curation.kernels.audit_rules import CLASSES, COMMON_DOCUMENTS, CONTAMINATED, MIN_NEAR_TOKENS
from curation.store import write_json, write_table

HITS_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("row", pa.int64()),
        ("document_id", pa.string()),
        ("config", pa.string()),
        ("question_id", pa.string()),
        ("turn", pa.int32()),
        ("category", pa.string()),
        ("source", pa.string()),
        ("class", pa.string()),
        ("class_alone", pa.string()),
        ("coverage", pa.float64()),
        ("longest_run", pa.int32()),
        ("begin", pa.int64()),
        ("end", pa.int64()),
        ("snippet", pa.string()),
        ("snippet_begin", pa.int32()),
        ("snippet_end", pa.int32()),
    ]
)
"""One row a pair of document and prompt turn.

`row` counts from 1, in a JSONL file it is the line; `begin` and `end` are characters of the document's text.
`class_alone` is what the pair would be if no other document held the prompt.
"""

PROMPTS_SCHEMA = pa.schema(
    [
        ("prompt", pa.int32()),
        ("config", pa.string()),
        ("question_id", pa.string()),
        ("turn", pa.int32()),
        ("category", pa.string()),
        ("source", pa.string()),
        ("status", pa.string()),
        ("num_tokens", pa.int64()),
        ("words", pa.float64()),
        ("excerpt", pa.string()),
    ]
)
"""The prompts that a run looks for: what merging and the report need of the benchmark."""

_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class Results:
    """Pairs, prompts and counts of a finished audit."""

    plan: Plan
    hits: pa.Table
    prompts: pa.Table
    summary: dict[str, Any]


def write_prompts(out: Path, index: BenchmarkIndex, min_tokens: int = 0) -> None:
    """Write the prompts beside the plan; `min_tokens` is the least that the rule can judge."""
    overlap, owners = index.overlap, index.owners
    prompt = np.array(owners.column("prompt").to_pylist(), np.int32)
    tokens = overlap.num_tokens[prompt]
    status = np.where((overlap.status[prompt] == OK) & (tokens < min_tokens), TOO_SHORT, overlap.status[prompt])
    excerpts = arrow_strings([text[:_EXCERPT] for text in overlap.texts[:]], pa.string())
    facts = {
        "status": arrow_strings(STATUS, pa.string()).take(arrow_numbers(status)),
        "num_tokens": arrow_numbers(tokens),
        "words": arrow_numbers(overlap.units[prompt]),
        "excerpt": excerpts.take(arrow_numbers(prompt)),
    }
    columns = [facts[name] if name in facts else owners.column(name) for name in PROMPTS_SCHEMA.names]
    write_table(out / "prompts.parquet", pa.Table.from_arrays(columns, schema=PROMPTS_SCHEMA))


def merge(folders: Sequence[Path]) -> Results:
    """Put the units of one audit together, wherever they ran; the order and number of folders make no difference.

    Raises
    ------
    AuditError
        If the folders are of different audits, or a unit is missing.
    """
    plan = read_plan(folders[0])
    for folder in folders[1:]:
        if read_plan(folder).digest() != plan.digest():
            raise AuditError(f"{folder}: is of another audit than {folders[0]}; merge shards of one run only")
    homes = [_home(folders, unit.number) for unit in plan.units]
    missing = [unit.number for unit, home in zip(plan.units, homes, strict=True) if home is None]
    if missing:
        some = ", ".join(map(str, missing[:5]))
        raise AuditError(
            f"{len(missing)} of {len(plan.units)} units are missing (first {some}); run their shards again"
        )
    prompts = read_plain(folders[0] / "prompts.parquet")
    markers = [_read_marker(home, i) for i, home in enumerate(homes) if home is not None]
    found = list(_unit_rows(plan, [home for home in homes if home is not None], markers))
    candidates, coverage = _semantic(folders)
    hits = _pairs([*found, *candidates], prompts)
    summary = _summary(plan, markers, hits, prompts)
    return Results(plan, hits, prompts, summary | ({"semantic": coverage} if coverage else {}))


def write_results(out: Path, results: Results) -> None:
    """Write `hits.parquet` and `summary.json`."""
    write_table(out / "hits.parquet", results.hits)
    write_json(out / "summary.json", results.summary)


def _home(folders: Sequence[Path], number: int) -> Path | None:
    return next((folder for folder in folders if marker_path(folder, number).is_file()), None)


def _read_marker(home: Path, number: int) -> dict[str, Any]:
    try:
        marker: dict[str, Any] = json.loads(marker_path(home, number).read_text("utf-8"))
    except ValueError:
        raise AuditError(f"{marker_path(home, number)}: is damaged; delete it and run its shard again") from None
    return marker


def _semantic(folders: Sequence[Path]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    for folder in folders:
        if (folder / "semantic.json").is_file():
            coverage = json.loads((folder / "semantic.json").read_text("utf-8"))
            return read_plain(folder / "semantic.parquet").to_pylist(), coverage
    return [], {}


def _pairs(found: Sequence[dict[str, Any]], prompts: pa.Table) -> pa.Table:
    named = prompts.filter(
        pc.is_in(prompts.column("prompt"), arrow_numbers(np.array(sorted({hit["prompt"] for hit in found}), np.int32)))
    )
    words = dict(zip(named.column("prompt").to_pylist(), named.column("words").to_pylist(), strict=True))
    common = _common_prompts(found, words)
    owners: dict[int, list[dict[str, Any]]] = {}
    for owner in named.select(["prompt", "config", "question_id", "turn", "category", "source"]).to_pylist():
        owners.setdefault(owner.pop("prompt"), []).append(owner)
    rows: list[dict[str, Any]] = []
    for hit in found:
        prompt, alone = hit.pop("prompt"), hit.pop("kind")
        kind = alone
        if (prompt, _commonness(alone, hit["coverage"], words[prompt])) in common:
            kind = "common_text"
        hit["longest_run"] = hit.pop("run")
        rows.extend({**hit, **owner, "class": kind, "class_alone": alone} for owner in owners[prompt])
    table = arrow_table(rows, HITS_SCHEMA)
    keys = ("file", "row", "config", "question_id", "turn", "class")
    return table.sort_by([(key, "ascending") for key in keys])


def _unit_rows(plan: Plan, homes: Sequence[Path], markers: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    before, file = 0, -1
    for unit, home, marker in zip(plan.units, homes, markers, strict=True):
        if unit.file != file:
            before, file = 0, unit.file
        for row in read_plain(hits_path(home, unit.number)).to_pylist():
            if row["kind"] != "near_miss":
                yield {**row, "row": row["row"] + before, "file": plan.files[file].path}
        before += marker["rows"]


def _commonness(kind: str, coverage: float, words: float) -> str:
    """Say in which way a pair may be common text; "" if it cannot."""
    if kind in ("near", "number_variant", "partial") and coverage < 1:
        return "in part"
    return "phrase" if kind in CONTAMINATED and words < MIN_NEAR_TOKENS else ""


def _common_prompts(found: Iterable[dict[str, Any]], words: dict[int, float]) -> set[tuple[int, str]]:
    """Prompts that so many documents hold in part, or as a short phrase, that no single one is evidence."""
    documents: dict[tuple[int, str], set[tuple[str, int]]] = {}
    for hit in found:
        way = _commonness(hit["kind"], hit["coverage"], words[hit["prompt"]])
        if way:
            documents.setdefault((hit["prompt"], way), set()).add((hit["file"], hit["row"]))
    return {key for key, where in documents.items() if len(where) > COMMON_DOCUMENTS}


def _summary(plan: Plan, markers: Sequence[dict[str, Any]], hits: pa.Table, prompts: pa.Table) -> dict[str, Any]:
    flagged = hits.filter(pc.is_in(hits.column("class"), arrow_strings(CONTAMINATED, pa.string())))
    auditable = prompts.filter(equals(prompts.column("status"), "auditable"))
    return {
        "settings": plan.settings,
        "benchmark": {
            "questions": _distinct(prompts, ["config", "question_id"]),
            "prompts": len(prompts),
            "auditable_prompts": len(auditable),
            "not_auditable": _counts(prompts, "status", leave_out="auditable"),
            "contaminated_questions": _distinct(flagged, ["config", "question_id"]),
            "contaminated_prompts": _distinct(flagged, ["config", "question_id", "turn"]),
        },
        "corpus": _corpus_summary(plan, markers, flagged),
        "pairs": {kind: n for kind in CLASSES if (n := int(pc.sum(equals(hits.column("class"), kind)).as_py() or 0))},
        "by_class": {kind: _extent(hits, "class", kind) for kind in CLASSES},
        "by_category": {name: _extent(flagged, "category", name) for name in _values(prompts, "category")},
        "by_config": {name: _extent(flagged, "config", name) for name in _values(prompts, "config")},
        "by_source": {name: _extent(flagged, "source", name) for name in _values(prompts, "source")},
    }


def _corpus_summary(plan: Plan, markers: Sequence[dict[str, Any]], flagged: pa.Table) -> dict[str, Any]:
    files = _files(plan, markers)
    documents = _distinct_rows(flagged, ["file", "row"])
    per_file = Counter(file for file, _row in documents)
    for entry in files:
        entry["contaminated_documents"] = per_file[entry["file"]]
    totals: dict[str, int] = {}
    for entry in files:
        for reason, (count, _) in entry["skipped"].items():
            totals[reason] = totals.get(reason, 0) + count
    return {
        "files": len(files),
        "rows": sum(m["rows"] for m in markers),
        "documents": sum(m["documents"] for m in markers),
        "num_bytes": sum(m["num_bytes"] for m in markers),
        "contaminated_documents": len(documents),
        "skipped": dict(sorted(totals.items())),
        "passed_over": [{"file": path, "reason": reason} for path, reason in plan.passed_over],
        "by_file": files,
    }


def _files(plan: Plan, markers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the counts of each file; first rows count from the beginning of the file."""
    entries: list[dict[str, Any]] = [
        {"file": f.path, "rows": 0, "documents": 0, "num_bytes": 0, "skipped": {}, "repaired": {}} for f in plan.files
    ]
    for unit, marker in zip(plan.units, markers, strict=True):
        entry = entries[unit.file]
        for what in ("skipped", "repaired"):
            for reason, (count, first) in sorted(marker[what].items()):
                before, row = entry[what].get(reason, (0, first + entry["rows"]))
                entry[what][reason] = (before + count, row)
        for what in ("rows", "documents", "num_bytes"):
            entry[what] += marker[what]
    return entries


def _extent(hits: pa.Table, column: str, value: str) -> dict[str, int]:
    part = hits.filter(equals(hits.column(column), value))
    return {
        "pairs": len(part),
        "documents": _distinct(part, ["file", "row"]),
        "prompts": _distinct(part, ["config", "question_id", "turn"]),
    }


def _distinct(table: pa.Table, names: Sequence[str]) -> int:
    return len(_distinct_rows(table, names))


def _distinct_rows(table: pa.Table, names: Sequence[str]) -> set[tuple[Any, ...]]:
    return set(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _values(table: pa.Table, name: str) -> list[str]:
    return sorted(pc.unique(table.column(name)).to_pylist())


def _counts(table: pa.Table, name: str, leave_out: str) -> dict[str, int]:
    return {v: c for v, c in sorted(Counter(table.column(name).to_pylist()).items()) if v != leave_out}
