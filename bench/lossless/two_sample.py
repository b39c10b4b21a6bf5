"""Whether two samples of tokens come from one distribution, and how small a difference would have been seen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

LEAST_IN_CELL = 10
"""Tokens drawn fewer times in both samples together are counted as one cell (five expected in each if equal)."""
PERMUTATIONS = 9_999
POWER = 0.8
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class TwoSample:
    """Two samples, drawn from several prompts, against the claim that their distributions are one.

    Attributes
    ----------
    n
        Sizes of the two samples.
    strata
        Prompts whose samples can tell anything.
    statistic, df
        Pearson's chi-square summed over the prompts, and its degrees of freedom.
    p_value
        Share of relabellings within the prompts whose statistic is at least as large; exact whatever the
        distributions are, in ``[1 / (PERMUTATIONS + 1), 1]``.
    tv
        Total variation distance of the two empirical distributions, in [0, 1], mean over the prompts by sample size.
    tv_if_equal
        Mean of the same over the relabellings: what chance alone makes of it.
    tv_at_most
        Upper confidence bound of the true distance (root mean square over the prompts), over the cells as pooled.
    smallest_tv_found
        Distance from which on the test finds a difference with probability `POWER`, however it lies over the cells.
    rare_share
        Share of the tokens in pooled cells; differences among these are not seen.
    """

    n: tuple[int, int]
    strata: int
    statistic: float
    df: int
    p_value: float
    tv: float
    tv_if_equal: float
    tv_at_most: float
    smallest_tv_found: float
    rare_share: float


def compare_samples(
    strata: Sequence[tuple[Counts, Counts]], *, alpha: float, seed: int = 0, permutations: int = PERMUTATIONS
) -> TwoSample | None:
    """Return the comparison of two samples that were drawn prompt by prompt.

    Parameters
    ----------
    strata
        For each prompt the counts of both samples over the same cells, each of shape ``(k,)``.
    alpha
        False alarm rate at which `smallest_tv_found` holds, in (0, 1).

    Returns
    -------
    TwoSample or None
        None if no prompt has two cells and two samples.

    Notes
    -----
    With ``h = n m / (n + m)``, a difference d between the distributions has the noncentrality
    ``h sum(d_i^2 / p_i) >= 4 h TV^2`` (Cauchy-Schwarz), so the least noncentrality that the test finds bounds the
    distance for any shape of d. Costs ``O(permutations x cells)``.

    References
    ----------
    Pearson (1900); Pesarin and Salmaso (2010), "Permutation Tests for Complex Data" (relabelling within strata).
    """
    pooled = [pool_rare(a, b) for a, b in strata]
    rare = sum(share * (int(a.sum()) + int(b.sum())) for a, b, share in pooled)
    drawn = sum(int(a.sum()) + int(b.sum()) for a, b, _ in pooled)
    kept = [(a, b) for a, b, _ in pooled if len(a) > 1 and a.sum() and b.sum()]
    if not kept:
        return None
    sizes = np.array([(a.sum(), b.sum()) for a, b in kept], np.float64)
    weight = sizes.prod(axis=1) / sizes.sum(axis=1)
    statistic = float(sum(chi_square(a, b) for a, b in kept))
    df = sum(len(a) - 1 for a, _ in kept)
    shuffled, distances = _relabelled(kept, weight, np.random.default_rng(seed), permutations)
    return TwoSample(
        n=(int(sizes[:, 0].sum()), int(sizes[:, 1].sum())),
        strata=len(kept),
        statistic=statistic,
        df=df,
        # A sum in another order may differ in the last bits.
        p_value=float((1 + np.count_nonzero(shuffled >= statistic * (1 - 1e-12))) / (permutations + 1)),
        tv=float(np.average([total_variation(a, b) for a, b in kept], weights=weight)),
        tv_if_equal=float(distances.mean()),
        tv_at_most=min(1.0, float(np.sqrt(_noncentrality_at_most(statistic, df) / (4 * weight.sum())))),
        smallest_tv_found=min(1.0, float(np.sqrt(noncentrality_found(df, alpha) / (4 * weight.sum())))),
        rare_share=rare / drawn,
    )


def pool_rare(a: Counts, b: Counts, least: int = LEAST_IN_CELL) -> tuple[Counts, Counts, float]:
    """Return both samples with the cells that hold fewer than `least` as one, and the share that these hold.

    Which cells are pooled depends on the sums of both samples only, so that relabelling does not change it. The pooled
    cell takes in the smallest other cells until it holds `least` itself.
    """
    both = a + b
    order = np.argsort(both, kind="stable")
    order = order[both[order] > 0]
    rare = int(np.count_nonzero(both[order] < least))
    while 0 < rare < len(order) and both[order[:rare]].sum() < least:
        rare += 1
    if not rare:
        return a[order], b[order], 0.0
    few, many = order[:rare], order[rare:]
    left, right = (np.append(x[many], x[few].sum()) for x in (a, b))
    return left, right, float(both[few].sum() / both.sum())


def chi_square(a: Counts, b: Counts) -> float:
    """Return Pearson's statistic of two samples over the same cells, each held by one of them at least."""
    return float(_chi_squares(a[None, :], a + b)[0])


def _chi_squares(a: Counts, both: Counts) -> Floats:
    """Return the statistic of each row of first samples, shape ``(r, k)``, that share their sum and the totals."""
    n, total = a[0].sum(), both.sum()
    expected = both * (n / total)
    values: Floats = (np.square(a - expected) / both).sum(axis=1) * (total * total / (n * (total - n)))
    return values


def total_variation(a: Counts, b: Counts) -> float:
    """Return half the sum of the absolute differences of the two empirical distributions, in [0, 1]."""
    return float(0.5 * np.abs(a / a.sum() - b / b.sum()).sum())


def _relabelled(
    strata: Sequence[tuple[Counts, Counts]], weight: Floats, rng: np.random.Generator, permutations: int
) -> tuple[Floats, Floats]:
    """Return statistic and distance of each relabelling, both of shape ``(permutations,)``."""
    statistics, distances = np.zeros(permutations), np.zeros(permutations)
    for (a, b), share in zip(strata, weight / weight.sum(), strict=True):
        both = a + b
        drawn = rng.multivariate_hypergeometric(both, int(a.sum()), size=permutations, method="marginals")
        statistics += _chi_squares(drawn, both)
        distances += share * 0.5 * np.abs(drawn / a.sum() - (both - drawn) / b.sum()).sum(axis=1)
    return statistics, distances


def noncentrality_found(df: int, alpha: float, power: float = POWER) -> float:
    """Return the noncentrality at which a chi-square test of size alpha rejects with probability `power`."""
    critical = stats.chi2.isf(alpha, df)
    return _noncentrality(lambda value: float(stats.ncx2.sf(critical, df, value)) - power, critical)


def _noncentrality_at_most(statistic: float, df: int) -> float:
    """Return the upper confidence bound of the noncentrality; a statistic below its mean under equality counts as it.

    Else a sample that is alike by luck would bound the distance by less than chance can tell.
    """
    seen = max(statistic, float(df))
    return _noncentrality(lambda value: (1 - CONFIDENCE) - float(stats.ncx2.cdf(seen, df, value)), seen)


def _noncentrality(rising: object, start: float) -> float:
    """Return where a function that rises with the noncentrality is zero."""
    assert callable(rising)
    high = max(start, 1.0)
    while rising(high) < 0:
        high *= 2
    return float(optimize.brentq(rising, 1e-9, high))
