"""A stronger lower bound: let the relaxation know that a weight is 0 or 1.

For 0/1 weights ``w_i^2 = w_i``, so for any e

    |X^T w|^2 = w^T (X X^T + diag(e)) w - e.w,

and where ``X X^T + diag(e)`` is positive semidefinite the right-hand side is convex: its minimum over [0, 1]^n bounds
every set. A negative e_i lifts the value where the plain relaxation hides, at fractional weights; a positive e_j on
rows that it leaves out costs nothing up to their slack, and pays for the negative ones. The best e is the dual of the
semidefinite relaxation with ``diag(W) = w`` (Shor; for this use Billionnet and Elloumi 2007). Here it is found for a
core of rows by an interior-point method (Newton steps on log barriers), the rest is given its slack; rows that no set
better than the known one can hold are left out first. Whatever e comes out, the bound is evaluated as any other
relaxation, so it holds if the matrix is positive semidefinite, and that is made sure of with a margin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.kernels.relaxation import Relaxation, Vector, exact_gram, solve
from curation.kernels.selection import Floats, Indices

_MARGIN = 1e-6  # of the smallest eigenvalue; rounding errors in it are below 1e-9
_GRID = (
    2.0**-10
)  # shifts are rounded up to multiples, and weights to the nearest, so that the low bits of LAPACK decide nothing
_LEAST_REST = 1e-3  # a smaller shift on the rest would make its inverse ill-conditioned
_SPENT = 0.9  # share of a row's slack that becomes its shift
_BLOCK_ROWS = 2048


@dataclass(frozen=True, slots=True)
class _Barrier:
    """The saddle problem over a core: weights w, shifts e, and the barriers' factor mu."""

    gram: Vector
    room: Vector  # the matrix that must stay positive semidefinite once diag(e) is added
    k: int


def strengthen(
    x: Floats,
    k: int,
    relaxation: Relaxation,
    objective: float,
    *,
    core_rows: int = 300,
    rounds: int = 2,
    max_newton: int = 60,
) -> float:
    """Return a lower bound on the objective of any k rows, at least `relaxation.bound`.

    Parameters
    ----------
    x
        Embeddings, shape ``(n, d)``, rows of unit L2 norm.
    k
        Rows in a set.
    relaxation
        Of `x` and k.
    objective
        Of the best set that is known; no bound is above it.
    core_rows
        Rows whose shifts are optimised; a Newton step costs O(core_rows^3).
    rounds
        Times the core is chosen anew.
    max_newton
        Newton steps a round.

    Notes
    -----
    A round costs O(nd^2) for the rows that cannot be left out, and one (d, d) matrix.
    """
    bound = relaxation.bound
    rest = np.arange(len(x))
    point, shift = relaxation, np.zeros(len(x))
    for _ in range(rounds):
        slack = point.slack(k)
        keep = point.bound + slack <= objective
        if np.count_nonzero(keep) <= k:
            return min(max(bound, point.bound), objective)
        kept = np.flatnonzero(keep)
        where = np.flatnonzero(np.isin(point.rows, kept))
        weights = point.weights[where] * (k / point.weights[where].sum())
        rows = np.searchsorted(kept, point.rows[where])
        rest, slack, shift = rest[kept], slack[kept], shift[kept]
        free = x if len(rest) == len(x) else x[rest]
        shift, core, core_weights = _shift(free, k, slack, shift, rows, weights, core_rows, max_newton)
        point = solve(free, k, core, core_weights, shift=shift)
        bound = max(bound, min(point.bound, objective))
    return bound


def _shift(
    x: Floats, k: int, slack: Vector, shift: Vector, rows: Indices, weights: Vector, core_rows: int, max_newton: int
) -> tuple[Vector, Indices, Vector]:
    """Return a shift that keeps the matrix positive semidefinite, the core, and good weights on it."""
    spread = np.zeros(len(x))
    spread[rows] = weights
    core = np.sort(np.lexsort((-spread, slack))[: max(core_rows, k + 1)])
    out = np.maximum(shift + _SPENT * slack, _LEAST_REST)
    outside = np.ones(len(x), bool)
    outside[core] = False
    problem = _Barrier(exact_gram(x[core]), _room(x, core, out, outside), k)
    core_weights, core_shift = _newton(problem, spread[core], max_newton)
    least = float(np.linalg.eigvalsh(problem.room + np.diag(core_shift))[0])
    out[core] = np.ceil((core_shift - least + _MARGIN) / _GRID) * _GRID
    return out, core, np.clip(np.rint(core_weights / _GRID) * _GRID, 0.0, 1.0)


def _room(x: Floats, core: Indices, shift: Vector, outside: NDArray[np.bool_]) -> Vector:
    """Return the Schur complement of the rows outside the core.

    ``X X^T + diag(e)`` is positive semidefinite if e > 0 outside and ``X_c (I + X_o^T diag(1/e) X_o)^-1 X_c^T +
    diag(e_c)`` is.
    """
    d = x.shape[1]
    capacity = np.eye(d)
    others = np.flatnonzero(outside)
    for at in range(0, len(others), _BLOCK_ROWS):
        rows = others[at : at + _BLOCK_ROWS]
        scaled = x[rows].astype(np.float64) / np.sqrt(shift[rows])[:, None]
        capacity += scaled.T @ scaled
    inner = x[core].astype(np.float64)
    room = inner @ np.linalg.solve(capacity, inner.T)
    symmetric: Vector = (room + room.T) / 2
    return symmetric


def _newton(problem: _Barrier, weights: Vector, max_steps: int) -> tuple[Vector, Vector]:
    """Follow the central path of the saddle point down to a small mu; return weights and shifts."""
    n, mu, last_mu = len(weights), 1.0, 1e-4
    w = np.clip(0.5 * weights + 0.5 * problem.k / n, 1e-3, 1 - 1e-3)
    e = mu / (w - w * w)
    for _ in range(max_steps):
        try:
            change_w, change_e, decrement, longest = _newton_step(problem, w, e, mu)
        except np.linalg.LinAlgError:  # too near the edge for float64: what there is will do
            break
        length = min(1.0, 0.7 * longest)
        w, e = w + length * change_w, e + length * change_e
        if decrement < 0.7:
            if mu <= last_mu:
                break
            mu = max(0.3 * mu, last_mu)
        elif length == 1.0 and decrement < 1.5:
            mu = max(0.7 * mu, last_mu)
    return w, e


def _newton_step(problem: _Barrier, w: Vector, e: Vector, mu: float) -> tuple[Vector, Vector, float, float]:
    """Return the Newton step in w and e, its size, and the length at which it would leave the domain.

    The saddle function is ``w^T (G + diag(e)) w - e.w + mu (log det(R + diag(e)) - sum log w - sum log(1 - w))`` with
    ``sum w = k``: least in w, greatest in e.
    """
    root = np.linalg.inv(np.linalg.cholesky(problem.room + np.diag(e)))
    inverse = root.T @ root
    to_w = 2 * (problem.gram @ w + e * w) - e - mu / w + mu / (1 - w)
    to_e = w * w - w + mu * np.diag(inverse)
    curvature_w = 2 * problem.gram + np.diag(2 * e + mu / w**2 + mu / (1 - w) ** 2)
    half = np.linalg.inv(np.linalg.cholesky(mu * inverse * inverse))
    inverse_e = half.T @ half
    mixed = 2 * w - 1
    system = curvature_w + mixed[:, None] * inverse_e * mixed
    solution = np.linalg.solve(system, np.stack([-to_w - mixed * (inverse_e @ to_e), np.ones(len(w))], axis=1))
    multiplier = (problem.k - w.sum() - solution[:, 0].sum()) / solution[:, 1].sum()
    change_w = solution[:, 0] + multiplier * solution[:, 1]
    change_e = inverse_e @ (to_e + mixed * change_w)
    relative = root @ (change_e[:, None] * root.T)
    nearest = float(min((change_w / w).min(), (-change_w / (1 - w)).min(), np.linalg.eigvalsh(relative)[0]))
    decrement = max(float(np.sqrt((relative * relative).sum())), -nearest)
    return change_w, change_e, decrement, -1.0 / nearest if nearest < 0 else np.inf
