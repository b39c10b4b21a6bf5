"""Draft and verify latency of a step, by task, from three kinds of evidence that are never mixed. Pure.

timed
    The engine runs in process and tells the time of each draft and each verification.
gauge
    The engine tells which share of an iteration it drafted (TensorRT-LLM's `trtllm_spec_decode_draft_overhead`, its
    last iteration before the page was read): share and rest of the mean step latency.
inferred
    Nothing is told: the mean step latency is fitted as ``a + b k`` over draft lengths k, and the draft of length k is
    said to take ``b k``. Whatever else grows with k, such as verifying more tokens, is in b; it is an inference. Where
    the line falls, or begins below 0, nothing is inferred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench.acceptance import ratio
from bench.figures.latency import StepLatency
from bench.measured import NS, Measured
from bench.slices import sliced

Floats = NDArray[np.float64]
Evidence = Literal["timed", "gauge", "inferred"]

_ROUNDING_S = 1e-12

DRAFT_NS, VERIFY_NS = "draft_ns", "verify_ns"
"""Keys of `Answer.extras` under which an engine in process gives the times of its verify steps, ns."""


@dataclass(frozen=True, slots=True)
class DraftLatency:
    """How long a step of a task drafts and verifies.

    Attributes
    ----------
    draft_s, verify_s
        Mean over steps, s; None where an inference fails, for the step latency does not grow with the draft length.
    steps
        Steps that the means are over.
    residual_s
        Of an inference: largest distance of a mean step latency from the line, s; None for other evidence, and for
        two lengths, through which a line always goes.
    """

    task: str
    draft_length: int | None
    draft_s: float | None
    verify_s: float | None
    evidence: Evidence
    steps: int
    residual_s: float | None = None

    @property
    def draft_share(self) -> float | None:
        """Share of the step that is drafting, in [0, 1]; None where it is not known."""
        if self.draft_s is None or self.verify_s is None:
            return None
        return ratio(self.draft_s, self.draft_s + self.verify_s)


def timed(requests: Sequence[Measured], draft_length: int | None, by: str = "category") -> list[DraftLatency]:
    """Return the latencies that an engine in process told; none for another engine."""
    rows = []
    for task, group in sliced(requests, by).items():
        drafts, verifies = _told(group, DRAFT_NS), _told(group, VERIFY_NS)
        if len(drafts) and len(drafts) == len(verifies):
            means = float(drafts.mean()) * NS, float(verifies.mean()) * NS
            rows.append(DraftLatency(task, draft_length, *means, "timed", len(drafts)))
    return rows


def _told(requests: Sequence[Measured], key: str) -> Floats:
    return np.array([value for m in requests if m.ok for value in m.answer.extras.get(key) or ()], np.float64)


def from_gauge(
    requests: Sequence[Measured], draft_length: int | None, draft_share: float, by: str = "category"
) -> list[DraftLatency]:
    """Return each task's mean step latency, split by the share of an iteration that the engine drafted.

    Parameters
    ----------
    draft_share
        In [0, 1].

    Raises
    ------
    ValueError
        If the share is no share.
    """
    if not 0.0 <= draft_share <= 1.0:
        raise ValueError(f"draft_share must be in [0, 1], got {draft_share}")
    rows = []
    for task, gaps in step_latencies(requests, by).items():
        if len(gaps):
            mean = float(gaps.mean())
            times = mean * draft_share, mean * (1.0 - draft_share)
            rows.append(DraftLatency(task, draft_length, *times, "gauge", len(gaps)))
    return rows


def step_latencies(requests: Sequence[Measured], by: str = "category") -> dict[str, Floats]:
    """Return the latencies of the steps of each task, s."""
    return {
        task: np.array([gap for m in group for gap in StepLatency().samples(m)], np.float64)
        for task, group in sliced(requests, by).items()
    }


def inferred(by_length: Mapping[int, Mapping[str, Floats]]) -> list[DraftLatency]:
    """Return the latencies that follow from how step latency grows with the draft length; see the module.

    Parameters
    ----------
    by_length
        By draft length, `step_latencies`; 0 is a server without speculation. A task needs two lengths.
    """
    tasks = sorted({task for latencies in by_length.values() for task in latencies})
    return [row for task in tasks for row in _inferred(task, by_length)]


def _inferred(task: str, by_length: Mapping[int, Mapping[str, Floats]]) -> list[DraftLatency]:
    told = {k: by_length[k][task] for k in sorted(by_length) if len(by_length[k].get(task, ()))}
    if len(told) < 2:
        return []
    lengths = np.array(list(told), np.float64)
    means = np.array([gaps.mean() for gaps in told.values()], np.float64)
    slope, intercept = np.polyfit(lengths, means, 1)
    residual = float(np.abs(means - (intercept + slope * lengths)).max()) if len(told) > 2 else None
    # A line that falls, or that begins below 0, is noise: no time is inferred from it.
    grows = slope > -_ROUNDING_S and intercept >= 0
    return [
        DraftLatency(
            task,
            k,
            max(float(slope), 0.0) * k if grows else None,
            float(intercept) if grows else None,
            "inferred",
            len(gaps),
            residual,
        )
        for k, gaps in told.items()
        if k
    ]
