"""Intervals. The unit that is resampled is the conversation, for the steps of one are not independent. Pure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

LEVEL = 0.95
RESAMPLES = 2_000
MIN_UNITS = 8
"""Conversations below which no interval is given: resampling fewer understates how little is known."""
METHOD = "BCa bootstrap of conversations"
ALIKE = "all conversations are alike"
ROUNDING = 1e-12
"""Values that differ by less, relative to the largest, are the same but for the order in which they were summed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval for a statistic.

    Attributes
    ----------
    value
        The statistic itself.
    low, high
        Its bounds; None where `note` says why there are none.
    method
        How it was made, in words.
    n
        Units: conversations, or runs.
    """

    value: float
    low: float | None
    high: float | None
    method: str
    n: int
    level: float = LEVEL
    note: str = ""


def mean_interval(values: Floats, *, seed: int = 0) -> Interval:
    """Return the BCa interval of a mean over conversations.

    Parameters
    ----------
    values
        One value a conversation, shape ``(n,)``, n >= 1.

    References
    ----------
    Efron (1987), "Better Bootstrap Confidence Intervals".
    """
    return _bca((values,), np.mean, float(np.mean(values)), seed)


def ratio_interval(numerators: Floats, denominators: Floats, *, seed: int = 0) -> Interval:
    """Return the BCa interval of a ratio of sums over conversations, both of shape ``(n,)``.

    Conversations that add to neither sum, such as those without a verify step, are no units: a sample of nothing else
    would have no ratio.
    """
    told = (numerators != 0) | (denominators != 0)
    a, b = numerators[told], denominators[told]
    value = float(a.sum() / b.sum())
    if len(a) >= MIN_UNITS and np.allclose(a * b.sum(), b * a.sum(), rtol=ROUNDING, atol=0):
        return Interval(value, value, value, METHOD, len(a), note=ALIKE)
    return _bca((a, b), _ratio_of_sums, value, seed, paired=True)


def _ratio_of_sums(a: Floats, b: Floats, axis: int = -1) -> Floats:
    ratio: Floats = a.sum(axis=axis) / b.sum(axis=axis)
    return ratio


def _bca(samples: tuple[Floats, ...], statistic: object, value: float, seed: int, *, paired: bool = False) -> Interval:
    n = len(samples[0])
    if n < MIN_UNITS:
        return Interval(value, None, None, METHOD, n, note=f"n too small: {n} conversations")
    if all(np.ptp(sample) <= ROUNDING * np.abs(sample).max() for sample in samples):
        return Interval(value, value, value, METHOD, n, note=ALIKE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        found = stats.bootstrap(
            samples,
            statistic,
            paired=paired,
            vectorized=True,
            method="BCa",
            n_resamples=RESAMPLES,
            confidence_level=LEVEL,
            rng=np.random.default_rng(seed),
        ).confidence_interval
    if not np.isfinite([found.low, found.high]).all():
        return Interval(value, None, None, METHOD, n, note="too few conversations differ")
    return Interval(value, float(found.low), float(found.high), METHOD, n)


def headline_interval(groups: Mapping[str, Floats], *, seed: int = 0) -> Interval:
    """Return the interval of the mean over categories of the mean over conversations.

    Conversations are drawn again within their category, categories stay as they are: they are the benchmark's, not a
    sample. The bounds are percentiles of the resampled headline.
    """
    names = sorted(groups)
    n = sum(len(groups[name]) for name in names)
    value = float(np.mean([groups[name].mean() for name in names]))
    method = "percentile bootstrap of conversations within categories"
    if min(len(groups[name]) for name in names) < MIN_UNITS:
        return Interval(value, None, None, method, n, note="n too small in a category")
    rng = np.random.default_rng(seed)
    drawn = np.mean([resampled_means(groups[name], rng) for name in names], axis=0)
    return _percentiles(value, drawn, method, n)


def resampled_weights(n: int, rng: np.random.Generator) -> Floats:
    """Return how often each of n units is in `RESAMPLES` samples with replacement, over n; shape ``(RESAMPLES, n)``."""
    drawn = rng.integers(0, n, (RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * n).reshape(RESAMPLES, n)
    weights: Floats = counts / n
    return weights


def resampled_means(values: Floats, rng: np.random.Generator) -> Floats:
    """Return the means of `RESAMPLES` samples with replacement, shape ``(RESAMPLES,)``."""
    means: Floats = resampled_weights(len(values), rng) @ values
    return means


def _percentiles(value: float, drawn: Floats, method: str, n: int) -> Interval:
    low, high = np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Interval(value, float(low), float(high), method, n)


def runs_interval(values: Sequence[float]) -> Interval:
    """Return the t-interval of a mean over repeated runs, which sees what resampling within one run cannot."""
    x = np.asarray(values, np.float64)
    mean, n = float(x.mean()), len(x)
    method = "t-interval over runs"
    if n < 2:
        return Interval(mean, None, None, method, n, note="n too small: one run")
    half = float(stats.t.ppf(0.5 * (1 + LEVEL), n - 1) * x.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, method, n)


@dataclass(frozen=True, slots=True)
class Paired:
    """Two runs over the same conversations.

    Attributes
    ----------
    ratio
        Mean over categories of the second run's mean, over the same of the first.
    geometric_mean_ratio
        Geometric mean of the ratios of the pairs.
    difference
        Of the means over categories, second less first.
    """

    ratio: Interval
    geometric_mean_ratio: Interval
    difference: Interval


def paired_intervals(first: Mapping[str, Floats], second: Mapping[str, Floats], *, seed: int = 0) -> Paired:
    """Return how the second run differs from the first; pairs are drawn again within their category.

    Parameters
    ----------
    first, second
        Values > 0 by category, row i of both from the same conversation.
    """
    names = sorted(first)
    method = "percentile bootstrap of pairs within categories"
    n = sum(len(first[name]) for name in names)
    rng = np.random.default_rng(seed)
    a, b, logs = _drawn_pairs(first, second, names, rng)
    point_a = float(np.mean([first[name].mean() for name in names]))
    point_b = float(np.mean([second[name].mean() for name in names]))
    point_log = float(np.mean([np.log(second[name] / first[name]).mean() for name in names]))
    if min(len(first[name]) for name in names) < MIN_UNITS:
        note = "n too small in a category"
        values = (point_b / point_a, float(np.exp(point_log)), point_b - point_a)
        return Paired(*(Interval(value, None, None, method, n, note=note) for value in values))
    return Paired(
        _percentiles(point_b / point_a, b / a, method, n),
        _percentiles(float(np.exp(point_log)), np.exp(logs), method, n),
        _percentiles(point_b - point_a, b - a, method, n),
    )


def _drawn_pairs(
    first: Mapping[str, Floats], second: Mapping[str, Floats], names: Sequence[str], rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    totals = np.zeros((3, RESAMPLES))
    for name in names:
        weights = resampled_weights(len(first[name]), rng)
        columns = np.stack([first[name], second[name], np.log(second[name] / first[name])])
        totals += (weights @ columns.T).T
    a, b, logs = totals / len(names)
    return a, b, logs
