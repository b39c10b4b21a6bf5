"""Throughput against latency: points, and those that no other dominates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """A point of a series: `user_tps` to the right, `output_tps` upwards; None where it failed or is held back.

    `low` and `high` bound `output_tps`; None where a run has but one repeat.
    """

    concurrency: int
    user_tps: float | None
    output_tps: float | None
    low: float | None = None
    high: float | None = None

    @property
    def told(self) -> bool:
        """Whether both figures are there."""
        return self.user_tps is not None and self.output_tps is not None


def non_dominated(points: Sequence[tuple[float, float]]) -> tuple[bool, ...]:
    """Tell of each point whether no other is at least as good in both coordinates and better in one; higher is better.

    Two equal points do not dominate one another.
    """
    return tuple(not any(a >= x and b >= y and (a > x or b > y) for a, b in points) for x, y in points)


def along(spots: Sequence[Spot]) -> list[Spot | None]:
    """Return the points of one series by concurrency, None in the place of each that failed.

    A line drawn through what this returns breaks where a point failed, so that nothing can be read off between its
    neighbours.
    """
    return [spot if spot.told else None for spot in sorted(spots, key=lambda spot: spot.concurrency)]
