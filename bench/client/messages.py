"""What coordinator and workers say to each other. Small and picklable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.transport.base import Reading, Target


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What one worker needs before the run.

    Attributes
    ----------
    bodies, offsets
        File of the encoded first requests, and of their edges, int64, one more than there are bodies.
    slots
        Conversations at once in a closed loop; 0: as many as the schedule wants.
    stagger_s
        Span over which the slots start, s.
    """

    index: int
    target: Target
    transport: str
    bodies: Path
    offsets: Path
    slots: int
    first_slot: int
    all_slots: int
    stagger_s: float
    connections: int


@dataclass(frozen=True, slots=True)
class Start:
    """Take up a conversation with body `body`; at `intended_ns`, or (None) when a slot is free."""

    key: int
    body: int
    intended_ns: int | None = None


@dataclass(frozen=True, slots=True)
class NextTurn:
    """The next request of a conversation; None: it is over."""

    key: int
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Go:
    """Begin: the clock of the run starts at `start_ns`."""

    start_ns: int


@dataclass(frozen=True, slots=True)
class Stop:
    """End now: what is in flight is given up."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has its connections."""

    worker: int


@dataclass(frozen=True, slots=True)
class Finished:
    """One request ended."""

    worker: int
    key: int
    intended_ns: int
    dispatch_ns: int
    reading: Reading
