"""Choose rows and prove how good the choice is: starts, swaps, a search beyond them, and a lower bound."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from curation.kernels.relaxation import Relaxation, exact_gram, relaxation_bound
from curation.kernels.selection import Floats, Indices, Selection, best_of, greedy_runs, improve
from curation.kernels.shift import strengthen
from curation.kernels.tabu import tabu_search

_WALKED_ROWS_PER_CHOSEN = 4


@dataclass(frozen=True, slots=True)
class Certified:
    """A selection, and the objective that no k rows can go below."""

    selection: Selection
    bound: float

    @property
    def gap(self) -> float:
        """(objective - bound) / objective; 0 proves that the selection is the best there is."""
        objective = self.selection.objective
        return max(0.0, (objective - self.bound) / objective) if objective > 0 else 0.0


def select_certified(
    x: Floats, k: int, *, starts: int = 1, seed: int = 0, tabu_steps: int = 0, core_rows: int = 0, rounds: int = 2
) -> Certified:
    """Choose k rows with the lowest sum of pairwise cosines, and bound what any choice can reach.

    Parameters
    ----------
    x
        Embeddings, shape ``(n, d)``, rows of unit L2 norm, in the order of their ids.
    k
        Rows to choose, in [1, n].
    starts, seed
        As in `select_diverse`.
    tabu_steps
        Steps of `tabu_search` from the result of each start, over the rows that the relaxation finds promising; its
        best set is then improved over all rows, so that no single swap helps. 0: none.
    core_rows, rounds
        As in `strengthen`; 0 core rows: the plain relaxation.

    Raises
    ------
    ValueError
        If k or `starts` is out of range, or a row is not of unit norm.
    """
    runs = greedy_runs(x, k, starts=starts, seed=seed)
    best = best_of(runs)
    if k == len(x):
        return Certified(best, best.objective)
    relaxation = relaxation_bound(x, k, best.indices)
    if tabu_steps:
        walked = [_walk(x, k, run.indices, relaxation, tabu_steps, seed + i) for i, run in enumerate(runs)]
        deeper = [improve(x, chosen) for chosen in walked]
        deepest = best_of([best, *deeper])
        best = replace(deepest, greedy_objective=best.greedy_objective)
    bound = min(relaxation.bound, best.objective)
    if core_rows:
        bound = strengthen(x, k, relaxation, best.objective, core_rows=core_rows, rounds=rounds)
    return Certified(best, max(bound, 0.0))


def _walk(x: Floats, k: int, chosen: Indices, relaxation: Relaxation, num_steps: int, seed: int) -> Indices:
    promising = np.argsort(relaxation.slack(k), kind="stable")[: _WALKED_ROWS_PER_CHOSEN * k]
    rows = np.union1d(promising, chosen)
    found = tabu_search(exact_gram(x[rows]), np.searchsorted(rows, chosen), num_steps=num_steps, seed=seed)
    return rows[found]
