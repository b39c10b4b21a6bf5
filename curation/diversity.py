"""How diverse a qualitative split is, beside Spec-Bench, random choice, greedy choice and the proven bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.composition import SPEC_BENCH_CATEGORY, Composition
from curation.kernels.selection import mean_pairwise_cosine, select_diverse

Floats = NDArray[np.float32]

RANDOM_SEEDS = tuple(range(10))
"""Seeds of the random choices, as many as in the paper's Appendix C."""


@dataclass(frozen=True, slots=True)
class CategoryDiversity:
    """Mean pairwise cosines of one category, in [-1, 1], lower is more diverse; None where it was not measured.

    Attributes
    ----------
    category
        Our category.
    rows, candidates
        Rows of the split; candidates of the pool, or None without a pool.
    own
        The split's rows as they are published.
    spec_bench
        The rows of Spec-Bench's category that it stands beside (`SPEC_BENCH_CATEGORY`).
    random, random_sd
        Mean and standard deviation over `RANDOM_SEEDS` of as many rows drawn from the pool.
    greedy
        Greedy choice without swaps.
    bound
        No choice of as many rows of the pool has a lower mean cosine.
    gap
        (objective - bound) / objective with the objective |sum of the rows|^2, as the manifest states it.
    """

    category: str
    rows: int
    candidates: int | None
    own: float | None
    spec_bench: float | None
    random: float | None
    random_sd: float | None
    greedy: float | None
    bound: float | None
    gap: float | None

    @property
    def under_spec_bench(self) -> float | None:
        """1 - own / spec_bench, or None where one of them was not measured."""
        if self.own is None or not self.spec_bench:
            return None
        return 1.0 - self.own / self.spec_bench


@dataclass(frozen=True, slots=True)
class DiversityReport:
    """The comparison over all categories; `notes` say why something was not measured."""

    dist: str
    embedder: str
    categories: tuple[CategoryDiversity, ...]
    composition: Composition
    spec_bench: Composition | None
    left_out_rows: int
    notes: tuple[str, ...]

    @property
    def mean_own(self) -> float | None:
        """Mean over the categories of the split's mean cosines."""
        return _mean([c.own for c in self.categories])

    @property
    def mean_spec_bench(self) -> float | None:
        """Mean over the categories of Spec-Bench's mean cosines."""
        return _mean([c.spec_bench for c in self.categories])

    @property
    def under_spec_bench(self) -> float | None:
        """1 - the mean over the categories of ours / of Spec-Bench's; None unless all categories have both."""
        own, theirs = self.mean_own, self.mean_spec_bench
        return None if own is None or not theirs else 1.0 - own / theirs


def measure_category(
    category: str,
    own: Floats,
    *,
    spec_bench: Floats | None = None,
    pool: Floats | None = None,
    certificate: Mapping[str, Any] | None = None,
) -> CategoryDiversity:
    """Return the figures of one category.

    Parameters
    ----------
    category
        Its name.
    own, spec_bench, pool
        Unit vectors of the split's rows, of Spec-Bench's and of the pool's candidates, shape ``(n, d)``.
    certificate
        `bound` and `gap` of the build's manifest.
    """
    k = len(own)
    small = k < 2
    draws = [] if pool is None or small else [random_cosine(pool, k, seed) for seed in RANDOM_SEEDS]
    bound = certificate.get("bound") if certificate else None
    return CategoryDiversity(
        category=category,
        rows=k,
        candidates=None if pool is None else len(pool),
        own=None if small else mean_pairwise_cosine(own),
        spec_bench=None if spec_bench is None or len(spec_bench) < 2 else mean_pairwise_cosine(spec_bench),
        random=fmean(draws) if draws else None,
        random_sd=stdev(draws) if draws else None,
        greedy=None if pool is None or small else _greedy_cosine(pool, k),
        bound=None if bound is None or small else mean_cosine_of(bound, k),
        gap=certificate.get("gap") if certificate else None,
    )


def mean_cosine_of(objective: float, k: int) -> float:
    """Return the mean pairwise cosine of k unit rows whose sum has the squared norm `objective`."""
    return (objective - k) / (k * (k - 1))


def spec_bench_rows(categories: Sequence[str], category: str) -> list[int]:
    """Return the places of Spec-Bench's rows that stand beside our category."""
    return [i for i, name in enumerate(categories) if name == SPEC_BENCH_CATEGORY[category]]


def random_cosine(pool: Floats, k: int, seed: int) -> float:
    """Return the mean pairwise cosine of k rows of a pool drawn without replacement."""
    rows = np.random.default_rng(seed).choice(len(pool), size=k, replace=False)
    return mean_pairwise_cosine(pool[np.sort(rows)])


def _greedy_cosine(pool: Floats, k: int) -> float:
    return mean_cosine_of(select_diverse(pool, k, max_swaps=0).objective, k)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fmean(known) if known and len(known) == len(values) else None
