"""Sets of shingles of texts, as arrays of hashes: what near-duplicates are told by.

A shingle is `ngram_size` tokens in a row; a shorter text is one shingle, itself; a text without tokens has none, and
equals nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.tokens import U64, fold, mix, powers, token_hashes

_LENGTH_SALT = np.uint64(0xD6E8FEB86659FD93)
_BATCH_CHARS = 1 << 18  # small enough that the passes over a batch stay near the cache


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """The shingles of n texts as 64-bit hashes.

    Attributes
    ----------
    values
        Sorted and unique within a text; shape (total,).
    offsets
        Where each text begins in `values`; shape (n + 1,).
    sequences
        A hash of all tokens of a text in their order, 0 for a text without tokens; shape (n,).
    """

    values: U64
    offsets: NDArray[np.int64]
    sequences: U64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of distinct shingles of each text, shape (n,)."""
        return np.diff(self.offsets)

    def of(self, i: int) -> U64:
        """Return the sorted shingles of text i."""
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def jaccard(self, i: int, other: ShingleSets, j: int) -> float:
        """Return the Jaccard similarity of text i and text j of `other`, in [0, 1]; 0 if either has no shingle.

        Exact up to collisions of a 64-bit hash: between two texts of 1,000 tokens, once in 10^13.
        """
        a, b = self.of(i), other.of(j)
        if not len(a) or not len(b):
            return 0.0
        both = np.concatenate((a, b))
        both.sort()
        shared = int(np.count_nonzero(both[1:] == both[:-1]))
        return shared / (len(both) - shared)


def shingle_sets(texts: Sequence[str], ngram_size: int) -> ShingleSets:
    """Return the sets of shingles of the texts.

    Parameters
    ----------
    texts
        n texts, normalised.
    ngram_size
        Tokens in a shingle, 1 or more.

    Raises
    ------
    ValueError
        If `ngram_size` is below 1.
    """
    if ngram_size < 1:
        raise ValueError(f"ngram_size must be at least 1, got {ngram_size}")
    parts = [_batch_sets(batch, ngram_size) for batch in _batches(texts)]
    counts = np.concatenate([np.zeros(1, np.int64), *(count for _, count, _ in parts)])
    values = np.concatenate([np.empty(0, np.uint64), *(value for value, _, _ in parts)])
    sequences = np.concatenate([np.empty(0, np.uint64), *(sequence for _, _, sequence in parts)])
    return ShingleSets(values, np.cumsum(counts), sequences)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(fold(text))
        size += len(batch[-1])
        if size >= _BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _batch_sets(folded: Sequence[str], ngram_size: int) -> tuple[U64, NDArray[np.int64], U64]:
    tokens, counts = token_hashes(folded)
    values, sizes = _shingle_hashes(tokens, counts, ngram_size)
    unique, unique_sizes = _sorted_sets(values, sizes)
    return unique, unique_sizes, _sequence_hashes(tokens, counts)


def _shingle_hashes(tokens: U64, counts: NDArray[np.int64], ngram_size: int) -> tuple[U64, NDArray[np.int64]]:
    """Return the hashes of all shingles in a row, repeats included, and how many each text has."""
    ends = np.cumsum(counts)
    begins = ends - counts
    is_long = counts >= ngram_size
    sizes = np.where(is_long, counts - ngram_size + 1, np.minimum(counts, 1))
    values = np.empty(int(sizes.sum()), np.uint64)
    from_long = np.repeat(is_long, sizes)
    values[from_long] = _windows(tokens, begins, ends, ngram_size)
    firsts = np.cumsum(sizes) - sizes
    for length in range(1, ngram_size):
        chosen = np.flatnonzero(counts == length)
        values[firsts[chosen]] = _combined([tokens[begins[chosen] + k] for k in range(length)])
    return values, sizes


def _windows(tokens: U64, begins: NDArray[np.int64], ends: NDArray[np.int64], ngram_size: int) -> U64:
    if len(tokens) < ngram_size:
        return np.empty(0, np.uint64)
    num_windows = len(tokens) - ngram_size + 1
    inside = np.ones(len(tokens), np.bool_)
    for k in range(1, ngram_size):
        # The k-th token from the end of a text begins no window of it.
        inside[(ends - k)[ends - k >= begins]] = False
    return _combined([tokens[k : k + num_windows] for k in range(ngram_size)])[inside[:num_windows]]


def _combined(parts: Sequence[U64]) -> U64:
    weights, _ = powers(len(parts) + 1)
    total = parts[0] * weights[1]
    for k, part in enumerate(parts[1:], start=2):
        total += part * weights[k]
    # The length is salted in: a text of three tokens is not a shingle of three tokens of a longer one.
    total += np.multiply(_LENGTH_SALT, np.full(1, len(parts), np.uint64))
    return mix(total)


def _sorted_sets(values: U64, sizes: NDArray[np.int64]) -> tuple[U64, NDArray[np.int64]]:
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        values[begin:end].sort()
    first = np.ones(len(values), np.bool_)
    first[1:] = values[1:] != values[:-1]
    first[bounds[:-1][sizes > 0]] = True
    kept = np.concatenate((np.zeros(1, np.int64), np.cumsum(first)))
    return values[first], np.diff(kept[bounds])


def _sequence_hashes(tokens: U64, counts: NDArray[np.int64]) -> U64:
    ends = np.cumsum(counts)
    power, inverse = powers(len(tokens))
    prefix = np.zeros(len(tokens) + 1, np.uint64)
    np.cumsum(tokens * power[: len(tokens)], out=prefix[1:])
    begins = ends - counts
    hashes = mix((prefix[ends] - prefix[begins]) * inverse[begins] + counts.astype(np.uint64) * _LENGTH_SALT)
    return np.where(counts > 0, hashes | np.uint64(1), np.uint64(0))
