"""The rows of each category: the most diverse ones, and how far at most they are from the best choice.

A smaller set is chosen inside the larger: the largest first, for its own objective, then the next among its rows. So
the published split is never worse for having a subset, and each subset is the best of the set around it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from curation.errors import BuildError
from curation.kernels.certificate import Certified, select_certified
from curation.processes import one_thread_pool
from curation.recipe import SelectionConfig
from curation.stages.base import Drop, StageResult
from sources.base import CATEGORIES

logger = logging.getLogger(__name__)

STAGE = "select"

Vectors = NDArray[np.float32]
Indices = NDArray[np.int64]


def select_categories(
    table: pa.Table, vectors: Vectors, config: SelectionConfig, *, allow_short: bool = False, workers: int = 1
) -> StageResult:
    """Return the chosen rows of every category, a drop for each other row, and the figures of each choice.

    Parameters
    ----------
    table
        Candidates, of `POOL_SCHEMA`.
    vectors
        One a row, float32 of unit norm; a row without a vector is all NaN and cannot be chosen.
    config
        Quota, smaller sets, and how hard the search is.
    allow_short
        Deliver what there is where a category has fewer candidates than its quota.
    workers
        Processes, a category each at a time; the result is the same for any number.

    Returns
    -------
    StageResult
        The table in the order of category and record_id, with the column `nested_size`: the size of the smallest set
        that holds the row. The facts hold, for each category, `wanted`, `candidates`, `chosen`, `objective`, `bound`,
        `gap`, `greedy_objective`, `num_swaps` and the objective of each smaller set.

    Raises
    ------
    BuildError
        If a category has fewer candidates than its quota and `allow_short` is not given.
    """
    ids = table.column("record_id").to_pylist()
    categories = config.categories or CATEGORIES
    usable = np.asarray(np.isfinite(vectors).all(axis=1), bool)
    drops = [Drop(ids[row], STAGE, "no_vector") for row in np.flatnonzero(~usable)]
    pools = _pools(ids, table.column("category").to_pylist(), usable, categories)
    _refuse_short(pools, config.quota, allow_short=allow_short)
    facts: dict[str, dict[str, Any]] = {}
    rows: list[int] = []
    sizes: list[int] = []
    results = _select_all([vectors[pools[category]] for category in categories], config, workers)
    for category, (chosen, nested_sizes, figures) in zip(categories, results, strict=True):
        pool = pools[category]
        facts[category] = figures
        rows += pool[chosen].tolist()
        sizes += nested_sizes.tolist()
        logger.info("select: %s: %d of %d candidates", category, len(chosen), len(pool))
    kept = set(rows)
    drops += [Drop(ids[row], STAGE, "not_selected") for row in np.flatnonzero(usable) if row not in kept]
    selected = table.take(pa.array(rows, pa.int64())).append_column(
        pa.field("nested_size", pa.int32(), nullable=False), pa.array(sizes, pa.int32())
    )
    return StageResult(selected, tuple(drops), {"categories": facts})


def _pools(
    ids: Sequence[str], categories: Sequence[str], usable: NDArray[np.bool_], wanted: Sequence[str]
) -> dict[str, Indices]:
    """Return the usable rows of each category in the order of their ids, so that the order of the table is nothing."""
    pools: dict[str, list[int]] = {category: [] for category in wanted}
    for row in sorted(range(len(ids)), key=lambda i: ids[i]):
        if usable[row] and categories[row] in pools:
            pools[categories[row]].append(row)
    return {category: np.array(rows, np.int64) for category, rows in pools.items()}


def _refuse_short(pools: Mapping[str, Indices], quota: int, *, allow_short: bool) -> None:
    short = [f"{category}: wanted {quota}, found {len(pool)}" for category, pool in pools.items() if len(pool) < quota]
    if not short:
        return
    if not allow_short:
        raise BuildError(
            f"select: too few candidates; {'; '.join(short)}; add sources, lower selection.quota or pass --allow-short"
        )
    for line in short:
        logger.warning("select: %s; delivering what there is", line)


Choice = tuple[Indices, Indices, dict[str, Any]]
"""The chosen rows of one category, the size of the smallest set that holds each, and the figures."""


def _select_all(pools: Sequence[Vectors], config: SelectionConfig, workers: int) -> list[Choice]:
    if workers == 1:
        return [_select(x, config) for x in pools]
    with one_thread_pool(min(workers, len(pools))) as executor:
        return list(executor.map(_select, pools, repeat(config)))


def _select(x: Vectors, config: SelectionConfig) -> Choice:
    facts: dict[str, Any] = {"wanted": config.quota, "candidates": len(x), "chosen": min(config.quota, len(x))}
    if not len(x):
        return np.empty(0, np.int64), np.empty(0, np.int64), facts
    certified = select_certified(
        x,
        facts["chosen"],
        starts=config.starts,
        seed=config.seed,
        tabu_steps=config.tabu_steps,
        core_rows=config.core_rows,
        rounds=config.bound_rounds,
    )
    chosen = certified.selection.indices
    nested_sizes, nested = _nest(x, chosen, config)
    return chosen, nested_sizes, facts | _figures(certified) | {"nested": nested}


def _nest(x: Vectors, chosen: Indices, config: SelectionConfig) -> tuple[Indices, dict[str, float]]:
    sizes = np.full(len(chosen), config.quota, np.int64)
    inside = np.arange(len(chosen))
    objectives: dict[str, float] = {}
    for size in sorted(config.nested, reverse=True):
        if size < len(inside):
            smaller = select_certified(
                x[chosen[inside]], size, starts=config.starts, seed=config.seed, tabu_steps=config.tabu_steps
            ).selection
            inside = inside[smaller.indices]
            objectives[str(size)] = round(smaller.objective, 6)
        sizes[inside] = size
    return sizes, objectives


def _figures(certified: Certified) -> dict[str, Any]:
    """Return the figures with six decimals, the bound rounded down: what is published stays true."""
    objective = round(certified.selection.objective, 6)
    bound = min(math.floor(certified.bound * 1e6) / 1e6, objective)
    return {
        "objective": objective,
        "bound": bound,
        "gap": round((objective - bound) / objective, 9) if objective > 0 else 0.0,
        "greedy_objective": round(certified.selection.greedy_objective, 6),
        "num_swaps": certified.selection.num_swaps,
    }
