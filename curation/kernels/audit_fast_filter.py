"""Which shingles of a document a prompt may hold, in machine code (extra `[fast]`): the filter before the search."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.kernels.audit_hash import C
from curation.kernels.pointers import compiled, prefetch

CHUNK = 256
"""Shingles that are looked at together: all is asked for before any of it is looked at."""

_C1 = np.uint64(C)
_C2 = np.uint64(C * C % 2**64)
_SIX = np.uint64(63)
_ONE = np.uint64(1)


@compiled
def shingle_at(hashes: Any, i: Any, size: Any) -> Any:
    """Hash of the shingle of 3 or 5 tokens that begins at token i."""
    shingle = (hashes[i] * _C1 + hashes[i + 1]) * _C1 + hashes[i + 2]
    if size == 5:
        shingle = shingle * _C2 + hashes[i + 3] * _C1 + hashes[i + 4]
    return shingle


@compiled
def _held(seen: Any, shift: Any, shingle: Any) -> Any:
    """Return 1 if a shingle may be in a table, else 0."""
    word = seen[np.int64(shingle >> shift)]
    held = word >> (shingle & _SIX)
    held &= word >> ((shingle >> np.uint64(6)) & _SIX)
    held &= word >> ((shingle >> np.uint64(12)) & _SIX)
    return np.int64(held & _ONE)


@compiled
def _hash_chunk(
    hashes: Any,
    begin: Any,
    count: Any,
    coarse: Any,
    coarse_shift: Any,
    seen3: Any,
    shift3: Any,
    flagged3: Any,
    n3: Any,
    shingles: Any,
) -> Any:
    """Write the hashes of `count` shingles of 5, and where those of 3 stand that may be in a table.

    A pair of tokens is hashed once, for the four shingles that it is part of.
    """
    pair0 = hashes[begin] * _C1 + hashes[begin + 1]
    pair1 = hashes[begin + 1] * _C1 + hashes[begin + 2]
    pair2 = hashes[begin + 2] * _C1 + hashes[begin + 3]
    for k in range(count):
        i = begin + k
        three = pair0 * _C1 + hashes[i + 2]
        pair3 = hashes[i + 3] * _C1 + hashes[i + 4]
        five = three * _C2 + pair3
        pair0, pair1, pair2 = pair1, pair2, pair3
        shingles[k] = five
        prefetch(coarse, np.int64(five >> coarse_shift))
        if _held(seen3, shift3, three) != 0:  # so few that the processor foresees it
            flagged3[n3] = np.int32(i)
            n3 += 1
    return n3


@compiled
def _filter_chunk(
    begin: Any, count: Any, coarse: Any, coarse_shift: Any, seen: Any, shift: Any, flagged: Any, n: Any, shingles: Any
) -> Any:
    """Write where the shingles stand that the coarse filter lets through; return how many there are then.

    No step branches: which shingles it lets through follows no pattern.
    """
    likely: Any = n
    for k in range(count):
        flagged[likely] = np.int32(begin + k)
        likely += _held(coarse, coarse_shift, shingles[k])
    for j in range(n, likely):
        prefetch(seen, np.int64(shingles[np.int64(flagged[j]) - begin] >> shift))
    return likely


@compiled
def _confirm(hashes: Any, seen: Any, shift: Any, flagged: Any, n: Any) -> Any:
    """Keep those of n flagged shingles that the larger filter lets through, too; return how many."""
    kept: Any = 0
    for j in range(n):
        place = flagged[j]
        flagged[kept] = place
        kept += _held(seen, shift, shingle_at(hashes, np.int64(place), 5))
    return kept


@compiled
def flag_shingles(
    hashes: Any,
    first: Any,
    last: Any,
    coarse: Any,
    coarse_shift: Any,
    seen5: Any,
    shift5: Any,
    seen3: Any,
    shift3: Any,
    flagged5: Any,
    flagged3: Any,
    shingles: Any,
) -> Any:
    """Write where the shingles of one document stand that may be in a table; return how many there are of each.

    The larger filter is looked at when all of the document has passed the coarse one, and its words have come.

    Parameters
    ----------
    hashes, first, last
        Tokens ``first`` to ``last - 1`` are the document's.
    coarse, coarse_shift
        A filter for shingles of 5 that is small enough for a core's own cache.
    seen5, shift5, seen3, shift3
        Filter of each table, and how far to shift a hash for its word in it.
    flagged5, flagged3
        Out: tokens at which the shingles begin.
    shingles
        Working memory, `CHUNK` entries.
    """
    n5: Any = 0
    n3: Any = 0
    for begin in range(first, last - 4, CHUNK):
        count = min(CHUNK, last - 4 - begin)
        n3 = _hash_chunk(hashes, begin, count, coarse, coarse_shift, seen3, shift3, flagged3, n3, shingles)
        n5 = _filter_chunk(begin, count, coarse, coarse_shift, seen5, shift5, flagged5, n5, shingles)
    for i in range(max(first, last - 4), last - 2):
        flagged3[n3] = np.int32(i)
        n3 += _held(seen3, shift3, shingle_at(hashes, i, 3))
    return _confirm(hashes, seen5, shift5, flagged5, n5), n3
