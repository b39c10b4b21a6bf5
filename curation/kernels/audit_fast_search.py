"""`audit_postings.find_postings` compiled by numba (extra `[fast]`): the same matches, one look for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_fast import trailing_zeros
from curation.kernels.audit_hash import C
from curation.kernels.audit_index import SHINGLE, SHORT_SHINGLE, OverlapIndex, min_around
from curation.kernels.audit_postings import Postings
from curation.kernels.audit_shingles import AROUND, ShingleTable
from curation.kernels.audit_tokens import Ints, Tokens

_SIX = np.uint64(63)
_BYTE = np.uint64(255)
_SHIFT = np.uint64(8)
_TOP = np.uint64(56)
_C1 = np.uint64(C)
_C2 = np.uint64(C * C % 2**64)
_LOW7, _HIGH, _ONES = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080), np.uint64(0x0101010101010101)
_SEVEN = np.uint64(7)


@dataclass(frozen=True, slots=True)
class _Entries:
    """A `ShingleTable` laid out so that all that is asked of a posting lies side by side.

    Attributes
    ----------
    rows
        A row a posting, shape ``(m, 4)``: hash, bytes before and behind, then prompt, position and need in one word.
    begins
        Shape ``(2**c + 1,)``: the first row at or behind each pattern of c leading bits of a hash.
    seen
        The table's filter.
    """

    rows: NDArray[np.uint64]
    begins: NDArray[np.int32]
    seen: NDArray[np.uint64]

    @classmethod
    def of(cls, table: ShingleTable) -> _Entries:
        place = (table.prompt.astype(np.uint64) << np.uint64(32)) | (table.position.astype(np.uint64) << np.uint64(5))
        keys = np.repeat(table.keys, np.diff(table.begins))
        rows = np.stack([keys, table.before, table.behind, place | table.need], axis=1)
        return cls(rows, table.begins[table.buckets].astype(np.int32), table.seen)


class FastSearch:
    """`audit_postings.find_postings`, compiled; keeps its form of the index that it was last used with."""

    def __init__(self) -> None:
        self._index: OverlapIndex | None = None
        self._scratch = np.empty((4, 0), np.int64)
        self._flags = np.empty(0, np.uint8)

    def __call__(self, tokens: Tokens, index: OverlapIndex) -> tuple[Postings, Postings]:
        """Look up the shingles of a batch: see `audit_postings.find_postings`."""
        if self._index is not index:
            self._index = index
            self._five, self._three = _Entries.of(index.five), _Entries.of(index.three)
        n = len(tokens.hashes)
        if self._scratch.shape[1] < n:
            # Working memory that is kept: fresh pages for every batch would cost more than the search.
            self._scratch = np.empty((4, 2 * n), np.int64)
            self._flags = np.empty(2 * n + 8, np.uint64).view(np.uint8)
        working = (self._flags, self._scratch)
        return (
            _search(tokens, index, self._five, SHINGLE, *working),
            _search(tokens, index, self._three, SHORT_SHINGLE, *working),
        )


def _search(
    tokens: Tokens, index: OverlapIndex, table: _Entries, size: int, flags: NDArray[np.uint8], scratch: Ints
) -> Postings:
    if not len(table.rows) or len(tokens.hashes) < size:
        empty = np.zeros(0, np.int64)
        return Postings(empty, empty, empty, empty, size)
    shingles, at, row, end = scratch[0].view(np.uint64), *scratch[1:]
    _flag_shingles(tokens.hashes, size, table.seen, flags)
    passed = _flagged(tokens.hashes, size, flags.view(np.uint64), shingles, at)
    held = _find_rows(shingles[:passed], at, table.begins, table.rows, row, end)
    found = _look_up(tokens.hashes, tokens.first, size, shingles[:held], at, row, end, table.rows)
    own = (index.hashes, index.first, index.num_tokens, index.stride)
    document, prompt, at, position = _confirm(
        tokens.hashes, tokens.first, size, found, *own, min_around(index.max_prompts)
    )
    return Postings(document, prompt, at, position, size)


@numba.njit(nogil=True, cache=True, inline="always")
def _leading(num_patterns: Any) -> Any:
    """How far to shift a word so that as many leading bits are left as tell so many patterns apart."""
    shift = np.uint64(64)
    while np.uint64(1) << (np.uint64(64) - shift) < np.uint64(num_patterns):
        shift -= np.uint64(1)
    return shift


@numba.njit(nogil=True, cache=True, inline="always")
def _shingle(hashes: Any, i: Any, size: Any) -> Any:
    shingle = hashes[i] * _C2 + hashes[i + 1] * _C1 + hashes[i + 2]
    if size == SHINGLE:
        shingle = shingle * _C2 + hashes[i + 3] * _C1 + hashes[i + 4]
    return shingle


@numba.njit(nogil=True, cache=True)
def _flag_shingles(hashes: Any, size: Any, seen: Any, flags: Any) -> Any:
    """Write, for each shingle, 1 if it may be in the table, else 0; zeros behind the last one up to a whole word."""
    shift = _leading(len(seen))
    count = len(hashes) - size + 1
    # Nothing depends on what was found before: many look-ups in the filter are under way at once.
    for i in range(count):
        shingle = _shingle(hashes, i, size)
        word = seen[shingle >> shift]
        held = word >> (shingle & _SIX)
        held &= word >> ((shingle >> np.uint64(6)) & _SIX)
        held &= word >> ((shingle >> np.uint64(12)) & _SIX)
        flags[i] = np.uint8(held & np.uint64(1))
    for i in range(count, (count + 7) & ~7):
        flags[i] = 0


@numba.njit(nogil=True, cache=True)
def _flagged(hashes: Any, size: Any, flag_words: Any, shingles: Any, at: Any) -> Any:
    """Write hash and place of the shingles that are flagged; return how many."""
    found: Any = 0
    for k in range((len(hashes) - size + 8) >> 3):
        word = flag_words[k]
        while word:
            i = 8 * k + np.int64(trailing_zeros(word) >> np.uint64(3))
            word &= word - np.uint64(1)
            shingles[found] = _shingle(hashes, i, size)
            at[found] = i
            found += 1
    return found


@numba.njit(nogil=True, cache=True)
def _find_rows(shingles: Any, places: Any, begins: Any, rows: Any, row: Any, end: Any) -> Any:
    """Write the rows at which to look for each shingle; drop, in place, those without; return how many stay."""
    shift = _leading(len(begins) - 1)
    # One load a loop and no branch: so the processor waits for many of them at once.
    for i in range(len(shingles)):
        bucket = shingles[i] >> shift
        row[i] = begins[bucket]
        end[i] = begins[bucket + np.uint64(1)]
    count: Any = 0
    for i in range(len(shingles)):
        first = min(row[i], len(rows) - 1)
        wanted = (rows[first, 0] == shingles[i]) | (end[i] > row[i] + 1)
        shingles[count] = shingles[i]
        places[count] = places[i]
        row[count] = row[i]
        end[count] = end[i]
        count += np.int64(wanted)
    return count


@numba.njit(nogil=True, cache=True, inline="always")
def _bytes_at(hashes: Any, first: Any) -> Any:
    """Last byte of `AROUND` token hashes, the first lowest; 0 beyond the ends."""
    word = np.uint64(0)
    if first >= 0 and first + AROUND <= len(hashes):
        for j in range(AROUND):
            word = (word >> _SHIFT) | (hashes[first + j] << _TOP)
        return word
    for j in range(first, first + AROUND):
        byte = hashes[j] << _TOP if 0 <= j < len(hashes) else np.uint64(0)
        word = (word >> _SHIFT) | byte
    return word


@numba.njit(nogil=True, cache=True, inline="always")
def _num_different(a: Any, b: Any) -> Any:
    differ = a ^ b
    high = (((differ & _LOW7) + _LOW7) | differ) & _HIGH
    return ((high >> _SEVEN) * _ONES) >> _TOP


@numba.njit(nogil=True, cache=True)
def _look_up(hashes: Any, first: Any, size: Any, shingles: Any, places: Any, begin: Any, ends: Any, rows: Any) -> Any:
    """Return document, place, prompt and position of the matches whose surroundings agree byte by byte."""
    capacity = max(64, len(shingles))
    out = np.empty((capacity, 4), np.int64)
    count: Any = 0
    document: Any = 0
    most = np.uint64(2 * AROUND)
    for i in range(len(shingles)):
        shingle = shingles[i]
        at = places[i]
        row: Any = begin[i]
        end = ends[i]
        while row < end and rows[row, 0] != shingle:
            row += 1
        if row == end:
            continue
        while first[document + 1] <= at:
            document += 1
        if at + size > first[document + 1]:
            continue
        before = _bytes_at(hashes, at - AROUND)
        behind = _bytes_at(hashes, at + size)
        while row < end and rows[row, 0] == shingle:
            place = rows[row, 3]
            alike = most - _num_different(before, rows[row, 1]) - _num_different(behind, rows[row, 2])
            if alike >= (place & np.uint64(31)):
                if count == capacity:
                    capacity *= 2
                    more = np.empty((capacity, 4), np.int64)
                    more[:count] = out
                    out = more
                out[count, 0] = document
                out[count, 1] = at
                out[count, 2] = np.int64(place >> np.uint64(32))
                out[count, 3] = np.int64((place & np.uint64(0xFFFFFFFF)) >> np.uint64(5))
                count += 1
            row += 1
    return out[:count]


@numba.njit(nogil=True, cache=True)
def _confirm(
    hashes: Any,
    first: Any,
    size: Any,
    found: Any,
    prompt_hashes: Any,
    prompt_first: Any,
    num_tokens: Any,
    stride: Any,
    share: Any,
) -> Any:
    """Keep the matches around which enough tokens are the same."""
    out = np.empty((4, len(found)), np.int64)
    count: Any = 0
    for i in range(len(found)):
        document, at, p, position = found[i]
        if stride[p] == 1:
            shift = at - position
            a = max(0, position - AROUND)
            b = min(num_tokens[p], position + size + AROUND)
            same = 0
            for j in range(max(a, first[document] - shift), min(b, first[document + 1] - shift)):
                same += hashes[shift + j] == prompt_hashes[prompt_first[p] + j]
            if same < share * (b - a):
                continue
        out[0, count] = document
        out[1, count] = p
        out[2, count] = at
        out[3, count] = position
        count += 1
    return out[0, :count].copy(), out[1, :count].copy(), out[2, :count].copy(), out[3, :count].copy()
