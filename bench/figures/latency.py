"""Figures of latency. Failed requests have none; a quantity that a request cannot have adds nothing, not 0."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from bench.measured import NS, Measured


def _decode(request: Measured) -> tuple[int, float] | None:
    """Return the tokens after the first chunk and the time they took, s; None for an answer of one chunk."""
    first, last, tokens = request.first, request.last, request.answer.num_tokens
    if first is None or last is None or tokens is None or first.num_tokens is None or last.at_ns <= first.at_ns:
        return None
    return tokens - first.num_tokens, (last.at_ns - first.at_ns) * NS


class TimeToFirstToken:
    """Time until the first content, reasoning included."""

    name: ClassVar[str] = "ttft_s"
    unit: ClassVar[str] = "s"
    formula: ClassVar[str] = "first content - sent"
    needs: ClassVar[tuple[str, ...]] = ()
    higher_is_better: ClassVar[bool] = False

    def samples(self, request: Measured) -> Sequence[float]:
        """Return one value."""
        return [] if request.first is None else [(request.first.at_ns - request.trace.sent_ns) * NS]


class TimeToFirstTokenFromIntended:
    """Time until the first content, from when the schedule wanted the request sent."""

    name: ClassVar[str] = "ttft_from_intended_s"
    unit: ClassVar[str] = "s"
    formula: ClassVar[str] = "first content - intended"
    needs: ClassVar[tuple[str, ...]] = ("an open-loop schedule",)
    higher_is_better: ClassVar[bool] = False

    def samples(self, request: Measured) -> Sequence[float]:
        """Return one value."""
        return [] if request.first is None else [(request.first.at_ns - request.trace.intended_ns) * NS]


class StepLatency:
    """Time between two steps of a stream; the gap before the first content is none."""

    name: ClassVar[str] = "step_latency_s"
    unit: ClassVar[str] = "s"
    formula: ClassVar[str] = "gap between chunks after the first; mean over steps"
    needs: ClassVar[tuple[str, ...]] = ("a chunk a step",)
    higher_is_better: ClassVar[bool] = False

    def samples(self, request: Measured) -> Sequence[float]:
        """Return a value for each step."""
        if not request.ok:
            return []
        return [(b.at_ns - a.at_ns) * NS for a, b in pairwise(request.answer.chunks)]


class TimePerOutputToken:
    """Time a token after the first chunk."""

    name: ClassVar[str] = "tpot_s"
    unit: ClassVar[str] = "s"
    formula: ClassVar[str] = "(last chunk - first chunk) / tokens after the first chunk"
    needs: ClassVar[tuple[str, ...]] = ("tokens",)
    higher_is_better: ClassVar[bool] = False

    def samples(self, request: Measured) -> Sequence[float]:
        """Return one value, none for an answer of one chunk."""
        decode = _decode(request)
        return [decode[1] / decode[0]] if decode and decode[0] > 0 else []


class UserThroughput:
    """Tokens that one user sees a second, after the first chunk."""

    name: ClassVar[str] = "user_tps"
    unit: ClassVar[str] = "tokens/s"
    formula: ClassVar[str] = "tokens after the first chunk / (last chunk - first chunk)"
    needs: ClassVar[tuple[str, ...]] = ("tokens",)
    higher_is_better: ClassVar[bool] = True

    def samples(self, request: Measured) -> Sequence[float]:
        """Return one value, none for an answer of one chunk."""
        decode = _decode(request)
        return [decode[0] / decode[1]] if decode and decode[0] > 0 else []


class EndToEndLatency:
    """Time from sent to the last content."""

    name: ClassVar[str] = "e2e_s"
    unit: ClassVar[str] = "s"
    formula: ClassVar[str] = "last content - sent"
    needs: ClassVar[tuple[str, ...]] = ()
    higher_is_better: ClassVar[bool] = False

    def samples(self, request: Measured) -> Sequence[float]:
        """Return one value."""
        return [] if request.last is None else [(request.last.at_ns - request.trace.sent_ns) * NS]
