"""Acceptance and speed as the temperature rises. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.figures.acceptance import AcceptanceLength
from bench.figures.base import conversation_values, over_repeats
from bench.measured import Measured
from bench.slices import sliced
from bench.statistics import Interval, headline_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TemperatureRow:
    """One server at one temperature.

    Attributes
    ----------
    acceptance_length
        Headline: mean over categories of the mean over conversations; None without speculation.
    by_category
        Mean over conversations of each category.
    kept
        Acceptance length over that of the lowest temperature of the same server.
    """

    server: str
    temperature: float
    acceptance_length: Interval | None
    by_category: Mapping[str, float]
    kept: float | None


def temperature_rows(runs: Mapping[tuple[str, float], Sequence[Measured]]) -> list[TemperatureRow]:
    """Return a row for each server and temperature, in sorted order.

    Parameters
    ----------
    runs
        By server and temperature, the requests of all starts.
    """
    rows, coolest = [], dict[str, float | None]()
    for server, temperature in sorted(runs):
        groups = _lengths(runs[server, temperature])
        interval = headline_interval(groups) if groups else None
        first = coolest.setdefault(server, interval.value if interval else None)
        kept = interval.value / first if interval and first else None
        means = {name: float(values.mean()) for name, values in groups.items()}
        rows.append(TemperatureRow(server, temperature, interval, means, kept))
    return rows


def _lengths(requests: Sequence[Measured]) -> dict[str, Floats]:
    groups = {
        name: over_repeats(conversation_values(AcceptanceLength(), group))
        for name, group in sliced(requests, "category").items()
    }
    return {name: values for name, values in groups.items() if len(values)}
