"""How one worker of the client fared. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """How the worker itself fared.

    Attributes
    ----------
    cpu_s, wall_s
        CPU time and wall time between `Go` and the end, s.
    loop_lag_ns
        By how much a timer of the loop was late, ns, sampled through the run.
    read_lag_ns
        From the arrival of bytes in the kernel until they were in hand, ns: the longest of each short while with reads.
        Empty where the kernel does not tell arrivals: stamps are then the worker's own.
    """

    worker: int
    cpu_s: float
    wall_s: float
    loop_lag_ns: array[int] = field(default_factory=lambda: array("q"))
    read_lag_ns: array[int] = field(default_factory=lambda: array("q"))
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "worker": self.worker,
            "cpu_s": self.cpu_s,
            "wall_s": self.wall_s,
            "loop_lag_ns": list(self.loop_lag_ns),
            "read_lag_ns": list(self.read_lag_ns),
            "error": self.error,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> WorkerReport:
        """Return the report that `to_json` wrote."""
        lags = {name: array("q", values[name]) for name in ("loop_lag_ns", "read_lag_ns")}
        return cls(**{**values, **lags})
