"""Figures of acceptance. A step is a verify step; the prefill is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from bench.answer import ChunkKind
from bench.figures.base import Context
from bench.measured import Measured


class AcceptanceLength:
    """Tokens that a verify step delivers."""

    name: ClassVar[str] = "acceptance_length"
    unit: ClassVar[str] = "tokens/step"
    formula: ClassVar[str] = "sum of delivered tokens / verify steps"
    needs: ClassVar[tuple[str, ...]] = ("per-step counters", "or totals", "or token ids by chunk")
    higher_is_better: ClassVar[bool] = True

    def terms(self, request: Measured) -> tuple[float, float] | None:
        """Return delivered tokens and verify steps."""
        a = request.acceptance
        return None if a is None else (a.delivered, a.steps)


class TokensPerStep:
    """Tokens that a decode step delivers, steps without a draft among them."""

    name: ClassVar[str] = "tokens_per_step"
    unit: ClassVar[str] = "tokens/step"
    formula: ClassVar[str] = "decoded tokens / (verify steps + steps without a draft)"
    needs: ClassVar[tuple[str, ...]] = ("steps without a draft",)
    higher_is_better: ClassVar[bool] = True

    def terms(self, request: Measured) -> tuple[float, float] | None:
        """Return decoded tokens and decode steps."""
        a = request.acceptance
        if a is None or a.plain_steps is None:
            return None
        return a.delivered + a.plain_steps, a.steps + a.plain_steps


class AcceptanceRate:
    """Share of the drafts that were delivered."""

    name: ClassVar[str] = "acceptance_rate"
    unit: ClassVar[str] = ""
    formula: ClassVar[str] = "delivered drafts / drafted tokens"
    needs: ClassVar[tuple[str, ...]] = ("drafted tokens",)
    higher_is_better: ClassVar[bool] = True

    def terms(self, request: Measured) -> tuple[float, float] | None:
        """Return delivered drafts and drafted tokens."""
        a = request.acceptance
        if a is None or a.accepted is None or a.drafted is None:
            return None
        return a.accepted, a.drafted


class RejectedDrafts:
    """Drafts that were paid for and thrown away."""

    name: ClassVar[str] = "rejected_drafts_per_token"
    unit: ClassVar[str] = "drafts/token"
    formula: ClassVar[str] = "(drafted - delivered drafts) / delivered tokens"
    needs: ClassVar[tuple[str, ...]] = ("drafted tokens",)
    higher_is_better: ClassVar[bool] = False

    def terms(self, request: Measured) -> tuple[float, float] | None:
        """Return rejected drafts and delivered tokens."""
        a = request.acceptance
        if a is None or a.accepted is None or a.drafted is None:
            return None
        return a.drafted - a.accepted, a.delivered


class _KindAcceptanceLength:
    """Acceptance length of one kind of text, by chunks, for engines that tell reasoning from answer."""

    unit: ClassVar[str] = "tokens/step"
    formula: ClassVar[str] = "tokens of the kind's chunks / those chunks, the first chunk left out"
    needs: ClassVar[tuple[str, ...]] = ("reasoning apart", "token ids by chunk")
    higher_is_better: ClassVar[bool] = True
    kind: ClassVar[ChunkKind]

    def terms(self, request: Measured) -> tuple[float, float] | None:
        """Return tokens and chunks of the kind."""
        answer = request.answer
        if request.acceptance is None or not answer.chunk_ids or not answer.reasoning_text:
            return None
        lengths = [chunk.num_tokens or 0 for chunk in answer.chunks[1:] if chunk.kind == self.kind]
        return sum(lengths), len(lengths)


class ReasoningAcceptanceLength(_KindAcceptanceLength):
    """Acceptance length of reasoning tokens."""

    name: ClassVar[str] = "acceptance_length_reasoning"
    kind: ClassVar[ChunkKind] = "reasoning"


class AnswerAcceptanceLength(_KindAcceptanceLength):
    """Acceptance length of answer tokens."""

    name: ClassVar[str] = "acceptance_length_answer"
    kind: ClassVar[ChunkKind] = "answer"


class EngineAcceptanceLength:
    """What the engine says of itself: counter deltas of the run, else the sums of its requests' totals, unclipped."""

    name: ClassVar[str] = "engine_acceptance_length"
    unit: ClassVar[str] = "tokens/step"
    formula: ClassVar[str] = "1 + matched drafts / verify steps, as the engine counts, past the end of text too"
    needs: ClassVar[tuple[str, ...]] = ("server counters", "or totals of requests")
    higher_is_better: ClassVar[bool] = True

    def value(self, requests: Sequence[Measured], context: Context) -> float | None:
        """Return the number of the counters if there are any, else of the requests."""
        if "engine_acceptance_length" in context.counters:
            return context.counters["engine_acceptance_length"]
        totals = [m.totals for m in requests if m.ok and m.totals is not None]
        steps = sum(t.steps for t in totals)
        return 1.0 + sum(t.matched for t in totals) / steps if steps else None
