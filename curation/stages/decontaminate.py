"""Candidates that stand in a training set: exactly, in another format, or nearly."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from curation.kernels.shingles import ShingleSets, shingle_sets
from curation.kernels.text import exact_key, normalize_text
from curation.kernels.tokens import tokenize
from curation.recipe import DecontaminateConfig, DedupConfig
from curation.stages.base import Drop, StageResult, without
from curation.stages.matching import near_index

logger = logging.getLogger(__name__)

DECONTAMINATE = "decontaminate"
EXACT, FORMAT_ONLY, NEAR = "contaminated_exact", "contaminated_format_only", "contaminated_near"
_STRENGTH = {EXACT: 0, FORMAT_ONLY: 1, NEAR: 2}
_BLOCK_CHARS = 1 << 24


@dataclass(frozen=True, slots=True)
class ReferenceText:
    """One text of a training set, its place there, and the name of the set in the recipe."""

    reference: str
    row: str
    text: str


@dataclass(slots=True)
class DecontaminateReport:
    """What was read, and what was found.

    Attributes
    ----------
    num_texts
        Texts read of each reference set.
    num_empty
        Of these, texts without a token, which can match nothing.
    flags
        The strongest match of each contaminated record, where the recipe flags and does not drop.
    """

    num_texts: dict[str, int] = field(default_factory=dict)
    num_empty: dict[str, int] = field(default_factory=dict)
    flags: tuple[Drop, ...] = ()


def decontaminate(
    table: pa.Table, references: Iterable[ReferenceText], config: DecontaminateConfig, dedup: DedupConfig
) -> tuple[StageResult, DecontaminateReport]:
    """Return the records that no text of the references equals, or all of them with flags.

    A record matches a text exactly (`kernels.text.exact_key`), in another format (the same tokens in the same order:
    only case, white space, width and punctuation differ), or nearly (the Jaccard rule of dedup). Of several matches the
    strongest is told: exact, then format, then the highest similarity; then the first set and row.

    Parameters
    ----------
    table
        Records of `POOL_SCHEMA`.
    references
        Texts of the sets, in any order; read once, and held a block at a time.
    config, dedup
        Whether to drop or to flag, and what counts as near.
    """
    report = DecontaminateReport()
    matches: dict[str, Drop] = {}
    search = _Search(table, dedup)
    for block in _blocks(references):
        for match in search.matches(block, report):
            best = matches.setdefault(match.record_id, match)
            if _rank(match) < _rank(best):
                matches[match.record_id] = match
    found = tuple(matches[i] for i in table.column("record_id").to_pylist() if i in matches)
    logger.info("%s: %d of %d records stand in a reference set", DECONTAMINATE, len(found), table.num_rows)
    if config.action == "flag":
        report.flags = found
        return StageResult(table, ()), report
    return StageResult(without(table, found), found), report


class _Search:
    """The candidates, ready to be looked up."""

    def __init__(self, table: pa.Table, dedup: DedupConfig) -> None:
        self.ids: list[str] = table.column("record_id").to_pylist()
        self.texts: list[str] = table.column("text").to_pylist()
        self.ngram_size = dedup.ngram_size
        self.sets = shingle_sets(self.texts, dedup.ngram_size)
        self.index = near_index(self.sets, dedup)
        self.by_key: dict[str, list[int]] = {}
        self.by_sequence: dict[int, list[int]] = {}
        for i, (text, sequence) in enumerate(zip(self.texts, self.sets.sequences.tolist(), strict=True)):
            self.by_key.setdefault(exact_key(text), []).append(i)
            if sequence:
                self.by_sequence.setdefault(sequence, []).append(i)

    def matches(self, block: list[ReferenceText], report: DecontaminateReport) -> Iterator[Drop]:
        texts = [normalize_text(reference.text) for reference in block]
        sets = shingle_sets(texts, self.ngram_size)
        for reference, sequence in zip(block, sets.sequences.tolist(), strict=True):
            report.num_texts[reference.reference] = report.num_texts.get(reference.reference, 0) + 1
            if not sequence:
                report.num_empty[reference.reference] = report.num_empty.get(reference.reference, 0) + 1
        yield from self._equal(block, texts, sets)
        for query, item, similarity in self.index.near_to(sets):
            yield self._match(item, NEAR, block[query], similarity)

    def _equal(self, block: list[ReferenceText], texts: list[str], sets: ShingleSets) -> Iterator[Drop]:
        for reference, text, sequence in zip(block, texts, sets.sequences.tolist(), strict=True):
            key = exact_key(text)
            for item in self.by_key.get(key, ()) if key else ():
                yield self._match(item, EXACT, reference, 1.0)
            for item in self.by_sequence.get(sequence, ()) if sequence else ():
                # The hash of a sequence finds, the tokens decide.
                if tokenize(text) == tokenize(self.texts[item]):
                    yield self._match(item, FORMAT_ONLY, reference, 1.0)

    def _match(self, item: int, reason: str, reference: ReferenceText, score: float) -> Drop:
        return Drop(self.ids[item], DECONTAMINATE, reason, f"{reference.reference}:{reference.row}", score)


def _rank(match: Drop) -> tuple[int, float, str]:
    return _STRENGTH[match.reason], -(match.score or 0.0), match.against


def _blocks(references: Iterable[ReferenceText]) -> Iterator[list[ReferenceText]]:
    """Cut the texts into blocks of about `_BLOCK_CHARS`, so that memory does not grow with the set."""
    block: list[ReferenceText] = []
    size = 0
    for reference in references:
        block.append(reference)
        size += len(reference.text)
        if size >= _BLOCK_CHARS:
            yield block
            block, size = [], 0
    if block:
        yield block
