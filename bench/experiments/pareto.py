"""Throughput against latency: the points that no other beats on both. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One way to run a server.

    Attributes
    ----------
    user_tps
        What one user sees, tokens/s: the inverse of latency a token.
    output_tps
        What the server delivers, tokens/s, by GPU where there are any.
    """

    name: str
    user_tps: float
    output_tps: float


def pareto_front(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that none dominates, by user_tps; of two alike, the first.

    One dominates another if it is at least as good on both figures and better on one.
    """
    front = list[Operation]()
    ordered = sorted(range(len(operations)), key=lambda i: (-operations[i].user_tps, -operations[i].output_tps, i))
    most = float("-inf")
    for i in ordered:
        if operations[i].output_tps > most:
            most = operations[i].output_tps
            front.append(operations[i])
    return front[::-1]
