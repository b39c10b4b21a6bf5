"""Where each shingle of the prompts stands, ready to be looked up: a filter, buckets, and what stands around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_tokens import Ints

AROUND = 8
"""Tokens before and behind a match that are looked at before the pair is considered."""

_SIX = np.uint64(63)
_BYTE = np.uint64(255)


@dataclass(frozen=True, slots=True)
class ShingleTable:
    """Sorted shingle hashes and where each stands.

    Attributes
    ----------
    keys
        Ascending, shape ``(k,)``.
    begins
        Postings of key i are ``begins[i]:begins[i + 1]``, shape ``(k + 1,)``.
    prompt, position
        Prompt and first token of each posting.
    before, behind
        The last byte of the hashes of the `AROUND` tokens on either side of each posting, the first token lowest; 0 for
        a token that the prompt has not.
    need
        How many of the tokens around the posting must be the same in a document.
    seen
        A Bloom filter of words, shape ``(2**w,)``: the leading w bits of a hash choose a word, and three times six
        trailing bits the bits in it that are set if the hash is a key. Most shingles of a corpus fail this one look-up
        in a table that stays in a core's cache.
    buckets
        Shape ``(2**c + 1,)``: the first key at or behind each pattern of c leading bits; about one key a bucket, where
        a binary search would miss the cache at every step.
    """

    keys: NDArray[np.uint64]
    begins: Ints
    prompt: NDArray[np.int32]
    position: NDArray[np.int32]
    before: NDArray[np.uint64]
    behind: NDArray[np.uint64]
    need: NDArray[np.uint8]
    seen: NDArray[np.uint64]
    buckets: NDArray[np.int32]

    def look_up(self, hashes: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """Return the positions in `hashes` that are keys, and which key each is."""
        if not len(self.keys) or not len(hashes):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        word = self.seen.take((hashes >> np.uint64(64 - (len(self.seen).bit_length() - 1))).view(np.int64))
        held = word >> (hashes & _SIX)
        held &= np.uint64(1)
        # The first of the three bits alone stops most, so that the others are looked at for few.
        at = np.flatnonzero(held)
        word, likely = word[at], hashes[at]
        held = word >> ((likely >> np.uint64(6)) & _SIX)
        held &= word >> ((likely >> np.uint64(12)) & _SIX)
        held &= np.uint64(1)
        rows = np.flatnonzero(held)
        return self.confirm(at[rows], likely[rows])

    def confirm(self, at: Ints, hashes: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """Keep those of some candidate positions whose hash really is a key."""
        bucket = (hashes >> np.uint64(64 - (len(self.buckets).bit_length() - 1))).view(np.int64)
        key, end = self.buckets[bucket].astype(np.int64), self.buckets[bucket + 1]
        found = np.full(len(hashes), -1)
        todo = np.flatnonzero(key < end)
        while len(todo):
            same = self.keys[key[todo]] == hashes[todo]
            found[todo[same]] = key[todo[same]]
            todo = todo[~same]
            key[todo] += 1
            todo = todo[key[todo] < end[todo]]
        hit = np.flatnonzero(found >= 0)
        return at[hit], found[hit]


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Shingles of prompts, shape ``(m,)`` each: hash, prompt, first token, and the rest as in `ShingleTable`."""

    keys: NDArray[np.uint64]
    prompt: Ints
    position: Ints
    before: NDArray[np.uint64]
    behind: NDArray[np.uint64]
    need: NDArray[np.uint8]

    def take(self, rows: Ints | NDArray[np.bool_]) -> Occurrences:
        """Return some of the occurrences."""
        return Occurrences(*(getattr(self, name)[rows] for name in Occurrences.__slots__))


def make_table(found: Occurrences) -> ShingleTable:
    """Return the table of shingles."""
    found = found.take(np.argsort(found.keys, kind="stable"))
    distinct, begins = np.unique(found.keys, return_index=True)
    bits = min(max(len(distinct).bit_length(), 6), 24)
    edges = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return ShingleTable(
        keys=distinct,
        begins=np.append(begins, len(found.keys)).astype(np.int64),
        prompt=found.prompt.astype(np.int32),
        position=found.position.astype(np.int32),
        before=found.before,
        behind=found.behind,
        need=found.need,
        seen=_filter(distinct, bits - 2),
        buckets=np.append(np.searchsorted(distinct, edges), len(distinct)).astype(np.int32),
    )


def _filter(keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Bloom filter of words: 8 to 16 bits a key, of which three are set."""
    seen = np.zeros(1 << bits, np.uint64)
    one, mask = np.uint64(1), np.zeros(len(keys), np.uint64)
    for shift in (0, 6, 12):
        mask |= one << ((keys >> np.uint64(shift)) & _SIX)
    np.bitwise_or.at(seen, (keys >> np.uint64(64 - bits)).view(np.int64), mask)
    return seen


def surroundings(hashes: NDArray[np.uint64], size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the last byte of the hashes around every run of tokens.

    Parameters
    ----------
    hashes
        Token hashes, shape ``(t,)``.
    size
        Tokens of a run, at most t.

    Returns
    -------
    tuple of ndarray of uint64
        Shape ``(t - size + 1,)`` each: `AROUND` bytes from before and from behind the run that begins at token i, the
        first token lowest, 0 beyond the ends.
    """
    low = np.zeros(len(hashes) + 2 * AROUND, np.uint8)
    low[AROUND : AROUND + len(hashes)] = (hashes & _BYTE).astype(np.uint8)
    words = np.ndarray((len(low) - AROUND + 1,), "<u8", low, 0, (1,))
    count = max(len(hashes) - size + 1, 0)
    return words[:count], words[AROUND + size : AROUND + size + count]
