"""The compiled kernel (extra `[fast]`): documents where they lie in memory, from bytes to matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.audit.machine_code import load_machine_code, three_byte_characters
from curation.kernels.audit_candidates import may_be_missing, told_run
from curation.kernels.audit_fold import four_byte_code, two_byte_table
from curation.kernels.audit_index import SHINGLE, SHORT_SHINGLE, OverlapIndex, min_around
from curation.kernels.audit_overlap import Found
from curation.kernels.audit_postings import Postings
from curation.kernels.audit_shingles import ShingleTable
from curation.kernels.audit_tokens import Batch, Bytes, Ints, Tokens

_NEEDS_PREPARATION, _UNKNOWN = 1, 2  # of `audit_fast`, which needs numba to be imported
_UNKNOWN_CODE = 0xFFFFFFFF
_FOUR_BYTE_CODES = 1 << 21
_MATCHES = 1 << 16
_BLOCK_BYTES = 1 << 20
_COARSE_WORDS = 1 << 15


def _address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)


@dataclass(frozen=True, slots=True)
class _Table:
    """A `ShingleTable` laid out so that all that is asked of a posting lies side by side.

    Attributes
    ----------
    rows
        A row a posting and one more, shape ``(m + 1, 4)``: hash, bytes before and behind, then prompt, position and
        need in one word.
    begins
        Shape ``(2**c + 1,)``: the first row at or behind each pattern of c leading bits of a hash.
    seen, coarse
        The table's filter, and one that stays in the innermost large cache of a core: several words of `seen` in one.
    """

    rows: NDArray[np.uint64]
    begins: NDArray[np.int32]
    seen: NDArray[np.uint64]
    coarse: NDArray[np.uint64]

    @classmethod
    def of(cls, table: ShingleTable) -> _Table:
        place = (table.prompt.astype(np.uint64) << np.uint64(32)) | (table.position.astype(np.uint64) << np.uint64(5))
        rows = np.zeros((len(table.prompt) + 1, 4), np.uint64)
        rows[:-1, 0] = np.repeat(table.keys, np.diff(table.begins))
        rows[:-1, 1], rows[:-1, 2], rows[:-1, 3] = table.before, table.behind, place | table.need
        seen = np.ascontiguousarray(table.seen)
        coarse = np.bitwise_or.reduce(seen.reshape(min(len(seen), _COARSE_WORDS), -1), axis=1)
        return cls(rows, table.begins[table.buckets].astype(np.int32), seen, coarse)


def _shift(num_patterns: int) -> int:
    """How far to shift a word so that as many leading bits are left as tell so many patterns apart."""
    return 65 - num_patterns.bit_length()


class FastKernel:
    """Finds the shared shingles of documents; one instance a thread.

    What it returns lies in its working memory and holds until its next call.

    Parameters
    ----------
    index
        What is looked for.
    near_misses
        Keep the matches of pairs that no class can hold, but that share half of the prompt.
    """

    def __init__(self, index: OverlapIndex, *, near_misses: bool = False) -> None:
        self._code = load_machine_code()
        self._index = index
        self._five, self._three = _Table.of(index.five), _Table.of(index.three)
        self._two_bytes, self._three_bytes = two_byte_table(), three_byte_characters()
        self._four_bytes = np.full(_FOUR_BYTE_CODES, _UNKNOWN_CODE, np.uint32)
        may_miss, min_run = may_be_missing(index, near_misses=near_misses), told_run(index)
        own = (index.hashes, index.first, index.num_tokens, index.num_weighted, may_miss, min_run, index.stride)
        self._prompts = [np.ascontiguousarray(array) for array in own]
        self._weighted = np.ascontiguousarray(index.weighted)
        self._heads = np.full(len(index.num_tokens), -1, np.int32)
        self._following = np.empty(_MATCHES, np.int32)
        self._matches = np.empty((_MATCHES, 4), np.int64)
        self._shingles = np.empty(256, np.uint64)
        self._capacity = -1

    def _reserve(self, num_bytes: int, num_documents: int) -> None:
        most = num_bytes // 2 + num_documents + 8  # tokens lie at least two bytes apart, or are three bytes long
        if most <= self._capacity:
            return
        # Working memory that is kept: fresh pages for every batch would cost more than the search.
        self._capacity = most
        self._buffer = np.empty(2 * most + 64, np.uint8)
        self._hashes, self._edges = np.empty(most, np.uint64), np.empty(2 * most, np.int32)
        self._flagged = np.empty((2, most), np.int32)
        self._rows = np.empty((2, most), np.int32)

    def __call__(self, raw: Bytes, begin: Ints, end: Ints) -> Found:
        """Find what the documents ``raw[begin[i]:end[i]]`` share with the prompts.

        Parameters
        ----------
        raw
            UTF-8 bytes, fewer than 2**31.
        begin, end
            Shape ``(d,)``.
        """
        self._reserve(int((end - begin).sum()), len(begin))
        status, first = np.zeros(len(begin), np.uint8), np.zeros(len(begin) + 1, np.int64)
        fives, threes = [], []
        for a, b in _blocks(begin, end):
            # A block at a time is tokenised and searched: its tokens are still in the cache.
            num_flagged = self._scan(raw, begin[a:b], end[a:b], first[a : b + 1], status[a:b])
            fives.append(self._search(first[a : b + 1], SHINGLE, int(num_flagged[0]), a))
            threes.append(self._search(first[a : b + 1], SHORT_SHINGLE, int(num_flagged[1]), a))
        edges = self._edges[: 2 * first[-1]]
        none = np.zeros(0, np.int64)
        tokens = Tokens(self._hashes[: first[-1]], edges[0::2], edges[1::2], first, none, none.astype(np.uint8))
        postings = _postings(fives, SHINGLE), _postings(threes, SHORT_SHINGLE)
        return Found(Batch(raw, begin, end, tokens, {}), postings, np.flatnonzero(status == _NEEDS_PREPARATION))

    def _scan(self, raw: Bytes, begin: Ints, end: Ints, first: Ints, status: Bytes) -> Ints:
        """Write the tokens of a block behind those before it; return how many shingles of each size are flagged."""
        num_flagged = np.zeros(2, np.int64)
        filters = self._five.coarse, self._five.seen, self._three.seen
        while True:
            self._code.scan_documents(
                *(_address(raw), len(raw), _address(begin), _address(end), len(begin)),
                *(_address(self._two_bytes), _address(self._three_bytes), _address(self._four_bytes)),
                _address(self._buffer),
                *chain.from_iterable((_address(seen), _shift(len(seen))) for seen in filters),
                *map(_address, (self._hashes, self._edges, first, status, *self._flagged, num_flagged, self._shingles)),
            )
            unknown = np.flatnonzero(status == _UNKNOWN)
            if not len(unknown):
                return num_flagged
            for i in unknown:
                self._learn(raw[begin[i] : end[i]])

    def _learn(self, raw: Bytes) -> None:
        """Fold the characters of four bytes that were not met before: too many for a table, too few to matter."""
        at = np.flatnonzero(raw >= 0xF0)
        at = at[at + 4 <= len(raw)]
        point = np.zeros(len(at), np.int64)
        for i in range(4):
            point = (point << 6) | (raw[at + i] & np.uint8(7 if i == 0 else 63))
        for code in np.unique(point).tolist():
            self._four_bytes[code] = four_byte_code(code)

    def _search(self, first: Ints, size: int, num_flagged: int, document: int) -> NDArray[np.int64]:
        """Return document, prompt, place and position of the matches of a block that begins with a document."""
        table = self._five if size == SHINGLE else self._three
        flagged = self._flagged[0 if size == SHINGLE else 1]
        while True:
            places = flagged[:num_flagged].copy()
            found = self._code.search_shingles(
                *(_address(self._hashes), _address(first), size, _address(places), num_flagged),
                *(_address(table.begins), _shift(len(table.begins) - 1), _address(table.rows)),
                *map(_address, (*self._rows, *self._prompts)),
                min_around(self._index.max_prompts),
                *map(_address, (self._weighted, self._heads, self._following, self._matches)),
                len(self._matches),
                _address(self._shingles),
            )
            if found >= 0:
                matches = self._matches[:found].copy()
                matches[:, 0] += document
                return matches
            self._following = np.empty(4 * len(self._matches), np.int32)
            self._matches = np.empty((4 * len(self._matches), 4), np.int64)


def _blocks(begin: Ints, end: Ints) -> Iterator[tuple[int, int]]:
    ends = np.cumsum(end - begin)
    a = 0
    while a < len(begin):
        base = int(ends[a - 1]) if a else 0
        b = max(a + 1, int(np.searchsorted(ends, base + _BLOCK_BYTES, "right")))
        yield a, b
        a = b


def _postings(parts: Sequence[NDArray[np.int64]], size: int) -> Postings:
    document, prompt, at, position = np.ascontiguousarray(np.concatenate(parts).T)
    return Postings(document, prompt, at, position, size)
