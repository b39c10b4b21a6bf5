"""Cut a list of texts into requests that an embedding service accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold: inputs, tokens in all, and tokens of one input."""

    max_inputs: int
    max_tokens: int
    max_input_tokens: int

    def __post_init__(self) -> None:
        if self.max_inputs < 1 or self.max_input_tokens < 1:
            raise ValueError(f"a request holds at least one input of one token, got {self}")
        if self.max_input_tokens > self.max_tokens:
            raise ValueError(f"max_input_tokens must be at most {self.max_tokens}, got {self.max_input_tokens}")


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Requests as tuples of places in the list; places that are not sent, and places that are cut to the limit."""

    batches: tuple[tuple[int, ...], ...]
    empty: tuple[int, ...]
    cut: tuple[int, ...]


def plan_batches(lengths: Sequence[int], limits: Limits) -> BatchPlan:
    """Return requests that keep every limit, each text in exactly one, in the order of the list.

    Parameters
    ----------
    lengths
        Tokens of each text by the service's own tokenizer; 0 for a text that must not be sent (empty or blank).
    limits
        Of one request. A text over `max_input_tokens` counts as cut to it.

    Raises
    ------
    ValueError
        If a length is negative.
    """
    batches: list[tuple[int, ...]] = []
    batch: list[int] = []
    tokens = 0
    for place, length in enumerate(lengths):
        if length < 0:
            raise ValueError(f"lengths must not be negative, got {length} at {place}")
        if length == 0:
            continue
        sent = min(length, limits.max_input_tokens)
        if len(batch) == limits.max_inputs or (batch and tokens + sent > limits.max_tokens):
            batches.append(tuple(batch))
            batch, tokens = [], 0
        batch.append(place)
        tokens += sent
    if batch:
        batches.append(tuple(batch))
    return BatchPlan(
        tuple(batches),
        tuple(i for i, n in enumerate(lengths) if n == 0),
        tuple(i for i, n in enumerate(lengths) if n > limits.max_input_tokens),
    )
