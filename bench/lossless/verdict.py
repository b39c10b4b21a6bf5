"""The verdict on whether speculative decoding changed the outputs, from its two parts: greedy and sampled. Pure.

Both sides are the requests of finished runs over the same prompts on the same engine, one without speculation. A
verdict is "equal", "differs", or "not shown" where something that it needs is absent; "equal" is said of what was
compared only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from bench.measured import Measured

Verdict = Literal["equal", "differs", "not shown"]
Json = dict[str, Any]


def speculation_of(requests: Sequence[Measured]) -> Json | None:
    """Return verify steps and the requests that had one; None where the engine does not tell."""
    told = [m.acceptance for m in requests if m.acceptance is not None]
    if not told:
        return None
    return {"verify_steps": sum(a.steps for a in told), "requests": sum(a.steps > 0 for a in told)}


def overall_verdict(t0: Json, t1: Json) -> Verdict:
    """Return the verdict of both parts: one that differs decides, else one that is shown."""
    verdicts = {t0["verdict"], t1["verdict"]}
    if "differs" in verdicts:
        return "differs"
    return "equal" if "equal" in verdicts else "not shown"


def not_shown(reason: str) -> Json:
    """Return the part of a verdict for which there is no run."""
    return {"verdict": "not shown", "reason": reason}
