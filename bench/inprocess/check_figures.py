"""Figures and verdict of the GPU check. Pure, and without a package beyond the standard library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from bench.inprocess.protocol import Finish, Step

BFLOAT16_EPS = 2.0**-8
"""Relative distance of neighbouring bfloat16 numbers, at most."""

NEAR_TIE = 8 * BFLOAT16_EPS
"""Two logits are a near tie within this share of the higher one: some roundings of bfloat16, as two shapes of the same
product sum up differently."""


def cell_figures(answers: Sequence[tuple[Sequence[Step], Finish]]) -> dict[str, Any]:
    """Return the figures of some answers: counts, acceptance length, and times in ms; None where there is nothing.

    The first draft of an answer holds the drafter's own prefill and is told apart; `step_ms` is the gap between the
    stamps of a step and the one before it, of steps after the first.
    """
    steps = [step for told, _ in answers for step in told[1:]]
    verified = [step for step in steps if step.kind == "verify"]
    later = [step for told, _ in answers for step in told[2:]]
    gaps = [b.at_ns - a.at_ns for told, _ in answers for a, b in pairwise(told[1:])]
    decode_ns = sum(told[-1].at_ns - told[0].at_ns for told, _ in answers)
    tokens = sum(len(step.ids) for step in steps)
    return {
        "tokens": tokens,
        "verify_steps": len(verified),
        "plain_steps": len(steps) - len(verified),
        "acceptance_length": sum(len(s.ids) for s in verified) / len(verified) if verified else None,
        "prefill_ms": _mean_ms([told[0].verify_ns for told, _ in answers]),
        "first_draft_ms": _mean_ms([told[1].draft_ns for told, _ in answers if len(told) > 1]),
        "draft_ms": _mean_ms([step.draft_ns for step in later]),
        "verify_ms": _mean_ms([step.verify_ns for step in later]),
        "step_ms": _mean_ms(gaps),
        "step_p50_ms": median(gaps) * 1e-6 if gaps else None,
        "user_tps": tokens / (decode_ns * 1e-9) if decode_ns else None,
    }


def _mean_ms(values: Sequence[int | None]) -> float | None:
    told = [value for value in values if value is not None]
    return fmean(told) * 1e-6 if told else None


def difference(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Return the first place where two answers differ, None if they are equal."""
    if list(a) == list(b):
        return None
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def verdict_of(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether greedy answers with drafts are the plain ones.

    Returns
    -------
    dict
        `verdict` is "equal"; "equal but for near ties", if every answer that parts does so where the target's two
        likeliest tokens are closer than the roundings of bfloat16; or "differs", if one parts elsewhere or the
        control in float32 does; "not shown" without an answer to compare.
    """
    found = [c for cell in results["cells"] for c in cell.get("against_plain", ())]
    parted = [c for c in found if not c["equal"]]
    far = [c for c in parted if c["logit_gap"] > NEAR_TIE * c["logit_scale"]]
    in_float32 = all(results["float32_controls"]["greedy_equals_plain"].values())
    if far or not in_float32:
        verdict = "differs"
    elif not found:
        verdict = "not shown"
    else:
        verdict = "equal but for near ties" if parted else "equal"
    return {
        "verdict": verdict,
        "answers": len(found),
        "equal": len(found) - len(parted),
        "near_ties": len(parted) - len(far),
        "elsewhere": len(far),
        "equal_in_float32": in_float32,
    }
