"""What prompts have in common: their longest shared prefix, and the n-grams that occur in more than one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, 2**64 over the golden ratio
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64 (Steele et al., 2014)

PARTITIONS = 16
"""Parts into which n-grams are divided by their first bits, so that only one part is sorted at a time."""


def longest_shared_prefix(rows: Sequence[Sequence[int]]) -> int:
    """Return the length of the longest prefix that two of the rows share.

    Parameters
    ----------
    rows
        Token ids, or their beginnings: what is cut off cannot be seen as shared.

    Returns
    -------
    int
        In tokens; 0 for fewer than two rows.

    Notes
    -----
    In sorted order the rows that share most are neighbours, so this costs one sort and one pass.
    """
    ordered = sorted(tuple(row) for row in rows)
    return max((_shared(a, b) for a, b in pairwise(ordered)), default=0)


def _shared(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def ngram_hashes(ids: Sequence[int], size: int = 8) -> NDArray[np.uint64]:
    """Return the distinct hashes of the n-grams of a row, sorted; empty if the row is shorter than one.

    Parameters
    ----------
    ids
        Token ids, each in [0, 2**32).
    size
        Tokens in an n-gram, >= 1.

    Notes
    -----
    Polynomial in 2**64, finished by splitmix64: of a million n-grams two collide with probability 3e-8.
    """
    if size < 1:
        raise ValueError(f"size must be >= 1, got {size}")
    tokens = np.asarray(ids, dtype=np.uint64) + np.uint64(1)
    if tokens.size < size:
        return np.empty(0, np.uint64)
    hashes = np.zeros(tokens.size - size + 1, np.uint64)
    for i in range(size):
        hashes = hashes * _MULTIPLIER + tokens[i : i + hashes.size]
    hashes = (hashes ^ (hashes >> np.uint64(30))) * _MIX_1
    hashes = (hashes ^ (hashes >> np.uint64(27))) * _MIX_2
    return np.unique(hashes ^ (hashes >> np.uint64(31)))


def shared_shares(rows: Sequence[NDArray[np.uint64]]) -> NDArray[np.float64]:
    """Return, for each row, the share of its distinct n-grams that another row has too.

    Parameters
    ----------
    rows
        Distinct hashes of each row, sorted, as `ngram_hashes` gives them.

    Returns
    -------
    ndarray of shape (len(rows),)
        In [0, 1]; NaN for a row without n-grams.
    """
    shared = np.zeros(len(rows), np.int64)
    for part in range(PARTITIONS):
        # The upper bits divide sorted rows into runs, so a part of a row is a slice.
        low = np.uint64(part * (2**64 // PARTITIONS))
        high = np.uint64((part + 1) * (2**64 // PARTITIONS) - 1)
        slices = [row[np.searchsorted(row, low) : np.searchsorted(row, high, side="right")] for row in rows]
        repeated = _repeated(slices)
        for i, piece in enumerate(slices):
            at = np.searchsorted(repeated, piece)
            at[at == repeated.size] = 0
            shared[i] += int(np.count_nonzero(repeated[at] == piece)) if repeated.size else 0
    sizes = np.array([row.size for row in rows], np.int64)
    return np.where(sizes > 0, shared / np.maximum(sizes, 1), np.nan)


def _repeated(slices: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    if not slices:
        return np.empty(0, np.uint64)
    hashes = np.concatenate(slices)
    hashes.sort()
    return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
