"""The ways in which a result can be cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line takes the names alone, and must not load what parses streams
    from bench.measured import Measured

SLICES = ("category", "sub_category", "difficulty", "multiturn", "turn", "source", "isl", "tier")
"""What `--by` takes."""

_ISL_EDGES = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def slice_value(request: Measured, by: str) -> str:
    """Return where a request falls; "" where it has no such property.

    `isl` is the bucket of a throughput config; elsewhere the prompt's tokens, by powers of two.

    Raises
    ------
    ValueError
        If there is no such slice.
    """
    if by not in SLICES:
        raise ValueError(f"by must be one of {', '.join(SLICES)}, got {by!r}")
    if by == "turn":
        return str(request.trace.turn + 1)
    named = request.trace.slices.get(by, "")
    if by != "isl" or named:
        return named
    tokens = request.answer.usage.prompt_tokens or request.trace.prompt_tokens
    if tokens is None:
        return ""
    return next((f"<={edge}" for edge in _ISL_EDGES if tokens <= edge), f">{_ISL_EDGES[-1]}")


def sliced(requests: Sequence[Measured], by: str) -> dict[str, list[Measured]]:
    """Return the requests of each value, values in sorted order, numbers by size."""
    groups: dict[str, list[Measured]] = {}
    for request in requests:
        groups.setdefault(slice_value(request, by), []).append(request)
    return {value: groups[value] for value in sorted(groups, key=_order)}


def _order(value: str) -> tuple[int, int, str]:
    digits = value.strip("<=>k")
    scale = 1000 if value.endswith("k") else 1
    return (0, int(digits) * scale + value.startswith(">"), "") if digits.isdigit() else (1, 0, value)
