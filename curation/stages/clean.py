"""Normalise records, drop those that cannot be candidates, doubt their language, and cap their number."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from curation.kernels.text import is_blank, normalize_and_tell, storable
from curation.language import Detected, can_detect, detect_languages, same_language
from curation.recipe import CandidatesConfig, FilterConfig
from curation.stages.base import Drop, StageResult, without
from sources.base import Record, seeded_int

logger = logging.getLogger(__name__)

FILTER = "filter"
CANDIDATES = "candidates"

Verdict = Literal["code", "too_short", "unsupported", "not_sampled", "unsure", "undeclared", "agrees", "differs"]
VERDICTS: tuple[Verdict, ...] = (
    "code",  # no natural language to judge
    "too_short",
    "unsupported",  # the detector does not know the declared language
    "not_sampled",  # enough others of its source and language are judged
    "unsure",  # the detector's probability is too low
    "undeclared",  # the detector is sure, the source says nothing
    "agrees",
    "differs",  # a warning; the declared language wins
)


@dataclass(frozen=True, slots=True)
class LanguageVerdict:
    """What the detector says of one record; `detected` and `probability` are "" and None where it was not asked."""

    record_id: str
    declared: str
    verdict: Verdict
    detected: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class FilterReport:
    """How many records got which verdict, in the order of `VERDICTS`, and the warnings, by record id.

    No verdict drops a record.
    """

    counts: dict[Verdict, int]
    warnings: tuple[LanguageVerdict, ...]

    @property
    def num_not_judged(self) -> int:
        """Records that were code, too short, not sampled, of an unsupported language, or too unsure to judge."""
        return sum(n for verdict, n in self.counts.items() if verdict not in ("undeclared", "agrees", "differs"))


def normalize_record(record: Record) -> tuple[Record, tuple[str, ...]]:
    """Return the record as it is stored, and the names of the changes to its texts, sorted.

    Texts follow `kernels.text.normalize_text`. Ids lose only what cannot be stored: in another normal form they would
    no longer name the record at its source.
    """
    changes: set[str] = set()

    def clean(text: str) -> str:
        normal, made = normalize_and_tell(text)
        changes.update(made)
        return normal

    normal = dataclasses.replace(
        record,
        native_id=storable(record.native_id),
        turns=tuple(clean(turn) for turn in record.turns),
        text=clean(record.text),
        sub_category=clean(record.sub_category),
        language=clean(record.language),
        members=tuple(storable(member) for member in record.members),
    )
    return normal, tuple(sorted(changes))


def normalize_records(records: Iterable[Record], changes: dict[str, int] | None = None) -> Iterator[Record]:
    """Yield the records as they are stored; `changes` counts, by the name of a change, the records that it touched."""
    for record in records:
        normal, made = normalize_record(record)
        if changes is not None:
            for name in made:
                changes[name] = changes.get(name, 0) + 1
        yield normal


def filter_records(table: pa.Table, config: FilterConfig, *, workers: int = 1) -> tuple[StageResult, FilterReport]:
    """Return the records that can be candidates, and what the language detector says of them.

    Parameters
    ----------
    table
        Records of `POOL_SCHEMA`, normalised.
    config
        Limits. A record is dropped if its own text or one of its turns shows nothing, or if it is shorter or longer
        than they allow.
    workers
        Processes for the detector; the result does not depend on it.
    """
    drops = []
    columns = (table.column(name).to_pylist() for name in ("record_id", "text", "turns"))
    for record_id, text, turns in zip(*columns, strict=True):
        drop = _unfit(record_id, text, turns, config)
        if drop is not None:
            drops.append(drop)
    left = without(table, drops)
    logger.info("filter: %d -> %d records", table.num_rows, left.num_rows)
    return StageResult(left, tuple(drops)), _report(judge_languages(left, config, workers=workers))


def judge_languages(table: pa.Table, config: FilterConfig, *, workers: int = 1) -> list[LanguageVerdict]:
    """Return the detector's verdict on each record, in the order of the table."""
    names = ("record_id", "source", "language", "is_code", "text")
    rows = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    asked = [
        (record_id, source, language)
        for record_id, source, language, is_code, text in rows
        if not _unasked(language, is_code, text, config)
    ]
    sampled = _lowest_hashes(asked, config.language_max_judged, "language", config.seed)
    texts = [text for record_id, *_, text in rows if record_id in sampled]
    detections = iter(detect_languages(texts, config.seed, workers=workers))
    verdicts = []
    for record_id, _, language, is_code, text in rows:
        if record_id in sampled:
            verdicts.append(_verdict(record_id, language, next(detections), config))
        else:
            reason = _unasked(language, is_code, text, config) or "not_sampled"
            verdicts.append(LanguageVerdict(record_id, language, reason))
    return verdicts


def cap_candidates(table: pa.Table, config: CandidatesConfig) -> StageResult:
    """Return at most `max_per_source_language` records of each source and language: those of the lowest seeded hash."""
    names = ("record_id", "source", "language")
    rows = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    kept = _lowest_hashes(rows, config.max_per_source_language, "candidates", config.seed)
    limit = f"max_per_source_language={config.max_per_source_language}"
    drops = tuple(Drop(record_id, CANDIDATES, "over_cap", limit) for record_id, *_ in rows if record_id not in kept)
    logger.info("candidates: %d -> %d records", table.num_rows, table.num_rows - len(drops))
    return StageResult(without(table, drops), drops)


def _unfit(record_id: str, text: str, turns: list[str], config: FilterConfig) -> Drop | None:
    if is_blank(text) or any(is_blank(turn) for turn in turns):
        return Drop(record_id, FILTER, "empty")
    if len(text) < config.min_chars:
        return Drop(record_id, FILTER, "too_short", f"min_chars={config.min_chars}", len(text))
    num_chars = sum(len(turn) for turn in turns)
    if num_chars > config.max_chars:
        return Drop(record_id, FILTER, "too_long", f"max_chars={config.max_chars}", num_chars)
    return None


def _unasked(language: str, is_code: bool, text: str, config: FilterConfig) -> Verdict | None:
    """Return why the detector is not asked about a text, or None if it is."""
    if is_code:
        return "code"
    if len(text) < config.language_min_chars:
        return "too_short"
    if language and not can_detect(language):
        return "unsupported"
    return None


def _verdict(record_id: str, declared: str, found: Detected, config: FilterConfig) -> LanguageVerdict:
    verdict: Verdict = "agrees"
    if found.probability < config.language_warning_from:
        verdict = "unsure"
    elif not declared:
        verdict = "undeclared"
    elif not same_language(declared, found.language):
        verdict = "differs"
    return LanguageVerdict(record_id, declared, verdict, found.language, found.probability)


def _report(verdicts: list[LanguageVerdict]) -> FilterReport:
    counts = dict.fromkeys(VERDICTS, 0)
    for verdict in verdicts:
        counts[verdict.verdict] += 1
    warnings = sorted((v for v in verdicts if v.verdict == "differs"), key=lambda v: v.record_id)
    if warnings:
        logger.warning(
            "filter: %d records may not be in their declared language, e.g. %s (declared %s, looks like %s)",
            len(warnings),
            warnings[0].record_id,
            warnings[0].declared,
            warnings[0].detected,
        )
    return FilterReport(counts, tuple(warnings))


def _lowest_hashes(rows: Iterable[tuple[str, str, str]], limit: int, decision: str, seed: int) -> frozenset[str]:
    """Return the ids of at most `limit` rows (id, source, language) of each source and language."""
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for record_id, source, language in rows:
        rank = seeded_int(1 << 63, decision, str(seed), record_id)
        groups.setdefault((source, language), []).append((rank, record_id))
    return frozenset(record_id for group in groups.values() for _, record_id in sorted(group)[:limit])
