"""Compare a prompt with a stretch of a document, and say what the pair is."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_candidates import Candidates
from curation.kernels.audit_fold import fold_character
from curation.kernels.audit_index import OverlapIndex
from curation.kernels.audit_rules import ADAPTIVE, Rule, near_coverage, partial_run
from curation.kernels.audit_tokens import Batch

_NO_LETTERS = re.compile(r"[\W_]+", re.ASCII)
_ASCII_SYMBOLS = frozenset("*/%&@#^~|\\_`$+=<>")
_MINUS = re.compile(r"(?<=[\w)\]])\s*[-\u2212\u2013]\s*(?=[\d(])")


@dataclass(frozen=True, slots=True)
class Hit:
    """One pair of document and prompt.

    Attributes
    ----------
    document, prompt
        Indices into the batch and the index.
    kind
        One of `audit_rules.CLASSES`, or `near_miss` for a pair below every threshold.
    coverage
        Share of the prompt's weighted tokens found, in order, in (0, 1].
    run
        Weighted tokens in a row, the most.
    begin, end
        Half-open character span in the document's original text.
    """

    document: int
    prompt: int
    kind: str
    coverage: float
    run: int
    begin: int
    end: int


def classify(
    batch: Batch,
    candidates: Candidates,
    row: int,
    index: OverlapIndex,
    rule: Rule = ADAPTIVE,
    *,
    near_misses: bool = True,
) -> Hit | None:
    """Compare one candidate pair; None for a near miss if these are not wanted."""
    pair = _Pair(batch, candidates, row, index)
    if rule.ngram and pair.run >= rule.ngram:
        return pair.hit("ngram", pair.coverage_of_run(), *pair.run_span())
    if rule.ngram:
        return pair.hit("near_miss", pair.coverage_of_run(), *pair.run_span()) if near_misses else None
    if pair.is_full:
        return pair.hit(_full_kind(pair), 1.0, pair.at, pair.at + pair.n)
    coverage = float(candidates.aligned[row])
    if index.stride[pair.prompt] > 1:
        coverage = max(coverage, float(pair.equal.mean()))
    span = int(candidates.begin[row]), int(candidates.end[row])
    if pair.differs_by_numbers():
        return pair.hit("number_variant", coverage, pair.at, pair.at + pair.n)
    size = (pair.num_weighted, float(index.units[pair.prompt]), pair.n)
    if coverage >= near_coverage(*size):
        return pair.hit("near", coverage, *span)
    if pair.run >= partial_run(*size):
        return pair.hit("partial", max(coverage, pair.coverage_of_run()), *pair.run_span())
    return pair.hit("near_miss", coverage, *span) if near_misses else None


class _Pair:
    """A prompt laid along a document at the diagonal of its longest shared run."""

    def __init__(self, batch: Batch, c: Candidates, row: int, index: OverlapIndex) -> None:
        self.batch, self.index = batch, index
        self.document, self.prompt = int(c.document[row]), int(c.prompt[row])
        self.mine = index.tokens(self.prompt)
        self.weights = index.weights(self.prompt)
        self.num_weighted = int(index.num_weighted[self.prompt])
        self.n = len(self.mine)
        self.at = int(c.diagonal[row])
        self.doc_low, self.doc_high = (int(x) for x in batch.tokens.first[self.document : self.document + 2])
        self.equal = self._equal()
        self.run_begin, self.run = _longest_run(self.equal & self.weights)

    def _equal(self) -> NDArray[np.bool_]:
        equal = np.zeros(self.n, np.bool_)
        a, b = max(self.at, self.doc_low), min(self.at + self.n, self.doc_high)
        equal[a - self.at : b - self.at] = self.batch.tokens.hashes[a:b] == self.mine[a - self.at : b - self.at]
        return equal

    @property
    def is_full(self) -> bool:
        return bool(self.equal.all())

    def coverage_of_run(self) -> float:
        return self.run / max(self.num_weighted, 1)

    def run_span(self) -> tuple[int, int]:
        begin = self.at + self.run_begin
        return begin, begin + max(self.run, 1)

    def differs_by_numbers(self) -> bool:
        """Tell whether every token that differs is a number on both sides."""
        if self.at < self.doc_low or self.at + self.n > self.doc_high:
            return False
        places = np.flatnonzero(~self.equal)
        if 2 * len(places) > self.n:
            return False
        if not self.index.numeric(self.prompt)[places].all():
            return False
        return all(_is_number(self.batch.text(self.at + int(i), self.at + int(i) + 1)) for i in places)

    def hit(self, kind: str, coverage: float, begin: int, end: int) -> Hit:
        begin = min(max(begin, self.doc_low), self.doc_high - 1)
        end = max(begin + 1, min(end, self.doc_high))
        span = self.batch.character_span(self.document, begin, end)
        return Hit(self.document, self.prompt, kind, coverage, self.run, *span)


def _longest_run(equal: NDArray[np.bool_]) -> tuple[int, int]:
    """First place and length of the longest run of true entries; (0, 0) if there is none."""
    runs = [len(run) for run in equal.tobytes().split(b"\0")]
    length = max(runs)
    best = runs.index(length)
    return (sum(runs[:best]) + best, length) if length else (0, 0)


def _full_kind(pair: _Pair) -> str:
    """Tell exact, format and near copies apart once all tokens agree."""
    text = pair.batch.text(pair.at, pair.at + pair.n)
    prompt = pair.index.texts[pair.prompt]
    # Signs before the first and behind the last token belong to the prompt, too.
    around = _stretch(
        pair.batch, pair.document, pair.at, pair.at + pair.n, margin=len(prompt.encode("utf-8", "replace")) + 64
    )
    if _plain(prompt) in _plain(around):
        return "exact"
    core = _core(prompt)
    if _letters(core) == _letters(text) and _symbols(text) in ((), _symbols(core)):
        return "format"
    return "near"


def _stretch(batch: Batch, document: int, begin: int, end: int, *, margin: int) -> str:
    a, b = batch.byte_span(begin, end)
    low, high = int(batch.begin[document]), int(batch.end[document])
    raw = batch.raw[max(low, a - margin) : min(high, b + margin)]
    return raw.tobytes().decode("utf-8", "ignore")


def _is_number(text: str) -> bool:
    return "".join(map(fold_character, text)).isdigit()


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _core(text: str) -> str:
    """Return the text from its first to its last letter or digit."""
    first = next((i for i, c in enumerate(text) if _is_letter(c)), len(text))
    last = next((i for i in range(len(text) - 1, first, -1) if _is_letter(text[i])), first)
    return text[first : last + 1]


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"


def _letters(text: str) -> str:
    if text.isascii():
        return _NO_LETTERS.sub("", text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LNM")


def _symbols(text: str) -> tuple[str, ...]:
    """Return the signs that carry meaning, in order: `x << 2` is not `x >> 2`, but a comma more is only form."""
    folded = unicodedata.normalize("NFKC", text)
    # Between a word and a number a dash is a minus; between words it is punctuation.
    folded = _MINUS.sub(" \u2212 ", folded)
    return tuple(c for c in folded if c in _ASCII_SYMBOLS or unicodedata.category(c) in ("Sm", "Sc"))
