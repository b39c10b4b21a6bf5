"""Sorted rows (key, item) that answer, for many keys at once, which items share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.tokens import U64

Indices = NDArray[np.int64]
Counts = NDArray[np.int32]
Mask = NDArray[np.bool_]

_ROW_BITS = 27  # of a key, for the sort


@dataclass(frozen=True, slots=True)
class Postings:
    """Rows (key, item), sorted: items that share a key may be near.

    `left` is how many shingles the item has from the key's own to the end of the order: what two items can share at
    most if this key is the first that they share. For a band it is the size of the set.
    """

    keys: U64
    items: Counts
    left: Counts

    def where(self, kept: Mask) -> Postings:
        """Return the rows where `kept` is true."""
        return Postings(self.keys[kept], self.items[kept], self.left[kept])

    def sorted(self) -> Postings:
        """Return the rows by key, and within a key in the order in which they were."""
        if len(self.keys) > 1 << _ROW_BITS:
            order = np.argsort(self.keys, kind="stable")
        else:
            # The place of the row in the bits that `cut` left free: one plain sort, several times as fast.
            packed = self.keys | np.arange(len(self.keys), dtype=np.uint64)
            packed.sort()
            order = (packed & np.uint64((1 << _ROW_BITS) - 1)).astype(np.int64)
        return Postings(self.keys[order], self.items[order], self.left[order])

    def plus(self, other: Postings) -> Postings:
        """Return the rows of both, not sorted."""
        return Postings(
            np.concatenate((self.keys, other.keys)),
            np.concatenate((self.items, other.items)),
            np.concatenate((self.left, other.left)),
        )


@dataclass(frozen=True, slots=True)
class Probes:
    """For each of many keys of queries: where in the postings the items that share it lie."""

    queries: Counts
    left: Counts
    begins: Indices
    lengths: Indices

    def part(self, chosen: Indices | slice) -> Probes:
        """Return the chosen probes."""
        return Probes(self.queries[chosen], self.left[chosen], self.begins[chosen], self.lengths[chosen])


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows of postings by item, and for each row where its key begins."""

    postings: Postings
    first_of_key: Indices
    by_item: Indices
    items: Counts

    @classmethod
    def of(cls, postings: Postings) -> Lookup:
        """Return the lookup of sorted postings, without the keys that only one item has."""
        _, lengths = runs(postings.keys)
        postings = postings.where(np.repeat(lengths > 1, lengths))
        starts, lengths = runs(postings.keys)
        by_item = np.argsort(postings.items, kind="stable")
        return cls(postings, np.repeat(starts, lengths), by_item, postings.items[by_item])

    def earlier(self, low: int, high: int) -> Probes:
        """Return the probes of the items in [low, high) for the items before each."""
        first, last = np.searchsorted(self.items, (low, high))
        rows = self.by_item[first:last]
        begins = self.first_of_key[rows]
        return Probes(self.items[first:last], self.postings.left[rows], begins, rows - begins)


def in_chunks(probes: Probes, num_pairs: int) -> Iterator[Probes]:
    """Cut probes, sorted by query, where a query ends, into parts of about `num_pairs` pairs."""
    if not len(probes.queries):
        return
    reached = np.cumsum(probes.lengths)
    last_of_query = np.flatnonzero(np.append(probes.queries[1:] != probes.queries[:-1], True))
    wanted = np.arange(num_pairs, reached[-1] + num_pairs, num_pairs)
    ends = last_of_query[np.minimum(np.searchsorted(reached[last_of_query], wanted), len(last_of_query) - 1)] + 1
    first = 0
    for end in np.unique(ends).tolist():
        yield probes.part(slice(first, end))
        first = end


def cut(keys: U64) -> U64:
    """Return keys with their last bits 0. That two keys become one by it is rare, and costs a look, never a verdict."""
    return keys >> np.uint64(_ROW_BITS) << np.uint64(_ROW_BITS)


def runs(keys: U64) -> tuple[Indices, Indices]:
    """Return where each run of equal keys begins, and how long it is."""
    is_first = np.append(np.ones(min(len(keys), 1), np.bool_), keys[1:] != keys[:-1])
    starts: Indices = np.flatnonzero(is_first)
    lengths: Indices = np.diff(np.append(starts, len(keys)))
    return starts, lengths


def ranges(begins: Indices, lengths: Indices) -> Indices:
    """Return begins[0], begins[0] + 1, … for lengths[0] numbers, then the same for the next."""
    shift = begins - (np.cumsum(lengths) - lengths)
    numbers: Indices = np.arange(int(lengths.sum())) + np.repeat(shift, lengths)
    return numbers
