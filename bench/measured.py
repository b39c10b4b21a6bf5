"""One request as the figures see it: its trace, the parsed answer and the acceptance. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bench.acceptance import Acceptance
from bench.answer import Answer, Chunk
from bench.engines.base import Engine, parse_answer
from bench.evidence import EngineTotals, engine_totals, normal_form
from bench.trace import Reads, Trace

NS = 1e-9
"""Seconds in a nanosecond."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A request after parsing. `trace` is without its reads, which stay on disk.

    Attributes
    ----------
    merged
        Chunks that came in one read with an earlier chunk of their stream; None where that says nothing.
    """

    trace: Trace
    answer: Answer
    acceptance: Acceptance | None = None
    totals: EngineTotals | None = None
    merged: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the request succeeded: at least one token and a finish reason."""
        return not self.answer.error

    @property
    def first(self) -> Chunk | None:
        """The first chunk that held content."""
        return self.answer.chunks[0] if self.ok and self.answer.chunks else None

    @property
    def last(self) -> Chunk | None:
        """The last chunk that held content."""
        return self.answer.chunks[-1] if self.ok and self.answer.chunks else None

    @property
    def conversation(self) -> tuple[str, int]:
        """Id and repeat; the repeats of one id together are the unit of every interval."""
        return self.trace.conversation_id, self.trace.repeat


def measure(trace: Trace, engine: Engine, *, draft_length: int | None = None) -> Measured:
    """Return the parsed request; a failed one carries its reason. `draft_length` is k, 0 without speculation."""
    answer = parse_answer(engine, trace.reads, trace.status, trace.transport_error)
    merged = None
    if engine.tells.event_is_step and not answer.error:
        reads = [chunk.read for chunk in answer.chunks]
        merged = len(reads) - len(set(reads))
    return Measured(
        replace(trace, reads=Reads()),
        answer,
        normal_form(answer, draft_length=draft_length),
        None if draft_length == 0 else engine_totals(answer),
        merged,
    )


def by_conversation(requests: Iterable[Measured]) -> dict[tuple[str, int], list[Measured]]:
    """Return the requests of each conversation, in the order of turns; conversations sorted, so that no order shows."""
    groups = dict[tuple[str, int], list[Measured]]()
    for request in requests:
        groups.setdefault(request.conversation, []).append(request)
    return {key: sorted(groups[key], key=lambda m: m.trace.turn) for key in sorted(groups)}


def is_complete(turns: list[Measured]) -> bool:
    """Whether every turn of a conversation succeeded."""
    return len(turns) == turns[0].trace.num_turns and all(turn.ok for turn in turns)
