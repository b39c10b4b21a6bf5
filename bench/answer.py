"""What an engine said in answer to one request, in terms that no engine owns. Absent is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ChunkKind = Literal["answer", "reasoning"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a streamed answer; under speculative decoding it may hold several tokens.

    Attributes
    ----------
    at_ns
        Clock at the read that completed it.
    num_tokens
        Tokens in it by id, else by the engine's running usage; None where neither is told.
    kind
        Whether it is part of the reasoning or of the answer, where the engine tells them apart.
    read
        Index of the read, for the share of merged reads.
    """

    at_ns: int
    num_tokens: int | None
    kind: ChunkKind = "answer"
    read: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SpecCounters:
    """What an engine counted of the speculation of one request, before anything is clipped.

    Attributes
    ----------
    per_step
        ``(drafted, matched)`` of each verify step that had a draft, in order; drafted is None where untold.
    delivered
        Delivered tokens of each of those steps, where the engine tells the step of each token.
    plain_steps
        Decode steps without a draft, where told.
    histogram
        Steps by matched drafts, index 0..k, where only this is told.
    steps, matched, drafted
        Totals, where told.
    draft_length
        k, where told.
    nodes
        Draft tokens proposed in trees, where they are more than a path.
    """

    per_step: tuple[tuple[int | None, int], ...] | None = None
    delivered: tuple[int, ...] | None = None
    plain_steps: int | None = None
    histogram: tuple[int, ...] | None = None
    steps: int | None = None
    matched: int | None = None
    drafted: int | None = None
    draft_length: int | None = None
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, parsed.

    Attributes
    ----------
    token_ids
        Ids of the delivered tokens, None where the engine does not send them.
    chunk_ids
        Whether `Chunk.num_tokens` was counted by id.
    error
        What went wrong, "" if nothing did.
    extras
        Further fields of the engine, kept as they came.
    """

    chunks: tuple[Chunk, ...] = ()
    text: str = ""
    reasoning_text: str = ""
    token_ids: tuple[int, ...] | None = None
    chunk_ids: bool = False
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    spec: SpecCounters | None = None
    error: str = ""
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def num_tokens(self) -> int | None:
        """Delivered tokens: by id, else by usage, else by the chunks."""
        if self.token_ids is not None:
            return len(self.token_ids)
        if self.usage.completion_tokens is not None:
            return self.usage.completion_tokens
        counts = [chunk.num_tokens for chunk in self.chunks]
        if not counts or any(count is None for count in counts):
            return None
        return sum(count or 0 for count in counts)
