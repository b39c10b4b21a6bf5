"""Whether acceptance falls with the entropy of the text: low > mixed > high. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench.statistics import LEVEL, MIN_UNITS, resampled_means

Floats = NDArray[np.float64]

TIERS = ("low_entropy", "mixed", "high_entropy")
"""As SPEED-Bench orders them: acceptance is expected to fall along this order."""

Verdict = Literal["holds", "does not hold", "not shown"]


@dataclass(frozen=True, slots=True)
class TierStep:
    """Two neighbouring tiers.

    Attributes
    ----------
    difference
        Mean acceptance length of the first less that of the second, tokens/step.
    low, high
        Percentile bootstrap interval of it over conversations, drawn in each tier apart; None where n is too small, or
        the conversations of both tiers are alike.
    verdict
        "holds" if the interval lies above 0, "does not hold" if below, else "not shown".
    """

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    verdict: Verdict


def tier_order(lengths: Mapping[str, Floats], *, seed: int = 0) -> list[TierStep]:
    """Return each step of the order among the tiers that are there.

    Parameters
    ----------
    lengths
        By tier, the acceptance length of each conversation, shape ``(n,)``.
    """
    there = [tier for tier in TIERS if len(lengths.get(tier, ()))]
    rng = np.random.default_rng(seed)
    return [_step(a, b, lengths[a], lengths[b], rng) for a, b in pairwise(there)]


def _step(first: str, second: str, a: Floats, b: Floats, rng: np.random.Generator) -> TierStep:
    difference = float(a.mean() - b.mean())
    alike = not np.ptp(a) and not np.ptp(b)  # nothing is known of how much conversations differ
    if min(len(a), len(b)) < MIN_UNITS or alike:
        return TierStep(first, second, difference, None, None, "not shown")
    drawn = resampled_means(a, rng) - resampled_means(b, rng)
    low, high = (float(v) for v in np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)]))
    verdict: Verdict = "holds" if low > 0 else "does not hold" if high < 0 else "not shown"
    return TierStep(first, second, difference, low, high, verdict)
