"""Near-duplicates: pairs of texts whose shingle sets have a Jaccard similarity of at least a threshold.

Candidates come by MinHash bands (`minhash`); each is verified on the sets themselves.

Bands wide enough to miss nothing also bring together texts that merely share a template. A band that more than `_CROWD`
texts share is therefore replaced, for these texts, by the prefix filter (Chaudhuri et al., 2006; Xiao et al., PPJoin,
2008): with all shingles in one order, the rare ones first, two sets of similarity t or more share one among the first
|x| - ceil(t |x|) + 1 of each. That filter misses no pair, so the probability of a miss stays that of the bands.

The bands are joined on sorted arrays, not in `datasketch.MinHashLSH`, whose candidates they give (a test compares
them): its dictionaries took 20 kB a text, 5 GB for 250,000, and 19 times as long (`tests/perf/dedup.py` measures both).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.minhash import U32, Bands, band_keys, signatures
from curation.kernels.postings import Counts, Indices, Lookup, Mask, Postings, Probes, cut, in_chunks, ranges, runs
from curation.kernels.shingles import ShingleSets
from curation.kernels.tokens import U64

_CROWD = 64
_ITEM_BLOCK = 512  # items between two looks at what has died
_PAIR_CHUNK = 1 << 22  # candidate pairs in memory at a time
_FREQUENCY_BITS = 20
_SLACK = 1e-9  # over the rounding of threshold * size, so that a filter errs towards a candidate


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Which items are near to a kept one that comes before them.

    Attributes
    ----------
    items, keepers
        The dropped items, ascending, and the first kept item that each is near to.
    scores
        Their similarity.
    num_candidates, num_verified
        Pairs that the filters let through to a look at both signatures, and pairs compared in full.
    """

    items: Indices
    keepers: Indices
    scores: NDArray[np.float64]
    num_candidates: int
    num_verified: int


class NearIndex:
    """What finds the pairs of sets that may be near.

    Parameters
    ----------
    sets
        The sets; of two near ones the one that comes first is to be kept.
    threshold
        Jaccard similarity from which two sets are near, in (0, 1].
    num_perm, bands
        Values of a signature, and how they are banded for `threshold`.
    """

    def __init__(self, sets: ShingleSets, *, threshold: float, num_perm: int, bands: Bands) -> None:
        self.sets = sets
        self.threshold = threshold
        self.bands = bands
        self.signatures = signatures(sets, num_perm)
        self.postings = self._without_crowds(self._band_rows(sets, self.signatures).sorted())

    def candidates(self, postings: Postings, probes: Probes, alive: Mask) -> tuple[Indices, Indices, int]:
        """Return the pairs (item, earlier item) whose sizes and first shared key allow the threshold, sorted.

        The third value is how many rows were looked up in vain, since their item is no longer alive.
        """
        where = ranges(probes.begins, probes.lengths)
        a, left = np.repeat(probes.queries, probes.lengths), np.repeat(probes.left, probes.lengths)
        b = postings.items[where]
        kept = alive[b]
        num_dead = len(kept) - int(np.count_nonzero(kept))
        if num_dead:
            a, b, left, where = a[kept], b[kept], left[kept], where[kept]
        sizes = self.sets.sizes[a] + self.sets.sizes[b]
        # Of |a| + |b| shingles a pair at similarity t shares t / (1 + t).
        needed = np.ceil(sizes * (self.threshold / (1.0 + self.threshold)) - _SLACK)
        enough = np.minimum(left, postings.left[where]) >= needed
        num_items = max(len(self.sets), 1)
        pairs = np.unique(a[enough].astype(np.int64) * num_items + b[enough])
        return pairs // num_items, pairs % num_items, num_dead

    def _band_rows(self, sets: ShingleSets, signature: U32) -> Postings:
        filled = np.flatnonzero(sets.sizes > 0).astype(np.int32)
        keys = cut(band_keys(signature[filled], self.bands).ravel())
        items = np.repeat(filled, self.bands.num_bands)
        return Postings(keys, items, sets.sizes[items].astype(np.int32))

    def _without_crowds(self, rows: Postings) -> Postings:
        _, lengths = runs(rows.keys)
        crowded = np.repeat(lengths > _CROWD, lengths)
        if not crowded.any():
            return rows
        members = np.unique(rows.items[crowded]).astype(np.int64)
        frequency = _frequency(self.sets.values[ranges(self.sets.offsets[members], self.sets.sizes[members])])
        return rows.where(~crowded).plus(self._prefix_rows(self.sets, members, frequency)).sorted()

    def _prefix_rows(self, sets: ShingleSets, members: Indices, frequency: Indices) -> Postings:
        parts = np.array_split(members, len(members) // 4096 + 1)
        columns = zip(*(self._prefix_part(sets, part, frequency) for part in parts), strict=True)
        return Postings(*(np.concatenate(column) for column in columns))

    def _prefix_part(self, sets: ShingleSets, members: Indices, frequency: Indices) -> tuple[U64, Counts, Counts]:
        sizes = sets.sizes[members]
        values = sets.values[ranges(sets.offsets[members], sizes)]
        owners = np.repeat(np.arange(len(members)), sizes)
        # Sorted within each set, rare shingles first: any order will do, if it is one order for all sets.
        values = values[np.lexsort((values, frequency[_frequency_slot(values)], owners))]
        places = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        lengths = sizes - np.ceil(self.threshold * sizes - _SLACK).astype(np.int64) + 1
        inside = places < np.repeat(lengths, sizes)
        left = np.repeat(sizes, sizes)[inside] - places[inside]
        return cut(values[inside]), members[owners[inside]].astype(np.int32), left.astype(np.int32)


def greedy_duplicates(index: NearIndex) -> Duplicates:
    """Return the items that are near to a kept item before them.

    Items are taken in the order of the index; one is kept unless it is directly near to a kept one. Where B is near to
    A and to C, but A not to C, A and C stay: similarity is not passed on.
    """
    sets = index.sets
    alive = np.ones(len(sets), np.bool_)
    found: list[tuple[int, int, float]] = []
    num_candidates = num_verified = 0
    for a, b in _earlier_candidates(index, alive):
        num_candidates += len(a)
        agree = _agreeing(index.signatures, a, index.signatures, b) >= index.bands.min_agreeing
        for item, keeper in zip(a[agree].tolist(), b[agree].tolist(), strict=True):
            if not (alive[item] and alive[keeper]):
                continue
            num_verified += 1
            similarity = sets.jaccard(item, sets, keeper)
            if similarity >= index.threshold:
                alive[item] = False
                found.append((item, keeper, similarity))
    items, keepers, scores = zip(*found, strict=True) if found else ((), (), ())
    return Duplicates(
        np.array(items, np.int64),
        np.array(keepers, np.int64),
        np.array(scores, np.float64),
        num_candidates,
        num_verified,
    )


def _earlier_candidates(index: NearIndex, alive: Mask) -> Iterator[tuple[Indices, Indices]]:
    """Yield candidate pairs (item, earlier item), items ascending; `alive` may change between two chunks."""
    sizes = index.sets.sizes
    lookup = Lookup.of(index.postings)
    for low in range(0, len(sizes), _ITEM_BLOCK):
        num_dead = num_met = 0
        for probes in in_chunks(lookup.earlier(low, low + _ITEM_BLOCK), _PAIR_CHUNK):
            a, b, dead = index.candidates(lookup.postings, probes, alive)
            num_dead += dead
            num_met += int(probes.lengths.sum())
            yield a, b
        if num_dead > max(num_met // 2, _PAIR_CHUNK // 64):
            lookup = Lookup.of(lookup.postings.where(alive[lookup.postings.items]))


def _agreeing(signature_a: U32, a: Indices, signature_b: U32, b: Indices) -> Indices:
    """Return for pairs of rows how many values of their signatures agree."""
    counts = np.empty(len(a), np.int64)
    for low in range(0, len(a), 4096):
        part = slice(low, low + 4096)
        counts[part] = np.count_nonzero(signature_a[a[part]] == signature_b[b[part]], axis=1)
    return counts


def _frequency_slot(values: U64) -> Indices:
    slots: Indices = (values >> np.uint64(64 - _FREQUENCY_BITS)).astype(np.int64)
    return slots


def _frequency(values: U64) -> Indices:
    """Return how often shingles occur, by the leading bits of their hash: near enough to put rare ones first."""
    counts = np.zeros(1 << _FREQUENCY_BITS, np.int64)
    for low in range(0, len(values), _PAIR_CHUNK):
        counts += np.bincount(_frequency_slot(values[low : low + _PAIR_CHUNK]), minlength=len(counts))
    return counts
