"""MinHash signatures of shingle sets, and the bands by which locality-sensitive hashing finds near pairs.

Signatures are datasketch's, bit for bit (scheme `affine32`), computed on whole arrays: its `update` takes a Python call
a shingle. A pair of Jaccard similarity s agrees in each of the `num_perm` values with probability s (Broder, 1997), and
in at least one of b bands of r values with probability 1 - (1 - s^r)^b (Leskovec et al., Mining of Massive Datasets,
section 3.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from curation.kernels.shingles import ShingleSets
from curation.kernels.tokens import U64, mix

U32 = NDArray[np.uint32]

_SEED = 1  # datasketch's own default; not a recipe's matter, since every pair found is verified
_BLOCK = 1 << 17  # shingles hashed at a time: their permuted values stay in the cache


@dataclass(frozen=True, slots=True)
class Bands:
    """How near pairs are looked for.

    Attributes
    ----------
    num_bands, rows
        Bands of a signature, and values in a band.
    min_agreeing
        Values of two signatures that must agree before the pair is verified.
    miss_probability
        Of a pair exactly at the threshold, by bands and `min_agreeing` together; a bound from above.
    """

    num_bands: int
    rows: int
    min_agreeing: int
    miss_probability: float


@lru_cache(maxsize=16)
def choose_bands(threshold: float, num_perm: int, max_miss_probability: float) -> Bands:
    """Return the most selective bands that keep to the allowed probability of a miss.

    Parameters
    ----------
    threshold
        Jaccard similarity, in (0, 1].
    num_perm
        Values of a signature.
    max_miss_probability
        Of a pair at the threshold, in (0, 1). Half of it is for the bands, half for `min_agreeing`.

    Raises
    ------
    ValueError
        If even bands of one value miss such a pair more often.
    """
    allowed = max_miss_probability / 2
    for rows in range(num_perm, 0, -1):
        num_bands = num_perm // rows
        missed = (1.0 - threshold**rows) ** num_bands
        if missed <= allowed:
            min_agreeing, below = _min_agreeing(threshold, num_perm, allowed)
            return Bands(num_bands, rows, min_agreeing, missed + below)
    raise ValueError(
        f"num_perm = {num_perm} cannot keep misses at jaccard_threshold = {threshold} under {max_miss_probability}: "
        "raise num_perm or the threshold"
    )


def signatures(sets: ShingleSets, num_perm: int) -> U32:
    """Return the MinHash signatures of the sets, shape (n, num_perm); of an empty set all ones, as in datasketch."""
    result = np.full((len(sets), num_perm), np.iinfo(np.uint32).max, np.uint32)
    a, b = _permutations(num_perm)
    filled = np.flatnonzero(sets.sizes > 0)
    begins = sets.offsets[filled]
    for first, last in _blocks(begins, len(sets.values)):
        stop = begins[last] if last < len(begins) else len(sets.values)
        hashes = _mix32((sets.values[begins[first] : stop] >> np.uint64(32)).astype(np.uint32))
        segments = begins[first:last] - begins[first]
        permuted = np.empty_like(hashes)
        for k in range(num_perm):
            np.multiply(hashes, a[k], out=permuted)
            permuted += b[k]
            result[filled[first:last], k] = np.minimum.reduceat(permuted, segments)
    return result


def band_keys(signature: U32, bands: Bands) -> U64:
    """Return one 64-bit key a band; equal keys mean equal bands, up to a hash. Shape (n, num_bands)."""
    used = signature[:, : bands.num_bands * bands.rows].reshape(len(signature), bands.num_bands, bands.rows)
    keys = np.repeat(np.arange(1, bands.num_bands + 1, dtype=np.uint64)[None, :], len(signature), axis=0)
    keys = mix(keys)
    for row in range(bands.rows):
        keys = mix(keys ^ used[:, :, row].astype(np.uint64))
    return keys


def _min_agreeing(threshold: float, num_perm: int, allowed: float) -> tuple[int, float]:
    """Return the largest m with P(Binomial(num_perm, threshold) < m) <= allowed, and that probability."""
    below = 0.0
    for m in range(num_perm + 1):
        chance = math.comb(num_perm, m) * threshold**m * (1.0 - threshold) ** (num_perm - m)
        if below + chance > allowed:
            return m, below
        below += chance
    return num_perm, below


def _blocks(begins: NDArray[np.int64], total: int) -> list[tuple[int, int]]:
    """Return ranges of sets with about `_BLOCK` shingles each."""
    if not len(begins):
        return []
    edges = np.searchsorted(begins, np.arange(_BLOCK, total, _BLOCK)).tolist()
    bounds = sorted({0, len(begins), *edges})
    return list(pairwise(bounds))


@lru_cache(maxsize=4)
def _permutations(num_perm: int) -> tuple[U32, U32]:
    from datasketch import MinHash

    a, b = MinHash(num_perm=num_perm, seed=_SEED, scheme="affine32").permutations
    return a.astype(np.uint32), b.astype(np.uint32)


def _mix32(h: U32) -> U32:
    """Return the 32-bit MurmurHash3 finaliser, with which `affine32` begins."""
    h = h ^ (h >> np.uint32(16))
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    return h
