"""A request to the simulator and its answer on its way, whatever the words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.simulator.process import SimulatedAnswer


@dataclass(frozen=True, slots=True)
class SimRequest:
    """What a request asks for, whatever its words."""

    path: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    ignore_eos: bool
    salted: bool
    running_usage: bool = False


@dataclass(slots=True)
class SimStream:
    """One answer on its way: how much of it was said, and the events that are said next."""

    request: SimRequest
    answer: SimulatedAnswer
    draft_length: int
    sent: int = 0
    chunk: int = 0
    cached: int = 0
    ready: bytes = b""

    def take(self) -> tuple[list[int], bool]:
        """Return the ids of the next chunk and whether it is the last."""
        count = self.answer.chunks[self.chunk]
        ids = list(self.answer.ids[self.sent : self.sent + count])
        self.sent += count
        self.chunk += 1
        return ids, self.chunk == len(self.answer.chunks)
