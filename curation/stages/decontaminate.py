"""Candidates that stand in a training set, alone or inside a longer text: exactly, in another format, or nearly.

The kernel and the classes are those of `speedbench audit` (docs/audit.md), so that a build drops what an audit of the
same set against its splits would call contaminated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from curation.kernels.audit_index import OK, build_index
from curation.kernels.audit_overlap import find_overlaps
from curation.kernels.text import exact_key, is_blank, normalize_text
from curation.kernels.tokens import tokenize
from curation.recipe import DecontaminateConfig
from curation.stages.base import Drop, StageResult, without

logger = logging.getLogger(__name__)

DECONTAMINATE = "decontaminate"
EXACT, FORMAT_ONLY, NEAR = "contaminated_exact", "contaminated_format_only", "contaminated_near"
_REASONS = {"exact": EXACT, "format": FORMAT_ONLY, "near": NEAR}  # by the audit's class
_STRENGTH = {EXACT: 0, FORMAT_ONLY: 1, NEAR: 2}
_BLOCK_CHARS = 1 << 24
_MAX_FORMAT_GROWTH = 4  # by white space and punctuation, of a short text in another format


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
        Of these, texts that show nothing, which can match nothing.
    flags
        The strongest match of each contaminated record, where the recipe flags and does not drop.
    """

    num_texts: dict[str, int] = field(default_factory=dict)
    num_empty: dict[str, int] = field(default_factory=dict)
    flags: tuple[Drop, ...] = ()


def decontaminate(
    table: pa.Table, references: Iterable[ReferenceText], config: DecontaminateConfig
) -> tuple[StageResult, DecontaminateReport]:
    """Return the records that stand in no text of the references, or all of them with flags.

    Of several matches of a record the strongest is told: exact, then format only, then the highest coverage; then the
    first set and row. A record that the kernel cannot audit, for it is too short or all template, matches where a text
    of the references is the same, or has the same tokens.

    Parameters
    ----------
    table
        Records of `POOL_SCHEMA`.
    references
        Texts of the sets, in any order; read once, and held a block at a time.
    config
        Whether to drop or to flag.
    """
    report = DecontaminateReport()
    matches: dict[str, Drop] = {}
    search = _Search(table)
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

    def __init__(self, table: pa.Table) -> None:
        self.ids: list[str] = table.column("record_id").to_pylist()
        self.texts: list[str] = table.column("text").to_pylist()
        self.index = build_index(self.texts, range(len(self.texts)))
        self.unaudited: dict[str, list[int]] = {}
        for i in np.flatnonzero(self.index.status != OK).tolist():
            self.unaudited.setdefault(_tokens_key(self.texts[i]), []).append(i)
        self.longest_unaudited = max((len(self.texts[i]) for same in self.unaudited.values() for i in same), default=0)

    def matches(self, block: list[ReferenceText], report: DecontaminateReport) -> Iterator[Drop]:
        texts = [normalize_text(reference.text) for reference in block]
        for reference, text in zip(block, texts, strict=True):
            report.num_texts[reference.reference] = report.num_texts.get(reference.reference, 0) + 1
            if is_blank(text):
                report.num_empty[reference.reference] = report.num_empty.get(reference.reference, 0) + 1
            elif len(text) <= _MAX_FORMAT_GROWTH * self.longest_unaudited:
                yield from self._whole(reference, text)
        for hit in find_overlaps(texts, self.index):
            if hit.kind in _REASONS:
                yield self._match(hit.prompt, _REASONS[hit.kind], block[hit.document], hit.coverage)

    def _whole(self, reference: ReferenceText, text: str) -> Iterator[Drop]:
        """Yield the records that the kernel cannot audit and that this text is, letter by letter or token by token."""
        for item in self.unaudited.get(_tokens_key(text), ()):
            same = exact_key(text) == exact_key(self.texts[item])
            yield self._match(item, EXACT if same else FORMAT_ONLY, reference, 1.0)

    def _match(self, item: int, reason: str, reference: ReferenceText, score: float) -> Drop:
        return Drop(self.ids[item], DECONTAMINATE, reason, f"{reference.reference}:{reference.row}", score)


def _tokens_key(text: str) -> str:
    """Return what texts of the same tokens share; a text without a token is its own key."""
    return "\x1f".join(tokenize(text)) or exact_key(text)


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
