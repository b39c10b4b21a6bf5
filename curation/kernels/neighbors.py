"""Semantic duplicates: rows of a matrix whose cosine similarity is at least a threshold, found exactly.

FAISS' flat inner-product index answers "all kept rows within the threshold" for a block of rows at a time. What it is
given is shorter than the rows: with an orthonormal basis V of a few directions that hold most of their energy,

    x . y  <=  (Vx) . (Vy) + |x - V'Vx| |y - V'Vy|        (Cauchy and Schwarz, on what V leaves out)

and the right side is the inner product of rows of len(V) + 1 numbers. A pair under the threshold there is under it in
truth; the others are verified in double precision on the whole rows. So nothing is missed, and no cluster or graph that
could lose a neighbour is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.kernels.near import Duplicates

Vectors = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

_BLOCK = 4_096  # rows decided at a time, at most: FAISS multiplies matrices only for blocks of thousands
_MIN_BLOCK = 256
_HELD_PAIRS = 1 << 25  # candidate pairs of a block, about
_VERIFY_COST = 50.0  # of a number of a pair that passes the bound in vain, in numbers multiplied for the bound
_MARGIN = 1e-4  # over the single precision of the bound
_SAMPLE = 1024
_DIMENSIONS = (16, 32, 64, 128, 256)


class TooManyPairs(ValueError):
    """More pairs lie within the threshold than were allowed."""


def usable_rows(x: Vectors) -> NDArray[np.bool_]:
    """Tell for each row whether it has a direction: its norm is a finite number above 0."""
    norms = _norms(x, np.arange(len(x)))
    usable: NDArray[np.bool_] = np.isfinite(norms) & (norms > 0.0)
    return usable


def greedy_neighbors(x: Vectors, threshold: float, max_pairs: int, rows: Indices | None = None) -> Duplicates:
    """Return the rows that lie within the threshold of a kept row before them.

    A row is kept unless it is directly within the threshold of a kept one: similarity is not passed on.

    Parameters
    ----------
    x
        Vectors of any length, shape (n, d). Neither modified nor copied.
    threshold
        Cosine similarity, in (0, 1].
    max_pairs
        Pairs of a row and a kept row, or of two rows of a block, that may lie within the threshold.
    rows
        The rows of `x` to compare, all usable (see `usable_rows`), in the order that decides which of two is kept; by
        default all, in their order.

    Returns
    -------
    Duplicates
        Places in `rows`; scores in [-1, 1].

    Raises
    ------
    TooManyPairs
        If the search meets more pairs than `max_pairs`.
    ValueError
        If a row is not usable.

    Notes
    -----
    Costs O(n m len(V)) for m kept rows; memory O(n len(V)).
    """
    rows = np.arange(len(x)) if rows is None else rows
    search = _Search(x, rows, threshold, max_pairs)
    kept = np.ones(len(rows), np.bool_)
    found: list[tuple[int, int, float]] = []
    for low in range(0, len(rows), search.block):
        block = np.arange(low, min(low + search.block, len(rows)))
        for item, keeper, score in search.decided(block):
            kept[item] = False
            found.append((item, keeper, score))
        search.keep(block[kept[block]])
    items, keepers, scores = zip(*found, strict=True) if found else ((), (), ())
    return Duplicates(
        np.array(items, np.int64),
        np.array(keepers, np.int64),
        np.array(scores, np.float64),
        search.num_candidates,
        search.num_verified,
    )


class _Search:
    """The kept rows so far, and what lies near to them. Items are places in `rows`."""

    def __init__(self, x: Vectors, rows: Indices, threshold: float, max_pairs: int) -> None:
        import faiss

        self.x = x
        self.rows = rows
        self.threshold = threshold
        self.max_pairs = max_pairs
        self.num_candidates = self.num_verified = self.num_pairs = 0
        self.norms = _norms(x, rows)
        if not (np.isfinite(self.norms) & (self.norms > 0.0)).all():
            raise ValueError("every row must be finite and not zero")
        # A small matrix is searched sooner than a basis is found.
        self.basis, share = self._basis() if len(rows) > 4 * _SAMPLE else (None, 1.0)
        self.block = min(_BLOCK, max(_MIN_BLOCK, int(_HELD_PAIRS / (share * len(rows) + 1.0))))
        self.bounds = self._bounds()
        self.index = faiss.IndexFlatIP(self.bounds.shape[1])
        self.indexed = np.empty(0, np.int64)

    def _bounds(self) -> NDArray[np.float32]:
        """Return the rows whose inner products bound the cosines from above: (n, len(V) + 1), or the unit rows."""
        width = self.x.shape[1] if self.basis is None else len(self.basis) + 1
        bounds = np.empty((len(self.rows), width), np.float32)
        for low in range(0, len(self.rows), _BLOCK):
            part = slice(low, low + _BLOCK)
            unit = self._unit(part)
            bounds[part] = unit if self.basis is None else _with_tail(unit @ self.basis.T)
        return bounds

    def _unit(self, items: Indices | slice) -> NDArray[np.float64]:
        unit: NDArray[np.float64] = self.x[self.rows[items]].astype(np.float64) / self.norms[items, None]
        return unit

    def _basis(self) -> tuple[NDArray[np.float64] | None, float]:
        """Return the few orthonormal directions, shape (m, d), that make the search cheap, or None if none do.

        They are those of most energy in an even sample of the rows, and as many as make bound and verification together
        cheapest in another: on its own sample a basis looks better than it is. They decide how fast a pair is ruled
        out, not whether. The second value is the share of pairs that will be candidates.
        """
        both = self._unit(np.linspace(0, len(self.rows) - 1, 2 * _SAMPLE).astype(np.int64))
        directions, sample = np.linalg.svd(both[::2], full_matrices=False)[2], both[1::2]
        near = sample @ sample.T >= self.threshold
        best, share, least_cost = None, float(np.mean(near)), float(self.x.shape[1])
        for m in (m for m in _DIMENSIONS if m < self.x.shape[1]):
            bounds = _with_tail(sample @ directions[:m].T)
            inside = bounds @ bounds.T >= self.threshold - _MARGIN
            cost = m + 1 + float(np.mean(inside & ~near)) * _VERIFY_COST * self.x.shape[1]
            if cost < least_cost:
                best, share, least_cost = directions[:m], float(np.mean(inside)), cost
        return best, share

    def keep(self, items: Indices) -> None:
        """Add items to the kept ones."""
        if len(items):
            self.index.add(self.bounds[items])
            self.indexed = np.append(self.indexed, items)

    def decided(self, block: Indices) -> Iterator[tuple[int, int, float]]:
        """Yield (item, first kept item within the threshold, cosine) of the items that are not to be kept."""
        gone: set[int] = set()
        for item, keeper, score in self._within(*self._candidates(block)):
            if item not in gone and keeper not in gone:
                gone.add(item)
                yield item, keeper, score

    def _candidates(self, block: Indices) -> tuple[Indices, Indices]:
        radius = self.threshold - _MARGIN
        limits, _, hits = self.index.range_search(self.bounds[block], radius)
        inside = np.flatnonzero(self.bounds[block] @ self.bounds[block].T > radius)
        later, earlier = np.divmod(inside[inside % len(block) < inside // len(block)], len(block))
        items = np.concatenate((np.repeat(block, np.diff(limits.astype(np.int64))), block[later]))
        others = np.concatenate((self.indexed[hits], block[earlier]))
        self.num_candidates += len(items)
        order = np.lexsort((others, items))
        return items[order], others[order]

    def _within(self, items: Indices, others: Indices) -> Iterator[tuple[int, int, float]]:
        for low in range(0, len(items), 4096):
            a, b = items[low : low + 4096], others[low : low + 4096]
            self.num_verified += len(a)
            cosines = np.einsum("ij,ij->i", self.x[self.rows[a]], self.x[self.rows[b]], dtype=np.float64) / (
                self.norms[a] * self.norms[b]
            )
            near = cosines >= self.threshold
            self.num_pairs += int(np.count_nonzero(near))
            if self.num_pairs > self.max_pairs:
                raise TooManyPairs(f"more than {self.max_pairs} pairs at cosine {self.threshold}")
            # Rounding alone takes a row's cosine with itself past 1.
            yield from zip(a[near].tolist(), b[near].tolist(), np.clip(cosines[near], -1.0, 1.0).tolist(), strict=True)


def _norms(x: Vectors, rows: Indices) -> NDArray[np.float64]:
    norms = np.empty(len(rows))
    for low in range(0, len(rows), _BLOCK):
        part = x[rows[low : low + _BLOCK]].astype(np.float64)
        # A norm that overflows is infinite, which is how an unusable row is known.
        with np.errstate(over="ignore", invalid="ignore"):
            norms[low : low + _BLOCK] = np.sqrt(np.einsum("ij,ij->i", part, part))
    return norms


def _with_tail(head: NDArray[np.float64]) -> NDArray[np.float64]:
    """Append to coordinates of unit rows the length of what they leave out."""
    rest = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", head, head), 0.0))
    return np.column_stack((head, rest))
