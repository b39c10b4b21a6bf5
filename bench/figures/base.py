"""The three kinds of figures, and how each is aggregated. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from bench.acceptance import ratio
from bench.measured import Measured, by_conversation
from bench.window import Window

MIN_TAIL = 5
"""Observations beyond a percentile, below which it is not stated: p99 needs 500."""


class Figure(Protocol):
    """What every figure says of itself."""

    name: ClassVar[str]
    unit: ClassVar[str]
    formula: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    higher_is_better: ClassVar[bool]


class RatioFigure(Figure, Protocol):
    """A ratio of two sums over requests, such as tokens by steps."""

    def terms(self, request: Measured) -> tuple[float, float] | None:
        """Return numerator and denominator of one request; None where the request does not tell."""
        ...


class SampleFigure(Figure, Protocol):
    """A quantity with one or several values a request, such as the latency of each step."""

    def samples(self, request: Measured) -> Sequence[float]:
        """Return the values of one request; none where it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What a figure of a whole run needs besides its requests."""

    window: Window | None = None
    num_gpus: int | None = None
    ttft_limit_s: float | None = None
    tpot_limit_s: float | None = None
    energy_j: float | None = None
    counters: Mapping[str, float | None] = field(default_factory=dict)


class RunFigure(Figure, Protocol):
    """One number of a run, such as its throughput."""

    def value(self, requests: Sequence[Measured], context: Context) -> float | None:
        """Return the number; None where the run does not tell."""
        ...


def conversation_ratios(
    figure: RatioFigure, requests: Sequence[Measured]
) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the sums over the turns of each conversation that tells anything."""
    sums = dict[tuple[str, int], tuple[float, float]]()
    for key, turns in by_conversation(requests).items():
        terms = [t for t in map(figure.terms, turns) if t is not None]
        if terms:
            sums[key] = (sum(t[0] for t in terms), sum(t[1] for t in terms))
    return sums


def pooled(figure: RatioFigure, requests: Sequence[Measured]) -> float | None:
    """Return the ratio of the sums over all requests."""
    terms = [t for t in map(figure.terms, requests) if t is not None]
    return ratio(sum(t[0] for t in terms), sum(t[1] for t in terms))


def conversation_values(figure: RatioFigure, requests: Sequence[Measured]) -> dict[tuple[str, int], float]:
    """Return the ratio of each conversation, where it is defined."""
    values = {key: ratio(*sums) for key, sums in conversation_ratios(figure, requests).items()}
    return {key: value for key, value in values.items() if value is not None}


def over_repeats(values: Mapping[tuple[str, int], float]) -> np.ndarray:
    """Return the mean over repeats of each conversation, shape ``(n,)``, float64.

    These are the units of an interval: repeats of one conversation are no further ones, for they are much alike, and
    copies of each other where the engine is greedy.
    """
    repeats = dict[str, list[float]]()
    for (conversation_id, _), value in values.items():
        repeats.setdefault(conversation_id, []).append(value)
    return np.array([np.mean(repeats[name]) for name in sorted(repeats)], np.float64)


def request_mean(figure: RatioFigure, requests: Sequence[Measured]) -> float | None:
    """Return the mean over conversations of each one's ratio."""
    values = over_repeats(conversation_values(figure, requests))
    return float(np.mean(values)) if len(values) else None


def category_means(figure: RatioFigure, requests: Sequence[Measured]) -> dict[str, float]:
    """Return the mean over conversations, by category in sorted order."""
    groups = dict[str, list[Measured]]()
    for request in requests:
        groups.setdefault(request.trace.slices.get("category", ""), []).append(request)
    means = {name: request_mean(figure, groups[name]) for name in sorted(groups)}
    return {name: mean for name, mean in means.items() if mean is not None}


def headline(figure: RatioFigure, requests: Sequence[Measured]) -> float | None:
    """Return the mean over categories of the mean over conversations."""
    means = list(category_means(figure, requests).values())
    return float(np.mean(means)) if means else None


def all_samples(figure: SampleFigure, requests: Sequence[Measured]) -> np.ndarray:
    """Return the values of all requests, shape ``(n,)``, float64."""
    return np.array([value for request in requests for value in figure.samples(request)], np.float64)


def percentile(values: np.ndarray, percent: float) -> float | None:
    """Return a percentile, in ``(0, 100)``; None where n is too small for it to be known.

    It is stated if at least `MIN_TAIL` observations are expected beyond it, or if it is the median.
    """
    if not len(values):
        return None
    tail = len(values) * min(percent, 100 - percent) / 100
    if percent != 50 and tail < MIN_TAIL:
        return None
    return float(np.percentile(values, percent))
