"""Compare a prompt with a stretch of a document, and say what the pair is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_candidates import Candidates
from curation.kernels.audit_fold import fold_character
from curation.kernels.audit_index import OverlapIndex
from curation.kernels.audit_rules import ADAPTIVE, Rule
from curation.kernels.audit_tokens import Batch, Ints

_NO_LETTERS = re.compile(r"[\W_]+", re.ASCII)
_ASCII_SYMBOLS = frozenset("*/%&@#^~|\\_`$+=<>")
_SYMBOL = re.compile(r"[*/%&@#^~|\\_`$+=<>]|[^\x00-\x7f]")
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
    batch: Batch, candidates: Candidates, index: OverlapIndex, rule: Rule = ADAPTIVE, *, near_misses: bool = True
) -> Iterator[Hit]:
    """Compare candidate pairs; near misses are left out if they are not wanted."""
    if not len(candidates.prompt):
        return
    laid = _lay(batch, candidates, index)
    coverage = candidates.aligned
    sampled = index.stride[candidates.prompt] > 1
    coverage = np.where(sampled, np.maximum(coverage, laid.num_equal / np.diff(laid.offset)), coverage)
    by_numbers = _may_differ_by_numbers(laid, candidates, index)
    told = _telling(laid, candidates, coverage, index, rule) | (by_numbers & (not rule.ngram))
    for row in (np.arange(len(coverage)) if near_misses else np.flatnonzero(told)).tolist():
        pair = _Pair.of(batch, candidates, laid, row, index, by_numbers=bool(by_numbers[row]))
        hit = _judge(pair, candidates, row, float(coverage[row]), rule)
        if near_misses or hit.kind != "near_miss":
            yield hit


def _telling(
    laid: _Laid, c: Candidates, coverage: NDArray[np.float64], index: OverlapIndex, rule: Rule
) -> NDArray[np.bool_]:
    """Tell which pairs are more than a near miss, whatever their numbers."""
    if rule.ngram:
        return laid.run >= rule.ngram
    told: NDArray[np.bool_] = laid.num_equal == np.diff(laid.offset)
    return told | (coverage >= index.near_share[c.prompt]) | (laid.run >= index.part_length[c.prompt])


def _may_differ_by_numbers(laid: _Laid, c: Candidates, index: OverlapIndex) -> NDArray[np.bool_]:
    """Tell which pairs differ in tokens only that are numbers in the prompt; of a sampled prompt that is not known."""
    n = np.diff(laid.offset)
    places = np.flatnonzero(~laid.equal)
    pair = np.searchsorted(laid.offset, places, "right") - 1
    other = index.stride[c.prompt][pair] == 1
    own = index.first[c.prompt][pair] + places - laid.offset[pair]
    other &= ~index.digits[np.where(other, own, 0)] if len(index.digits) else False
    may: NDArray[np.bool_] = np.bincount(pair, weights=other, minlength=len(n)) == 0
    return may & (2 * laid.num_equal >= n)


def _judge(pair: _Pair, c: Candidates, row: int, coverage: float, rule: Rule) -> Hit:
    if rule.ngram:
        return pair.hit("ngram" if pair.run >= rule.ngram else "near_miss", pair.coverage_of_run(), *pair.run_span())
    if pair.is_full:
        return pair.hit(_full_kind(pair), 1.0, pair.at, pair.at + pair.n)
    if pair.by_numbers and pair.differs_by_numbers():
        return pair.hit("number_variant", coverage, pair.at, pair.at + pair.n)
    span = int(c.begin[row]), int(c.end[row])
    if coverage >= pair.index.near_share[pair.prompt]:
        return pair.hit("near", coverage, *span)
    if pair.run >= pair.index.part_length[pair.prompt]:
        return pair.hit("partial", max(coverage, pair.coverage_of_run()), *pair.run_span())
    return pair.hit("near_miss", coverage, *span)


@dataclass(frozen=True, slots=True)
class _Laid:
    """Prompts laid along documents, each at the diagonal of its longest shared run.

    Attributes
    ----------
    equal, offset
        Which tokens of prompt i are the document's, ``equal[offset[i]:offset[i + 1]]``.
    num_equal
        How many are, shape ``(c,)``.
    run_begin, run
        First place and length of the longest run of those that carry weight; 0 and 0 if there is none.
    """

    equal: NDArray[np.bool_]
    offset: Ints
    num_equal: Ints
    run_begin: Ints
    run: Ints


def _lay(batch: Batch, c: Candidates, index: OverlapIndex) -> _Laid:
    prompts = c.prompt.tolist()
    mine = np.concatenate([index.tokens(prompt) for prompt in prompts])
    weighted = np.concatenate([index.weights(prompt) for prompt in prompts])
    n = index.num_tokens[c.prompt]
    offset = np.append(0, np.cumsum(n))
    pair = np.repeat(np.arange(len(n)), n)
    at = (c.diagonal - offset[:-1])[pair] + np.arange(len(pair))
    equal = (at >= batch.tokens.first[c.document][pair]) & (at < batch.tokens.first[c.document + 1][pair])
    equal &= batch.tokens.hashes[np.where(equal, at, 0)] == mine
    num_equal = np.bincount(pair, weights=equal, minlength=len(n)).astype(np.int64)
    return _Laid(equal, offset, num_equal, *_longest_runs(equal & weighted, pair, offset))


def _longest_runs(marked: NDArray[np.bool_], pair: Ints, offset: Ints) -> tuple[Ints, Ints]:
    """First place and length of the longest run of true entries of each pair, of equals the first; 0 and 0 if none."""
    goes_on = marked[1:] & marked[:-1] & (pair[1:] == pair[:-1])
    begin = np.flatnonzero(marked & ~np.append(False, goes_on))
    length = np.flatnonzero(marked & ~np.append(goes_on, False)) + 1 - begin
    order = np.lexsort((begin, -length, pair[begin]))
    owner = pair[begin][order]
    best = np.flatnonzero(np.diff(owner, prepend=-1))
    place, run = np.zeros(len(offset) - 1, np.int64), np.zeros(len(offset) - 1, np.int64)
    place[owner[best]] = begin[order][best] - offset[owner[best]]
    run[owner[best]] = length[order][best]
    return place, run


@dataclass(frozen=True, slots=True)
class _Pair:
    """One prompt of n tokens, laid along its document from token `at` of the batch on."""

    batch: Batch
    index: OverlapIndex
    document: int
    prompt: int
    at: int
    n: int
    equal: NDArray[np.bool_]
    is_full: bool
    by_numbers: bool
    run_begin: int
    run: int

    @classmethod
    def of(cls, batch: Batch, c: Candidates, laid: _Laid, row: int, index: OverlapIndex, *, by_numbers: bool) -> _Pair:
        low, high = int(laid.offset[row]), int(laid.offset[row + 1])
        return cls(
            *(batch, index, int(c.document[row]), int(c.prompt[row]), int(c.diagonal[row]), high - low),
            *(laid.equal[low:high], int(laid.num_equal[row]) == high - low, by_numbers),
            *(int(laid.run_begin[row]), int(laid.run[row])),
        )

    @property
    def limits(self) -> tuple[int, int]:
        """First token of the document, and the first one behind it."""
        return int(self.batch.tokens.first[self.document]), int(self.batch.tokens.first[self.document + 1])

    def coverage_of_run(self) -> float:
        return self.run / max(int(self.index.num_weighted[self.prompt]), 1)

    def run_span(self) -> tuple[int, int]:
        begin = self.at + self.run_begin
        return begin, begin + max(self.run, 1)

    def differs_by_numbers(self) -> bool:
        """Tell whether every token that differs is a number on both sides."""
        low, high = self.limits
        if self.at < low or self.at + self.n > high:
            return False
        places = np.flatnonzero(~self.equal)
        if 2 * len(places) > self.n:
            return False
        if not self.index.numeric(self.prompt)[places].all():
            return False
        return all(_is_number(self.batch.text(self.at + int(i), self.at + int(i) + 1)) for i in places)

    def hit(self, kind: str, coverage: float, begin: int, end: int) -> Hit:
        low, high = self.limits
        begin = min(max(begin, low), high - 1)
        end = max(begin + 1, min(end, high))
        span = self.batch.character_span(self.document, begin, end)
        return Hit(self.document, self.prompt, kind, coverage, self.run, *span)


def _full_kind(pair: _Pair) -> str:
    """Tell exact, format and near copies apart once all tokens agree."""
    text = pair.batch.text(pair.at, pair.at + pair.n)
    prompt = pair.index.texts[pair.prompt]
    # Signs before the first and behind the last token belong to the prompt, too.
    around = _stretch(
        pair.batch, pair.document, pair.at, pair.at + pair.n, margin=len(prompt.encode("utf-8", "replace")) + 64
    )
    # In normal form, what is there as it stands is there with white space aside, too; else that is told at a cost.
    as_it_stands = prompt.strip() in around and all(unicodedata.is_normalized("NFC", t) for t in (prompt, around))
    if as_it_stands or _plain(prompt) in _plain(around):
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
    return tuple(c for c in _SYMBOL.findall(folded) if c in _ASCII_SYMBOLS or unicodedata.category(c) in ("Sm", "Sc"))
