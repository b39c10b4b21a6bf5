"""A lower bound on the objective of any k rows, from the convex relaxation.

A set is a 0/1 vector w with ``sum w = k`` and its objective is ``|X^T w|^2``. Allowing every w in [0, 1]^n gives a
convex problem whose value no set can beat. The iterate is kept as its sum vector ``v = X^T w``: by convexity, at any v,

    |X^T u|^2 >= 2 v.X^T u - |v|^2 >= 2 (sum of the k smallest entries of X v) - |v|^2     for every set u,

so the bound holds whenever the search stops. The weights move on a few active rows by pairwise Frank-Wolfe steps
(Lacoste-Julien and Jaggi 2015), and rows that would lower the value join them (column generation). All sums over many
rows run outside the BLAS or on values whose products are exact, so the bound does not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.selection import Floats, Indices, require_unit_rows

Vector = NDArray[np.float64]

_UNIT = 2.0**-53
_STEP = 2.0**-22  # products of multiples of it are multiples of 2^-44: their sums below 2^9 are exact in float64
_INSIDE = 1e-12  # a weight nearer than this to 0 or 1 is there


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A point of the relaxation and what it proves.

    Attributes
    ----------
    bound
        No k rows have a lower ``|sum|^2``; rounding errors are already taken off.
    value
        The relaxed objective at the weights, at or above the best bound that this relaxation can give.
    rows, weights
        The rows that may have weight, ascending, and their weights in [0, 1], which add up to k.
    slopes
        Shape ``(n,)``: how fast the relaxed objective grows with each row's weight.
    num_products
        Products of all rows with one vector that it took.
    """

    bound: float
    value: float
    rows: Indices
    weights: Vector
    slopes: Vector
    num_products: int

    def slack(self, k: int) -> Vector:
        """Return by how much at least a set is above `bound` if it holds a row; shape ``(n,)``."""
        slack: Vector = np.maximum(self.slopes - np.partition(self.slopes, k - 1)[k - 1], 0.0)
        return slack


def exact_gram(x: Floats) -> Vector:
    """Return the products of rows rounded to multiples of 2^-22, shape ``(n, n)``.

    Every product and sum is exact in float64 (a row's norm is about 1), so the matrix is the same for any BLAS and any
    number of threads. It is within sqrt(d) 2^-22 of the products of the rows themselves, and positive semidefinite.
    """
    rounded = np.rint(x.astype(np.float64) / _STEP) * _STEP
    gram: Vector = rounded @ rounded.T
    return gram


def relaxation_bound(
    x: Floats, k: int, start: Indices, *, tolerance: float = 1e-4, max_rounds: int = 12, max_steps: int = 20_000
) -> Relaxation:
    """Bound the objective of any k rows from below, starting from a good set.

    Parameters
    ----------
    x
        Embeddings, shape ``(n, d)``, rows of unit L2 norm.
    k
        Rows in a set, in [1, n].
    start
        k different rows, the better the faster.
    tolerance
        Stops when bound and relaxed value are this close, relative to the value or to 1 if that is more.
    max_rounds, max_steps
        Of column generation, and of steps in each; the bound holds wherever they end.

    Raises
    ------
    ValueError
        If k is out of range, `start` does not have k rows, or a row is not of unit norm.

    Notes
    -----
    A round costs one product of all rows with one vector and the Gram matrix of the active rows, of which there are
    about 10k, whatever n is.
    """
    require_unit_rows(x)
    if not 1 <= k <= len(x):
        raise ValueError(f"k must be in [1, {len(x)}], got {k}")
    rows = np.unique(start)
    if len(rows) != k:
        raise ValueError(f"start must name {k} different rows, got {len(rows)}")
    return solve(x, k, rows, np.ones(k), tolerance=tolerance, max_rounds=max_rounds, max_steps=max_steps)


def solve(
    x: Floats,
    k: int,
    rows: Indices,
    weights: Vector,
    *,
    shift: Vector | None = None,
    tolerance: float = 1e-4,
    max_rounds: int = 12,
    max_steps: int = 20_000,
) -> Relaxation:
    """Minimise ``w^T (X X^T + diag(e)) w - e.w`` from given weights; e is `shift`, by default 0.

    For 0/1 weights the two terms in e cancel, so this too is a relaxation. The matrix must be positive semidefinite,
    or the bound means nothing: see `curation.kernels.shift`.
    """
    e = np.zeros(len(x)) if shift is None else shift
    best, best_bound = _at(x, k, e, rows, weights, 1), -np.inf
    for num_products in range(1, max_rounds + 1):
        point = _at(x, k, e, rows, weights, num_products)
        if point.bound > best_bound:
            best, best_bound = point, point.bound
        allowed = tolerance * max(abs(point.value), 1.0)
        if point.value - best_bound <= allowed:
            break
        rows, weights = _activate(point, 10 * k)
        weights = _pairwise_steps(exact_gram(x[rows]), e[rows], weights, max_steps, allowed / k)
    return best


def _at(x: Floats, k: int, e: Vector, rows: Indices, weights: Vector, num_products: int) -> Relaxation:
    total = np.einsum("i,ij->j", weights, x[rows].astype(np.float64))
    slopes = 2.0 * np.einsum("ij,j->i", x, total) - e
    slopes[rows] += 2.0 * e[rows] * weights
    quadratic = float((total * total).sum() + (e[rows] * weights * weights).sum())
    smallest = np.sort(np.partition(slopes, k - 1)[:k])
    bound = float(smallest.sum()) - quadratic - _rounding(x.shape[1], k, total, e)
    return Relaxation(bound, quadratic - float((e[rows] * weights).sum()), rows, weights, slopes, num_products)


def _rounding(d: int, k: int, total: Vector, e: Vector) -> float:
    """Bound the rounding error of `_at`: each float64 sum of m terms is off by at most m u times its absolute terms."""
    norm = float(np.sqrt((total * total).sum()))
    largest = float(np.abs(e).max())
    per_row = (d + 4) * norm * 1.01 + 4 * largest
    return 2 * _UNIT * (2 * k * per_row + (d + 4) * norm**2 + 4 * k * k * (norm + largest))


def _activate(point: Relaxation, num_rows: int) -> tuple[Indices, Vector]:
    """Return the rows with weight and the `num_rows` that would lower the value most, with the present weights."""
    order = np.argsort(point.slopes, kind="stable")[:num_rows]
    rows = np.union1d(point.rows[point.weights > _INSIDE], order)
    weights = np.zeros(len(rows))
    had = np.isin(point.rows, rows)
    weights[np.searchsorted(rows, point.rows[had])] = point.weights[had]
    return rows, weights


def _pairwise_steps(gram: Vector, e: Vector, weights: Vector, max_steps: int, tolerance: float) -> Vector:
    """Move weight between the two rows that gain most, each time as far as it helps, until the gain is small."""
    w = weights.copy()
    slopes = 2.0 * (np.einsum("ij,j->i", gram, w) + e * w) - e
    may_grow = np.where(w < 1 - _INSIDE, 0.0, np.inf)
    may_shrink = np.where(w > _INSIDE, 0.0, -np.inf)
    for _ in range(max_steps):
        to, off = int((slopes + may_grow).argmin()), int((slopes + may_shrink).argmax())
        gain = slopes[off] - slopes[to]
        if not gain > tolerance:
            break
        curvature = 2.0 * (gram[to, to] + gram[off, off] - 2.0 * gram[to, off] + e[to] + e[off])
        step = min(w[off], 1.0 - w[to], gain / curvature if curvature > _INSIDE else np.inf)
        w[to] += step
        w[off] -= step
        slopes += 2.0 * step * (gram[to] - gram[off])
        slopes[to] += 2.0 * step * e[to]
        slopes[off] -= 2.0 * step * e[off]
        for row in (to, off):
            may_grow[row] = 0.0 if w[row] < 1 - _INSIDE else np.inf
            may_shrink[row] = 0.0 if w[row] > _INSIDE else -np.inf
    return w
