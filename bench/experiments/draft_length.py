"""The best draft length of each concurrency. Pure.

SPEED-Bench (Fig. 7) finds long drafts best at small batches and short ones at large; here every length that was run
competes, none at all among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.statistics import Interval, runs_interval


@dataclass(frozen=True, slots=True)
class Measurement:
    """Output throughput of one run, tokens/s; a draft length of 0 is no speculation."""

    config: str
    concurrency: int
    draft_length: int
    output_tps: float


@dataclass(frozen=True, slots=True)
class BestLength:
    """The draft length with the highest mean output throughput at one concurrency.

    Attributes
    ----------
    output_tps
        By draft length, with the interval over starts of the server.
    gain
        Its throughput over that without speculation; None where that was not run.
    separated
        Whether its interval lies above that of every other length; None where a length was run but once.
    """

    config: str
    concurrency: int
    draft_length: int
    output_tps: dict[int, Interval]
    gain: float | None
    separated: bool | None


def best_lengths(measurements: Iterable[Measurement]) -> list[BestLength]:
    """Return the best length of each config and concurrency; the shorter one at a tie."""
    cells = dict[tuple[str, int], dict[int, list[float]]]()
    for m in measurements:
        cells.setdefault((m.config, m.concurrency), {}).setdefault(m.draft_length, []).append(m.output_tps)
    return [_best(*place, cells[place]) for place in sorted(cells)]


def _best(config: str, concurrency: int, values: dict[int, list[float]]) -> BestLength:
    intervals = {k: runs_interval(values[k]) for k in sorted(values)}
    best = max(intervals, key=lambda k: (intervals[k].value, -k))
    plain = intervals.get(0)
    gain = intervals[best].value / plain.value if plain and plain.value else None
    return BestLength(config, concurrency, best, intervals, gain, _separated(intervals, best))


def _separated(intervals: dict[int, Interval], best: int) -> bool | None:
    low = intervals[best].low
    others = [interval.high for k, interval in intervals.items() if k != best]
    if low is None or any(high is None for high in others):
        return None
    return all(high is not None and low > high for high in others)
