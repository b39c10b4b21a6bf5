"""Each run against its baseline: the one without speculation that is nearest to it, else the first that was given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.comparison.compare import compare
from bench.errors import UnlikeRuns

if TYPE_CHECKING:
    from bench.report.results import Run

_NEAREST = ("data", "config", "temperature", "concurrency", "repeat")
"""Axes on which a baseline is looked for, the one that matters most first."""


@dataclass(frozen=True)
class Comparison:
    """A run against its baseline: what `bench.comparison.compare` returns, or why it refused (`refused`)."""

    run: Run
    baseline: Run
    result: Mapping[str, Any] | None
    refused: str = ""

    @property
    def speed_up(self) -> Mapping[str, Any] | None:
        """Ratio of user_tps over the pairs, with its interval; None where it is not known."""
        user = self.result["speed_up"]["user_tps"] if self.result is not None else None
        return user["ratio"] if user else None


def compare_runs(runs: Sequence[Run]) -> tuple[Comparison, ...]:
    """Return a comparison for each run that has a baseline."""
    return tuple(_compared(run, baseline) for run in runs if (baseline := find_baseline(run, runs)) is not None)


def find_baseline(run: Run, runs: Sequence[Run]) -> Run | None:
    """Return the run to compare with; None for a baseline itself.

    It has no speculation and is of the same sweep, or of none; of several, one of the same engine and model, and of
    these the nearest on the axes of a sweep. Where no run is without speculation, those outside of sweeps are compared
    with the first that was given.
    """
    if not run.speculative:
        return None
    beside = [other for other in runs if _home(other) == _home(run) and other is not run]
    plain = [other for other in beside if not other.speculative]
    if plain:
        return min(plain, key=lambda other: _unlike(other, run))
    earlier = list(runs[: next(i for i, other in enumerate(runs) if other is run)])
    return next((other for other in earlier if not other.sweep), None) if not run.sweep else None


def _unlike(other: Run, run: Run) -> tuple[bool, ...]:
    engines = other.config["engine"], run.config["engine"]
    first = tuple(engines[0][key] != engines[1][key] for key in ("dialect", "model"))
    return first + tuple(other.place.get(axis) != run.place.get(axis) for axis in _NEAREST)


def _home(run: Run) -> str:
    return str(run.path.parent) if run.sweep else ""


def _compared(run: Run, baseline: Run) -> Comparison:
    try:
        return Comparison(run, baseline, compare(baseline.side, run.side))
    except UnlikeRuns as refusal:
        return Comparison(run, baseline, None, _briefly(str(refusal)))


def _briefly(refusal: str) -> str:
    """Return a refusal without the advice for a command line, its digests cut to what can be told apart by eye."""
    words = refusal.partition("; run them alike")[0]
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,52}\b", r"\1…", words)
