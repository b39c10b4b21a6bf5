"""The one normal form of acceptance: verify steps by what they delivered. Pure.

A verify step is one target forward that checks drafts; the prefill is none. A step that delivered ``c`` tokens,
after the cut at end of text, stop or budget, counts in ``h[c - 1]``; a step that delivered nothing does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Literal

Source = Literal["per_step", "totals", "chunks"]
"""Evidence, best first: counters clipped to what was delivered, totals that need no clipping, chunk lengths by id."""


@dataclass(frozen=True, slots=True)
class Step:
    """One verify step: tokens drafted (None if untold), drafts that matched, tokens delivered."""

    drafted: int | None
    matched: int
    delivered: int


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Acceptance of one request, or pooled over several.

    Attributes
    ----------
    source
        The evidence; two sources are never pooled.
    steps, delivered
        Verify steps, and the tokens that they delivered.
    histogram
        ``h[0..k]``, steps by delivered tokens less one; None where only totals are told.
    drafted, accepted
        Draft tokens proposed along the path, and those that were delivered; None where untold.
    tried
        ``tried[i - 1]`` = steps that kept ``i - 1`` drafts and had drafted at least ``i``; None where untold.
    plain_steps
        Decode steps without a draft; None where untold.
    nodes
        Nodes proposed in draft trees; None for a chain.
    """

    source: Source
    steps: int
    delivered: int
    histogram: tuple[int, ...] | None = None
    drafted: int | None = None
    accepted: int | None = None
    tried: tuple[int, ...] | None = None
    plain_steps: int | None = None
    nodes: int | None = None

    def survival(self) -> tuple[int, ...] | None:
        """Return ``S_0..S_k``: steps that kept at least i drafts; S_0 is all steps."""
        if self.histogram is None:
            return None
        tail, sums = 0, list[int]()
        for count in reversed(self.histogram):
            tail += count
            sums.append(tail)
        return tuple(reversed(sums))

    def acceptance_rates(self) -> tuple[float | None, ...] | None:
        """Return ``AR_1..AR_k``, ``AR_i = S_i / S_{i-1}``; None where no step kept i - 1 drafts."""
        survival = self.survival()
        if survival is None:
            return None
        return tuple(ratio(s, previous) for previous, s in pairwise(survival))

    def drafted_acceptance_rates(self) -> tuple[float | None, ...] | None:
        """Return ``AR_i_drafted``: as ``AR_i``, among the steps that had drafted at least i tokens."""
        survival = self.survival()
        if survival is None or self.tried is None:
            return None
        return tuple(ratio(s, tried) for s, tried in zip_longest(survival[1:], self.tried, fillvalue=0))

    def acceptance_length(self) -> float | None:
        """Return delivered tokens a verify step, >= 1; None without a step."""
        return ratio(self.delivered, self.steps)

    def acceptance_rate(self) -> float | None:
        """Return delivered drafts over drafted tokens, in [0, 1]; None where the drafts are untold."""
        if self.accepted is None or self.drafted is None:
            return None
        return ratio(self.accepted, self.drafted)

    def tokens_per_step(self) -> float | None:
        """Return delivered tokens a decode step, steps without a draft among them."""
        if self.plain_steps is None:
            return None
        return ratio(self.delivered + self.plain_steps, self.steps + self.plain_steps)


def ratio(numerator: float, denominator: float) -> float | None:
    """Return the quotient, or None where it is not defined."""
    return numerator / denominator if denominator else None


def pooled(parts: Iterable[Acceptance]) -> Acceptance | None:
    """Return the sum over requests; a field that one of them does not tell is None.

    Raises
    ------
    ValueError
        If the parts come from different evidence.
    """
    items = list(parts)
    if not items:
        return None
    if len({item.source for item in items}) > 1:
        raise ValueError(f"acceptance of different evidence is not pooled, got {sorted({i.source for i in items})}")
    return Acceptance(
        items[0].source,
        sum(item.steps for item in items),
        sum(item.delivered for item in items),
        _sum_vectors([item.histogram for item in items]),
        _sum([item.drafted for item in items]),
        _sum([item.accepted for item in items]),
        _sum_vectors([item.tried for item in items]),
        _sum([item.plain_steps for item in items]),
        _sum([item.nodes for item in items]),
    )


def from_steps(steps: Sequence[Step], source: Source, *, plain_steps: int | None, k: int = 0) -> Acceptance:
    """Return the normal form of steps; those that delivered nothing do not count.

    Parameters
    ----------
    k
        Draft length, so that the histogram is dense to it even where no step reached it.
    """
    kept = [step for step in steps if step.delivered > 0]
    depth = max([k, *(step.delivered - 1 for step in kept)], default=k)
    histogram = [0] * (depth + 1)
    for step in kept:
        histogram[step.delivered - 1] += 1
    told = [step.drafted for step in kept if step.drafted is not None]
    all_told = len(told) == len(kept)
    return Acceptance(
        source,
        len(kept),
        sum(step.delivered for step in kept),
        tuple(histogram),
        sum(told) if all_told else None,
        # Of a step that was cut, all that was delivered were drafts.
        sum(min(step.matched, step.delivered) for step in kept) if all_told else None,
        _tried(kept, depth) if all_told else None,
        plain_steps,
    )


def _tried(steps: Sequence[Step], depth: int) -> tuple[int, ...]:
    return tuple(
        sum(1 for step in steps if (step.drafted or 0) >= i and step.delivered - 1 >= i - 1)
        for i in range(1, depth + 1)
    )


def _sum(values: Sequence[int | None]) -> int | None:
    told = [value for value in values if value is not None]
    return sum(told) if len(told) == len(values) else None


def _sum_vectors(values: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    told = [value for value in values if value is not None]
    if len(told) != len(values):
        return None
    return tuple(sum(column) for column in zip_longest(*told, fillvalue=0))
