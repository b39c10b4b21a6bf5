"""Go past a set that no single swap improves: swaps under a short memory that forbids going back (tabu search).

The best known heuristics for the maximum diversity problem are of this kind (Glover, Kuo and Dhir 1998; Palubeckis
2007). It runs on a small Gram matrix of promising rows and returns the best set that it met.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curation.kernels.selection import TIE, Indices

_LEFT_TENURE = (10, 30)  # steps for which a row that left must stay out, and
_CAME_TENURE = (5, 15)  # one that came must stay in


def tabu_search(gram: NDArray[np.float64], chosen: Indices, *, num_steps: int, seed: int = 0) -> Indices:
    """Return the best set met in `num_steps` swaps from `chosen`, ascending.

    Parameters
    ----------
    gram
        Shape ``(m, m)``, products of unit rows. Where its entries are exact (`exact_gram`) the walk is the same on
        every machine.
    chosen
        k different rows to start from, k in [1, m].
    num_steps
        Swaps; the budget is a count, never a time, so that the result can be made again.
    seed
        Of the tenures.

    Notes
    -----
    O(km) a step.
    """
    m, k = len(gram), len(chosen)
    members = np.sort(np.asarray(chosen, np.int64))
    if k == m:
        return members
    rng = np.random.default_rng(seed)
    tenures = zip(rng.integers(*_LEFT_TENURE, num_steps), rng.integers(*_CAME_TENURE, num_steps), strict=True)
    inside = np.zeros(m, bool)
    inside[members] = True
    free_at = np.zeros(m, np.int64)  # the step from which a row may move again
    similarity = gram[members].sum(axis=0)
    objective = best = float(similarity[members].sum())
    best_members = members.copy()
    for step, (left_tenure, came_tenure) in enumerate(tenures):
        # Half the change of |sum|^2 if slot i's row gives way to row j.
        change = similarity - gram[members] - similarity[members, None] + 1.0
        change[:, inside] = np.inf
        held = (free_at > step)[None, :] | (free_at[members] > step)[:, None]
        change[held & (change >= (best - objective) / 2 - TIE)] = np.inf  # unless it beats the best
        slot, row = divmod(int(change.argmin()), m)
        if np.isinf(change[slot, row]):
            continue
        out = members[slot]
        objective += 2.0 * float(change[slot, row])
        similarity += gram[row] - gram[out]
        members[slot] = row
        inside[out], inside[row] = False, True
        free_at[out], free_at[row] = step + 1 + left_tenure, step + 1 + came_tenure
        if objective < best - TIE:
            best, best_members = objective, members.copy()
    return np.sort(best_members)
