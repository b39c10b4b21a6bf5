"""Choose the k most diverse rows: the lowest sum of cosines over their pairs.

With rows of unit norm the sum over ordered pairs is ``|sum_i x_i|^2 - k``, so a set is judged by the norm of its sum
vector and no (n, n) matrix is needed. Greedy choice, then the best single swap until none improves (the scheme of
SPEED-Bench's Algorithm 1). Products with all rows run in the precision of the input and only shortlist; what is chosen
is decided in float64 on the shortlist, with ties to the lower row. So the result does not depend on how many threads
the BLAS uses, nor, where the caller sorts the rows by id, on the order of its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

TIE = 1e-6
"""Two sets whose objectives differ by no more are equally good, and the one with the lower rows is taken."""

# The error of a dot product of length d is at most CONFIDENCE * sqrt(d) * u with a probability that is, for 8,
# 1 - 3e-14 (Higham and Mary 2019, "A new approach to probabilistic rounding error analysis", theorem 2.4).
_CONFIDENCE = 8.0
_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Selection:
    """A set of rows and how it was found.

    Attributes
    ----------
    indices
        The chosen rows, ascending, shape ``(k,)``.
    objective
        ``|sum of the chosen rows|^2``, float64; lower is more diverse.
    greedy_objective
        The objective of the same start before its first swap.
    num_swaps
        Swaps made from that start.
    num_products
        Products of all rows with one vector that all starts together needed.
    converged
        True if no single swap lowers the objective by more than `TIE`.
    """

    indices: Indices
    objective: float
    greedy_objective: float
    num_swaps: int
    num_products: int
    converged: bool


def squared_norm_of_sum(x: Floats) -> float:
    """Return ``|sum_i x_i|^2`` in float64, the same for any number of threads; rows of shape ``(n, d)``."""
    total = x.sum(axis=0, dtype=np.float64)
    return float((total * total).sum())


def mean_pairwise_cosine(x: Floats) -> float:
    """Mean cosine similarity over the unordered pairs of rows.

    Parameters
    ----------
    x
        Embeddings, shape ``(n, d)``, n >= 2, rows of unit L2 norm.

    Returns
    -------
    float
        In [-1, 1], no unit; lower is more diverse.

    Raises
    ------
    ValueError
        If there are fewer than two rows, or a row is not of unit norm.
    """
    require_unit_rows(x)
    n = len(x)
    if n < 2:
        raise ValueError(f"x must have at least 2 rows, got {n}")
    own = float(np.einsum("ij,ij->", x, x, dtype=np.float64))
    return (squared_norm_of_sum(x) - own) / (n * (n - 1))


def require_unit_rows(x: Floats, tolerance: float = 1e-3) -> None:
    """Raise ValueError, naming the row, unless `x` is a matrix of finite rows whose norms are 1 within `tolerance`."""
    if x.ndim != 2 or not np.issubdtype(x.dtype, np.floating):
        raise ValueError(f"x must be a matrix of floats, got {x.dtype} of shape {x.shape}")
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    bad = np.flatnonzero(~(np.abs(norms - 1.0) <= tolerance))  # ~(<=) also catches NaN
    if len(bad):
        raise ValueError(f"x must have rows of unit norm, got norm {norms[bad[0]]:.6g} in row {bad[0]}")


def select_diverse(x: Floats, k: int, *, starts: int = 1, seed: int = 0, max_swaps: int | None = None) -> Selection:
    """Choose k rows with the lowest sum of pairwise cosines: greedy, then best single swaps.

    Parameters
    ----------
    x
        Embeddings, shape ``(n, d)``, rows of unit L2 norm, in the order of their ids. Not copied.
    k
        Rows to choose, in [1, n].
    starts
        Greedy runs, at least 1, each from a row drawn with the seed; runs beyond n are not made. The best result
        wins, ties to the lower rows.
    seed
        Of the rows from which the runs start.
    max_swaps
        Swaps after which a run stops although it has not converged; by default it always converges.

    Returns
    -------
    Selection
        A set that no single swap improves by more than `TIE`.

    Raises
    ------
    ValueError
        If k or `starts` is out of range, or a row is not of unit norm.

    Notes
    -----
    Cost: a run takes k + num_swaps products of all rows with one vector, and O(kn) beside each. Memory beside `x`:
    k + 5 columns of length n.
    """
    runs = greedy_runs(x, k, starts=starts, seed=seed, max_swaps=max_swaps)
    return replace(best_of(runs), num_products=sum(run.num_products for run in runs))


def greedy_runs(
    x: Floats, k: int, *, starts: int = 1, seed: int = 0, max_swaps: int | None = None
) -> tuple[Selection, ...]:
    """Return the result of every start of `select_diverse`, in the order in which the starts are drawn."""
    require_unit_rows(x)
    if not 1 <= k <= len(x):
        raise ValueError(f"k must be in [1, {len(x)}], got {k}")
    if starts < 1:
        raise ValueError(f"starts must be at least 1, got {starts}")
    rows = np.random.default_rng(seed).permutation(len(x))[:starts]
    return tuple(_run(x, k, int(row), max_swaps) for row in rows)


def improve(x: Floats, chosen: Indices) -> Selection:
    """Make best single swaps from a given set until none improves: what `select_diverse` does after its greedy choice.

    Raises
    ------
    ValueError
        If `chosen` is empty, repeats a row or names one that is not there, or a row of `x` is not of unit norm.
    """
    require_unit_rows(x)
    members = np.unique(np.asarray(chosen, np.int64))
    if not 0 < len(members) == len(chosen) or members[0] < 0 or members[-1] >= len(x):
        raise ValueError(f"chosen must name different rows in [0, {len(x)}), got {len(chosen)} values")
    state = SwapState(x, len(members))
    for row in members:
        state.add(int(row))
    return _descend(state, None)


def best_of(runs: Sequence[Selection]) -> Selection:
    """Return the best of some selections from one pool: the lowest objective, within `TIE` the lowest rows."""
    least = min(run.objective for run in runs)
    ties = [run for run in runs if run.objective <= least + TIE]
    return min(ties, key=lambda run: run.indices.tolist())


def _run(x: Floats, k: int, start: int, max_swaps: int | None) -> Selection:
    state = SwapState(x, k)
    state.add(start)
    while len(state.members) < k:
        state.add(state.next_greedy())
    return _descend(state, max_swaps)


def _descend(state: SwapState, max_swaps: int | None) -> Selection:
    greedy = floor = state.objective()
    num_swaps = 0
    swap = state.best_swap(floor)
    while swap is not None and (max_swaps is None or num_swaps < max_swaps):
        state.swap(*swap)
        num_swaps += 1
        floor = min(floor, state.objective())
        swap = state.best_swap(floor)
    indices = np.array(sorted(state.members), np.int64)
    objective = squared_norm_of_sum(state.x[indices])
    return Selection(indices, objective, greedy, num_swaps, state.num_products, converged=swap is None)


class SwapState:
    """The chosen rows, their sum, and every row's similarity to them.

    ``|s - x_i + x_j|^2 - |s|^2`` is twice ``(s.x_j + |x_j|^2 / 2) - x_i.x_j - (s.x_i - |x_i|^2 / 2)``; the brackets
    are kept for all rows, the products with the chosen rows as columns.
    """

    def __init__(self, x: Floats, k: int) -> None:
        n, d = x.shape
        self.x = x
        self.members: list[int] = []  # by slot; columns[slot] holds its products with all rows
        self.columns = np.empty((k, n), x.dtype)
        self.total = np.zeros(d)  # float64 sum of the chosen rows
        self.entering = 0.5 * np.einsum("ij,ij->i", x, x).astype(np.float64)  # the first bracket, from the columns
        self.num_products = 0
        self._column_error = _CONFIDENCE * float(np.sqrt(d) * np.finfo(x.dtype).eps)

    def objective(self) -> float:
        """Return the squared norm of the sum of the chosen rows."""
        return float((self.total * self.total).sum())

    def add(self, row: int) -> None:
        """Put one more row into the set."""
        self.members.append(row)
        self._fill(len(self.members) - 1)

    def swap(self, slot: int, row: int) -> None:
        """Let a row take the place of the one in `slot`."""
        self.entering -= self.columns[slot]
        self.total -= self.x[self.members[slot]]
        self.members[slot] = row
        self._fill(slot)

    def next_greedy(self) -> int:
        """Return the row outside the set whose addition raises the objective least; ties to the lowest row."""
        outside = self.entering.copy()
        outside[self.members] = np.inf
        rows = np.flatnonzero(outside <= outside.min() + 2 * self._error + TIE)
        change = 2 * self._exact_products(rows, self.total[:, None])[:, 0] + self._exact_squares(rows)
        return int(rows[change <= change.min() + TIE].min())

    def best_swap(self, floor: float) -> tuple[int, int] | None:
        """Return (slot, row) of the best swap, or of one that costs nothing and leads to a lower row, or None.

        `floor` is the lowest objective so far, from which swaps among ties must not climb away. Among equal swaps the
        lowest row comes in and the highest goes out.
        """
        slots, rows, change = self._shortlist()
        if not len(change):
            return None
        leaving = np.array(self.members)[slots]
        if change.min() < -TIE:
            keep = change <= change.min() + TIE
        else:
            keep = (rows < leaving) & (change <= min(TIE, floor + TIE - self.objective()))
        if not keep.any():
            return None
        first = np.lexsort((-leaving[keep], rows[keep]))[0]
        return int(slots[keep][first]), int(rows[keep][first])

    @property
    def _error(self) -> float:
        """How far half a change of the objective, read off the columns, may be from the exact one."""
        return self._column_error * (3.0 + float(np.sqrt(len(self.members))))

    def _fill(self, slot: int) -> None:
        row = self.members[slot]
        np.matmul(self.x, self.x[row], out=self.columns[slot])
        self.num_products += 1
        self.entering += self.columns[slot]
        self.total += self.x[row]

    def _shortlist(self) -> tuple[Indices, Indices, NDArray[np.float64]]:
        """Return slot, row and exact change of the objective of all swaps that may be the best, or may be ties."""
        members = np.array(self.members)
        leaving = self._exact_products(members, self.total[:, None])[:, 0] - 0.5 * self._exact_squares(members)
        entering = self.entering.astype(self.x.dtype)
        entering[members] = np.inf
        scratch = np.empty_like(entering)
        half_change = np.empty(len(members))  # the least of each slot
        for slot, column in enumerate(self.columns):
            half_change[slot] = np.subtract(entering, column, out=scratch).min() - leaving[slot]
        limit = min(float(half_change.min()), 0.0) + 2 * self._error + TIE
        slots, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for at in np.flatnonzero(half_change <= limit):
            found = np.flatnonzero(np.subtract(entering, self.columns[at], out=scratch) <= limit + leaving[at])
            rows.append(found)
            slots.append(np.full(len(found), at))
        return self._exact_changes(np.concatenate(slots), np.concatenate(rows), leaving)

    def _exact_changes(
        self, slots: Indices, rows: Indices, leaving: NDArray[np.float64]
    ) -> tuple[Indices, Indices, NDArray[np.float64]]:
        unique_rows, row_at = np.unique(rows, return_inverse=True)
        unique_slots, slot_at = np.unique(slots, return_inverse=True)
        members = self.x[np.array(self.members)[unique_slots]].astype(np.float64)
        products = self._exact_products(unique_rows, np.vstack([members, self.total]).T)
        entering = products[:, -1] + 0.5 * self._exact_squares(unique_rows)
        return slots, rows, 2 * (entering[row_at] - products[row_at, slot_at] - leaving[slots])

    def _exact_products(self, rows: Indices, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rows times vectors of shape (d, m) in float64, of shape (len(rows), m)."""
        out = np.empty((len(rows), vectors.shape[1]))
        for at in range(0, len(rows), _BLOCK_ROWS):
            block = slice(at, at + _BLOCK_ROWS)
            out[block] = self.x[rows[block]].astype(np.float64) @ vectors
        return out

    def _exact_squares(self, rows: Indices) -> NDArray[np.float64]:
        out = np.empty(len(rows))
        for at in range(0, len(rows), _BLOCK_ROWS):
            values = self.x[rows[at : at + _BLOCK_ROWS]].astype(np.float64)
            out[at : at + _BLOCK_ROWS] = (values * values).sum(axis=1)
        return out
