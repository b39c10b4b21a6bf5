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

_BLOCK = 512
_MARGIN = 1e-4  # over the single precision of the bound
_SAMPLE = 1024
_DIMENSIONS = (16, 32, 64, 128, 256)


class TooManyPairs(ValueError):
    """More pairs lie within the threshold than were allowed."""


def usable_rows(x: Vectors) -> NDArray[np.bool_]:
    """Tell for each row whether it has a direction: its norm is a finite number above 0."""
    norms = _norms(x)
    usable: NDArray[np.bool_] = np.isfinite(norms) & (norms > 0.0)
    return usable


def greedy_neighbors(x: Vectors, threshold: float, max_pairs: int) -> Duplicates:
    """Return the rows that lie within the threshold of a kept row before them.

    A row is kept unless it is directly within the threshold of a kept one: similarity is not passed on.

    Parameters
    ----------
    x
        Vectors of any length, shape (n, d), all usable (see `usable_rows`), in the order that decides which of two is
        kept. Not modified.
    threshold
        Cosine similarity, in (0, 1].
    max_pairs
        Pairs that may be held or verified in all.

    Returns
    -------
    Duplicates
        Scores in [-1, 1].

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
    if not usable_rows(x).all():
        raise ValueError("every row must be finite and not zero")
    search = _Search(x, threshold, max_pairs)
    kept = np.ones(len(x), np.bool_)
    found: list[tuple[int, int, float]] = []
    for low in range(0, len(x), _BLOCK):
        rows = np.arange(low, min(low + _BLOCK, len(x)))
        for item, keeper, score in search.decided(rows):
            kept[item] = False
            found.append((item, keeper, score))
        search.keep(rows[kept[rows]])
    items, keepers, scores = zip(*found, strict=True) if found else ((), (), ())
    return Duplicates(
        np.array(items, np.int64),
        np.array(keepers, np.int64),
        np.array(scores, np.float64),
        search.num_candidates,
        search.num_verified,
    )


class _Search:
    """The kept rows so far, and what lies near to them."""

    def __init__(self, x: Vectors, threshold: float, max_pairs: int) -> None:
        import faiss

        self.x = x
        self.threshold = threshold
        self.max_pairs = max_pairs
        self.num_candidates = self.num_verified = 0
        self.norms = _norms(x)
        # A small matrix is searched sooner than a basis is found.
        self.basis = _basis(x, self.norms, threshold) if len(x) > 4 * _SAMPLE else None
        self.bounds = self._bounds()
        self.index = faiss.IndexFlatIP(self.bounds.shape[1])
        self.indexed = np.empty(0, np.int64)

    def _bounds(self) -> NDArray[np.float32]:
        """Return the rows whose inner products bound the cosines from above: (n, len(V) + 1), or the unit rows."""
        width = self.x.shape[1] if self.basis is None else len(self.basis) + 1
        bounds = np.empty((len(self.x), width), np.float32)
        for low in range(0, len(self.x), _BLOCK):
            part = slice(low, low + _BLOCK)
            unit = self.x[part].astype(np.float64) / self.norms[part, None]
            bounds[part] = unit if self.basis is None else _with_tail(unit @ self.basis.T)
        return bounds

    def keep(self, rows: Indices) -> None:
        """Add rows to the kept ones."""
        if len(rows):
            self.index.add(self.bounds[rows])
            self.indexed = np.append(self.indexed, rows)

    def decided(self, rows: Indices) -> Iterator[tuple[int, int, float]]:
        """Yield (row, first kept row within the threshold, cosine) of the rows that are not to be kept."""
        gone: set[int] = set()
        for item, keeper, score in self._within(*self._candidates(rows)):
            if item not in gone and keeper not in gone:
                gone.add(item)
                yield item, keeper, score

    def _candidates(self, rows: Indices) -> tuple[Indices, Indices]:
        radius = self.threshold - _MARGIN
        limits, _, hits = self.index.range_search(self.bounds[rows], radius)
        inside = np.tril(self.bounds[rows] @ self.bounds[rows].T, -1) > radius
        later, earlier = np.nonzero(inside)
        items = np.concatenate((np.repeat(rows, np.diff(limits.astype(np.int64))), rows[later]))
        others = np.concatenate((self.indexed[hits], rows[earlier]))
        self._count(len(items))
        order = np.lexsort((others, items))
        return items[order], others[order]

    def _count(self, num_pairs: int) -> None:
        self.num_candidates += num_pairs
        if self.num_candidates > self.max_pairs:
            raise TooManyPairs(f"more than {self.max_pairs} pairs at cosine {self.threshold}")

    def _within(self, items: Indices, others: Indices) -> Iterator[tuple[int, int, float]]:
        for low in range(0, len(items), 4096):
            a, b = items[low : low + 4096], others[low : low + 4096]
            self.num_verified += len(a)
            cosines = np.einsum("ij,ij->i", self.x[a], self.x[b], dtype=np.float64) / (self.norms[a] * self.norms[b])
            near = cosines >= self.threshold
            # Rounding alone takes a row's cosine with itself past 1.
            yield from zip(a[near].tolist(), b[near].tolist(), np.clip(cosines[near], -1.0, 1.0).tolist(), strict=True)


def _norms(x: Vectors) -> NDArray[np.float64]:
    norms = np.empty(len(x))
    for low in range(0, len(x), _BLOCK):
        part = x[low : low + _BLOCK].astype(np.float64)
        norms[low : low + _BLOCK] = np.sqrt(np.einsum("ij,ij->i", part, part))
    return norms


def _with_tail(head: NDArray[np.float64]) -> NDArray[np.float64]:
    """Append to coordinates of unit rows the length of what they leave out."""
    rest = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", head, head), 0.0))
    return np.column_stack((head, rest))


def _basis(x: Vectors, norms: NDArray[np.float64], threshold: float) -> NDArray[np.float64] | None:
    """Return the few orthonormal directions, shape (m, d), that make the search cheap, or None if none do.

    They are those of most energy in an even sample of the rows; they decide how fast a pair is ruled out, not whether.
    """
    chosen = np.linspace(0, len(x) - 1, _SAMPLE).astype(np.int64)
    sample = x[chosen].astype(np.float64) / norms[chosen, None]
    directions = np.linalg.svd(sample, full_matrices=False)[2]
    far = sample @ sample.T < threshold
    best, least_cost = None, float(x.shape[1])
    for m in (m for m in _DIMENSIONS if m < x.shape[1]):
        bounds = _with_tail(sample @ directions[:m].T)
        # A pair that passes the bound in vain costs a gather of two whole rows.
        in_vain = float(np.mean((bounds @ bounds.T >= threshold - _MARGIN) & far))
        cost = m + 1 + in_vain * 20.0 * x.shape[1]
        if cost < least_cost:
            best, least_cost = directions[:m], cost
    return best
