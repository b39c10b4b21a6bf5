"""The shingles that documents share with prompts, and of these the matches whose surroundings agree, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_hash import shingle_hashes
from curation.kernels.audit_index import SHINGLE, SHORT_SHINGLE, OverlapIndex, min_around
from curation.kernels.audit_shingles import AROUND, ShingleTable, surroundings
from curation.kernels.audit_tokens import Ints, Tokens

_LOW7, _HIGH = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class Postings:
    """Shingles that a document and a prompt share, in the order of their places; shape ``(m,)`` each.

    Attributes
    ----------
    document, prompt
        The pair.
    at, position
        First token of the shingle in the batch and in the prompt.
    size
        Tokens of the shingle.
    """

    document: Ints
    prompt: Ints
    at: Ints
    position: Ints
    size: int


def find_postings(tokens: Tokens, index: OverlapIndex) -> tuple[Postings, Postings]:
    """Look up the shingles of a batch, of both sizes, and keep those whose surroundings agree, too.

    Most shared shingles are idioms: the same five words in another sentence. A match stays if, of the tokens up to
    `AROUND` places before and behind it that the prompt has, `min_around` are the same in the document.
    """
    none = np.zeros(0, np.int64)
    five, three = [(none, none)], [(none, none)]
    for begin in range(0, len(tokens.hashes), _BLOCK):
        # A block at a time, for which every array on the way stays in the cache.
        fives, threes = shingle_hashes(tokens.hashes[begin : begin + _BLOCK + SHINGLE - 1])
        at, key = index.five.look_up(fives)
        five.append((at + begin, key))
        at, key = index.three.look_up(threes[:_BLOCK])
        three.append((at + begin, key))
    return (
        _kept(tokens, index, index.five, *_joined(five), SHINGLE),
        _kept(tokens, index, index.three, *_joined(three), SHORT_SHINGLE),
    )


def _joined(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    return np.concatenate([at for at, _ in parts]), np.concatenate([key for _, key in parts])


def _kept(tokens: Tokens, index: OverlapIndex, table: ShingleTable, at: Ints, key: Ints, size: int) -> Postings:
    if not len(at):
        return Postings(at, at, at, at, size)
    document = np.searchsorted(tokens.first, at, "right") - 1
    # A shingle that runs over into the next document is none.
    inside = at + size <= tokens.first[document + 1]
    at, key, document = at[inside], key[inside], document[inside]
    count = table.begins[key + 1] - table.begins[key]
    source = np.repeat(np.arange(len(key)), count)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
    posting = table.begins[key][source] + nth
    before, behind = surroundings(tokens.hashes, size)
    place = at[source]
    alike = count_equal_bytes(before[place], table.before[posting])
    alike += count_equal_bytes(behind[place], table.behind[posting])
    # By one byte a token first, which can only be too many: few matches are left for the look at the tokens themselves.
    likely = np.flatnonzero(alike >= table.need[posting])
    source, posting = source[likely], posting[likely]
    found = Postings(
        document[source],
        table.prompt[posting].astype(np.int64),
        at[source],
        table.position[posting].astype(np.int64),
        size,
    )
    rows = np.flatnonzero(_agrees_around(found, tokens, index))
    return Postings(found.document[rows], found.prompt[rows], found.at[rows], found.position[rows], size)


def count_equal_bytes(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Count, for each pair of words, the bytes in which they agree, from 0 to 8."""
    differ = a ^ b
    # A byte's high bit is set if any of its bits is: adding 0x7F to the lower seven carries into it.
    high = ((differ & _LOW7) + _LOW7) | differ
    num_different = (((high & _HIGH) >> np.uint64(7)) * _ONES) >> np.uint64(56)
    return np.uint8(8) - num_different.astype(np.uint8)


def _agrees_around(p: Postings, tokens: Tokens, index: OverlapIndex) -> NDArray[np.bool_]:
    if not len(p.at) or not len(index.hashes):
        return np.ones(len(p.at), np.bool_)
    low, high = tokens.first[p.document], tokens.first[p.document + 1]
    first, num_tokens = index.first[p.prompt], index.num_tokens[p.prompt]
    same, there = np.full(len(p.at), p.size), np.full(len(p.at), p.size)
    # A place at a time: the arrays of a batch stay in the cache, where all places at once would not.
    for step in (*range(-AROUND, 0), *range(p.size, p.size + AROUND)):
        j, at = p.position + step, p.at + step
        has = (j >= 0) & (j < num_tokens)
        there += has
        has &= (at >= low) & (at < high)
        same += has & (tokens.hashes.take(at, mode="clip") == index.hashes.take(first + j, mode="clip"))
    enough: NDArray[np.bool_] = same >= min_around(index.max_prompts) * there
    return enough | (index.stride[p.prompt] > 1)
