"""From shingles that two texts share to pairs of document and prompt that are worth a comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_index import SHINGLE, OverlapIndex
from curation.kernels.audit_postings import Postings
from curation.kernels.audit_tokens import Ints, Tokens

WINDOW = 2
"""A prompt is looked for in stretches of so many times its own length."""

PARTIAL_RUN = 13
"""Tokens in a row from which a part of a prompt is worth a comparison."""

_MIN_COVERED = 0.25
_MIN_ALIGNED = 0.5
_SHIFTS = (-3, -2, -1, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs worth a comparison, shape ``(c,)`` each.

    Attributes
    ----------
    document, prompt
        The pair; a pair may come twice, once for each size of shingle.
    low, high
        Tokens of the batch between which the best stretch of matches lies.
    diagonal
        Token of the batch at which the prompt would begin, by the longest run of matches.
    run
        Tokens of that run.
    covered
        Tokens of the prompt that the matches of the stretch cover.
    aligned
        Share of the prompt's weighted tokens found in order, in [0, 1] (see `_align`).
    begin, end
        Tokens of the batch between which these are.
    """

    document: Ints
    prompt: Ints
    low: Ints
    high: Ints
    diagonal: Ints
    run: Ints
    covered: Ints
    aligned: NDArray[np.float64]
    begin: Ints
    end: Ints


def find_candidates(
    tokens: Tokens, postings: Postings, index: OverlapIndex, *, near_misses: bool = False
) -> Candidates:
    """Return the pairs of a batch that share enough to be compared.

    Parameters
    ----------
    tokens, postings, index
        The batch, the shingles that it shares with prompts, and the index.
    near_misses
        Keep pairs that no class can hold, but that share half of the prompt.
    """
    windows = _best_windows(_enough(_by_pair(postings, index), index), index)
    pairs = _score(windows, postings.size)
    keep = np.flatnonzero(_worth_aligning(pairs, index))
    pairs = _rows(pairs, keep)
    pairs = _align(pairs, _covered_tokens(windows, keep, postings.size), tokens, index)
    told = pairs.aligned >= _least_share(index, near_misses=near_misses)[pairs.prompt]
    told |= (index.stride[pairs.prompt] > 1) | (pairs.run >= told_run(index)[pairs.prompt])
    return _rows(pairs, np.flatnonzero(told))


def _least_share(index: OverlapIndex, *, near_misses: bool) -> NDArray[np.float64]:
    """For each prompt, the share of its weighted tokens in order from which a pair is compared, whatever its runs."""
    half = near_misses | index.has_numbers
    return np.where(half, _MIN_ALIGNED, np.minimum(index.near_share, 1.0))


def may_be_missing(index: OverlapIndex, *, near_misses: bool) -> Ints:
    """For each prompt, the weighted tokens that may be missing from a pair that is compared, whatever its runs."""
    weight = np.maximum(index.num_weighted, 1)
    # As `find_candidates` divides; a sum of doubts in its rounding is not worth a pair.
    needed = np.ceil(_least_share(index, near_misses=near_misses) * weight - 1e-6).astype(np.int64)
    return index.num_weighted - needed


def told_run(index: OverlapIndex) -> Ints:
    """For each prompt, the tokens in a row from which a pair is compared, however little else it shares."""
    if index.min_run < PARTIAL_RUN:
        return np.full(len(index.part_length), index.min_run)
    return index.part_length


def _rows(c: Candidates, rows: Ints) -> Candidates:
    return Candidates(*(getattr(c, name)[rows] for name in Candidates.__slots__))


def _by_pair(p: Postings, index: OverlapIndex) -> Postings:
    # The search goes from place to place, and of one place from position to position: that order stays.
    order = np.argsort(p.document * len(index.num_tokens) + p.prompt, kind="stable")
    return _postings(p, order)


def _postings(p: Postings, rows: Ints) -> Postings:
    return Postings(p.document[rows], p.prompt[rows], p.at[rows], p.position[rows], p.size)


def _enough(p: Postings, index: OverlapIndex) -> Postings:
    """Drop the pairs whose matches, were they all in one stretch, would still be too few to be worth aligning."""
    pair = p.document * len(index.num_tokens) + p.prompt
    starts = np.flatnonzero(np.append(True, pair[1:] != pair[:-1])[: len(pair)])
    count = np.diff(np.append(starts, len(pair)))
    prompt = p.prompt[starts]
    enough = count * p.size >= _MIN_COVERED * np.maximum(index.num_weighted[prompt], 1)
    enough |= count + p.size - 1 >= min(PARTIAL_RUN, index.min_run)
    enough |= index.stride[prompt] > 1
    return _postings(p, np.flatnonzero(np.repeat(enough, count)))


@dataclass(frozen=True, slots=True)
class _Windows:
    """Pairs, and the flat list of the matches in the best stretch of each."""

    document: Ints
    prompt: Ints
    pair: Ints
    at: Ints
    position: Ints


def _best_windows(p: Postings, index: OverlapIndex) -> _Windows:
    """For each pair, keep the matches of the stretch that holds most of them."""
    if not len(p.at):
        empty = np.zeros(0, np.int64)
        return _Windows(empty, empty, empty, empty, empty)
    pair = p.document * len(index.num_tokens) + p.prompt
    starts = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(pair))))
    span = int(p.at.max()) + 1
    place = group * span + p.at
    reach = WINDOW * index.num_tokens[p.prompt] + 2 * SHINGLE
    end = np.searchsorted(place, np.minimum(place + reach, (group + 1) * span))
    size = end - np.arange(len(end))
    best = np.flatnonzero(size == np.maximum.reduceat(size, starts)[group])
    best = best[np.append(True, group[best][1:] != group[best][:-1])]
    length = size[best]
    which = np.repeat(np.arange(len(best)), length)
    flat = best[which] + np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length)
    return _Windows(p.document[best], p.prompt[best], which, p.at[flat], p.position[flat])


def _score(w: _Windows, size: int) -> Candidates:
    """Covered tokens, longest run and its diagonal, for each pair."""
    n = len(w.document)
    covered = _covered(w, size)
    diagonal = w.at - w.position
    order = _order(w.pair, diagonal)
    pair, at, diagonal = w.pair[order], w.at[order], diagonal[order]
    new = np.ones(len(at), np.bool_)
    new[1:] = (pair[1:] != pair[:-1]) | (diagonal[1:] != diagonal[:-1]) | (at[1:] != at[:-1] + 1)
    begin = np.flatnonzero(new)
    run = np.diff(np.append(begin, len(at)))
    # The longest run of each pair; of equals the first.
    by_run = np.lexsort((begin, -run, pair[begin]))
    leads = by_run[np.append(True, np.diff(pair[begin][by_run]) > 0)] if len(by_run) else by_run
    # The matches of a pair are in the order of their places.
    ends = np.searchsorted(w.pair, np.arange(n), "right")
    low, high = w.at[np.append(0, ends[:-1])[:n]], w.at[ends - 1] + size
    longest = run[leads] + size - 1
    return Candidates(w.document, w.prompt, low, high, diagonal[begin[leads]], longest, covered, np.zeros(n), low, high)


def _order(pair: Ints, then: Ints) -> Ints:
    """Return the stable order by pair and then by another number; one key sorts faster than two."""
    if not len(pair):
        return np.zeros(0, np.int64)
    least = int(then.min())
    return np.argsort(pair * (int(then.max()) - least + 1) + (then - least), kind="stable")


def _covered(w: _Windows, size: int) -> Ints:
    order = _order(w.pair, w.position)
    pair, position = w.pair[order], w.position[order]
    gain = np.full(len(pair), size)
    gain[:-1] = np.where(pair[1:] == pair[:-1], np.minimum(position[1:] - position[:-1], size), size)
    return np.bincount(pair, weights=gain, minlength=len(w.document)).astype(np.int64)


def _worth_aligning(c: Candidates, index: OverlapIndex) -> NDArray[np.bool_]:
    weight = np.maximum(index.num_weighted[c.prompt], 1)
    covered = np.where(index.stride[c.prompt] > 1, _sampled_share(c, index) * weight, c.covered)
    worth: NDArray[np.bool_] = (covered >= _MIN_COVERED * weight) | _has_long_run(c, index)
    return worth


def _sampled_share(c: Candidates, index: OverlapIndex) -> NDArray[np.float64]:
    """Share of a sampled prompt that matches: each of its matches stands for as many tokens as the sample's stride."""
    share: NDArray[np.float64] = (
        c.covered / SHINGLE * index.stride[c.prompt] / np.maximum(index.num_tokens[c.prompt], 1)
    )
    return np.minimum(1.0, share)


def _has_long_run(c: Candidates, index: OverlapIndex) -> NDArray[np.bool_]:
    # Of a sampled prompt the shingles next to a match are not known: four matches are enough for a look.
    long: NDArray[np.bool_] = c.run >= min(PARTIAL_RUN, index.min_run)
    return long | ((index.stride[c.prompt] > 1) & (c.covered >= 4 * SHINGLE))


def _covered_tokens(w: _Windows, keep: Ints, size: int) -> tuple[Ints, Ints]:
    """Return candidate and place of every token that the matches of a kept pair cover."""
    new = np.full(len(w.document), -1)
    new[keep] = np.arange(len(keep))
    rows = np.flatnonzero(new[w.pair] >= 0)
    position = w.position[rows][:, None] + np.arange(size)
    return np.repeat(new[w.pair[rows]], size), position.ravel()


def _align(c: Candidates, covered: tuple[Ints, Ints], tokens: Tokens, index: OverlapIndex) -> Candidates:
    """Find which weighted tokens of each prompt are in the document, in order.

    A token counts if it stands where the longest run says, if it and a neighbour stand up to three places off, as
    behind a word that was put in or left out, or if a matching shingle covers it.
    """
    kept = np.flatnonzero(index.stride[c.prompt] == 1)
    n = index.num_tokens[c.prompt] * (index.stride[c.prompt] == 1)
    offset = np.cumsum(n) - n
    pair = np.repeat(np.arange(len(n)), n)
    j = np.arange(len(pair)) - offset[pair]
    mine = index.hashes[index.first[c.prompt][pair] + j]
    expected = c.diagonal[pair] + j
    # Places from the document's first token on; those before it are, without a sign, beyond its last.
    inner, length = expected - tokens.first[c.document][pair], np.diff(tokens.first)[c.document][pair].view(np.uint64)
    there = tokens.hashes.take(expected, mode="clip") == mine
    there &= inner.view(np.uint64) < length
    # Where all tokens are there already, nothing is to be found beside them.
    rest = np.flatnonzero((np.bincount(pair, weights=there, minlength=len(n)) < n)[pair])
    neighbours = pair[rest][1:] == pair[rest][:-1]
    expected_there, inner, length, mine = (array[rest] for array in (expected, inner, length, mine))
    for shift in _SHIFTS if len(rest) else ():
        same = tokens.hashes.take(expected_there + shift, mode="clip") == mine
        same &= (inner + shift).view(np.uint64) < length
        two = np.flatnonzero(same[1:] & same[:-1] & neighbours)
        there[rest[two]] = there[rest[two + 1]] = True
    begin, end = c.low.copy(), c.high.copy()
    at = np.flatnonzero(there)
    if len(at):
        first = at[np.append(True, pair[at][1:] != pair[at][:-1])]
        last = at[np.append(pair[at][1:] != pair[at][:-1], True)]
        begin[pair[first]], end[pair[last]] = expected[first], expected[last] + 1
    inside = np.isin(covered[0], kept)
    there[offset[covered[0][inside]] + covered[1][inside]] = True
    weighted = index.weighted[index.first[c.prompt][pair] + j]
    weight = np.maximum(index.num_weighted[c.prompt], 1)
    aligned = np.bincount(pair, weights=there & weighted, minlength=len(n)) / weight
    aligned = np.where(index.stride[c.prompt] > 1, _sampled_share(c, index), aligned)
    return Candidates(c.document, c.prompt, c.low, c.high, c.diagonal, c.run, c.covered, aligned, begin, end)
