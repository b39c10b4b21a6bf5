"""The compiled kernel (extra `[fast]`): documents where they lie in memory, from bytes to matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.audit.machine_code import kept_characters, load_machine_code
from curation.kernels.audit_candidates import may_be_missing, told_run
from curation.kernels.audit_fold import four_byte_code, three_byte_table, two_byte_table
from curation.kernels.audit_index import SHINGLE, SHORT_SHINGLE, OverlapIndex, min_around
from curation.kernels.audit_overlap import Found
from curation.kernels.audit_postings import Postings
from curation.kernels.audit_shingles import ShingleTable
from curation.kernels.audit_tokens import Batch, Bytes, Ints, Tokens

_NEEDS_PREPARATION, _UNKNOWN = 1, 2  # of `audit_fast`, which needs numba to be imported
_UNKNOWN_CODE = 0xFFFFFFFF
_FOUR_BYTE_CODES = 1 << 21
_MATCHES = 1 << 16
_CHUNK = 256  # of `audit_fast_filter`
_COARSE_WORDS = 1 << 15


def _address(array: Any) -> int:
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

    def arguments(self) -> tuple[int, ...]:
        """Return what the machine code takes of it: address of the filter and shift, of the rows and shift."""
        held = _address(self.seen), _shift(len(self.seen))
        return *held, _address(self.begins), _shift(len(self.begins) - 1), _address(self.rows)


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
    all_tokens
        Keep the tokens of documents without matches, too.
    """

    def __init__(self, index: OverlapIndex, *, near_misses: bool = False, all_tokens: bool = False) -> None:
        self._code = load_machine_code()
        self._share, self._all_tokens = min_around(index.max_prompts), all_tokens
        self._five, self._three = _Table.of(index.five), _Table.of(index.three)
        self._characters = (
            kept_characters(two_byte_table),
            kept_characters(three_byte_table),
            np.full(_FOUR_BYTE_CODES, _UNKNOWN_CODE, np.uint32),
        )
        prompts = index.hashes, index.first, index.num_tokens, index.weighted, index.num_weighted
        asked = may_be_missing(index, near_misses=near_misses), told_run(index), index.stride
        self._prompts = [np.ascontiguousarray(array) for array in (*prompts, *asked)]
        self._heads = np.full(len(index.num_tokens), -1, np.int32)
        self._rows, self._shingles = np.empty((2, _CHUNK), np.int32), np.empty(_CHUNK, np.uint64)
        self._matches = np.empty((2, _MATCHES, 4), np.int64)
        self._following = np.empty(_MATCHES, np.int32)
        self._capacity = self._longest = -1

    def _reserve(self, num_bytes: int, num_documents: int, longest: int) -> None:
        # Working memory that is kept: fresh pages for every batch would cost more than the search.
        most = num_bytes // 2 + num_documents + 8  # tokens lie at least two bytes apart, or are three bytes long
        if most > self._capacity:
            self._capacity = most
            self._hashes, self._edges = np.empty(most, np.uint64), np.empty(2 * most, np.int32)
        if longest > self._longest:
            self._longest = longest
            self._buffer = np.empty(longest + 64, np.uint8)
            self._flagged = np.empty((2, longest // 2 + 8), np.int32)

    def __call__(self, raw: Bytes, begin: Ints, end: Ints) -> Found:
        """Find what the documents ``raw[begin[i]:end[i]]`` share with the prompts.

        Parameters
        ----------
        raw
            UTF-8 bytes, fewer than 2**31.
        begin, end
            Shape ``(d,)``.
        """
        length, num_documents = end - begin, len(begin)
        self._reserve(int(length.sum()), num_documents, int(length.max(initial=0)))
        status, num_tokens = np.zeros(num_documents, np.uint8), np.zeros(num_documents, np.int64)
        first, num_matches = np.zeros(num_documents + 1, np.int64), np.zeros(2, np.int64)
        done = 0
        while done < num_documents:
            done = self._search(raw, begin, end, done, first, num_tokens, status, num_matches)
            if done < num_documents and status[done] == _UNKNOWN:
                self._learn(raw[begin[done] : end[done]])
            elif done < num_documents:
                self._matches = np.concatenate([self._matches, np.empty_like(self._matches)], axis=1)
                self._following = np.empty(self._matches.shape[1], np.int32)
        edges = self._edges[: 2 * first[-1]]
        none = np.zeros(0, np.int64)
        tokens = Tokens(self._hashes[: first[-1]], edges[0::2], edges[1::2], first, none, none.astype(np.uint8))
        fives, threes = num_matches.tolist()
        postings = _postings(self._matches[0, :fives], SHINGLE), _postings(self._matches[1, :threes], SHORT_SHINGLE)
        left = np.flatnonzero(status == _NEEDS_PREPARATION)
        return Found(Batch(raw, begin, end, tokens, {}), postings, num_tokens, left)

    def _search(
        self,
        raw: Bytes,
        begin: Ints,
        end: Ints,
        document: int,
        first: Ints,
        num_tokens: Ints,
        status: Bytes,
        num_matches: Ints,
    ) -> int:
        """Go on with a document; return the one that could not be finished, or how many there are."""
        five, three = self._five, self._three
        return self._code.find_shared(
            *(_address(raw), len(raw), _address(begin), _address(end), document, len(begin)),
            *map(_address, (*self._characters, self._buffer)),
            *(_address(five.coarse), _shift(len(five.coarse)), *five.arguments(), *three.arguments()),
            *(*map(_address, self._prompts), self._share, self._all_tokens),
            *map(_address, (self._hashes, self._edges, first, num_tokens, status, *self._matches)),
            self._matches.shape[1],
            *map(_address, (num_matches, *self._flagged, *self._rows, self._heads, self._following, self._shingles)),
        )

    def _learn(self, raw: Bytes) -> None:
        """Fold the characters of four bytes that were not met before: too many for a table, too few to matter."""
        at = np.flatnonzero(raw >= 0xF0)
        at = at[at + 4 <= len(raw)]
        point = np.zeros(len(at), np.int64)
        for i in range(4):
            point = (point << 6) | (raw[at + i] & np.uint8(7 if i == 0 else 63))
        for code in np.unique(point).tolist():
            self._characters[2][code] = four_byte_code(code)


def _postings(matches: NDArray[np.int64], size: int) -> Postings:
    document, prompt, at, position = matches.T.copy()
    return Postings(document, prompt, at, position, size)
