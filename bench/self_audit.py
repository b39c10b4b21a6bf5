"""Whether the client can be believed: its own lags, and the thresholds above which a result is not valid. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bench.figures.base import all_samples
from bench.figures.latency import StepLatency, TimeToFirstToken
from bench.measured import NS, Measured
from bench.worker_report import WorkerReport

MAX_DISPATCH_S = 0.005
MAX_DISPATCH_SHARE_OF_TTFT = 0.02
MAX_MERGED_SHARE = 0.01
MAX_LOOP_LAG_SHARE_OF_STEP = 0.2
LOOP_TIMER_S = 0.002
"""What a timer of the loop may be late without anything being wrong: twice its resolution."""
MAX_MISCOUNTED_SHARE = 0.0


@dataclass(frozen=True, slots=True)
class SelfAudit:
    """How the client fared. None where it could not be observed.

    Attributes
    ----------
    dispatch_lag_p50_s, dispatch_lag_p99_s
        From the intended time until the last byte of the request was with the kernel.
    merged_share
        Chunks that came in one read with an earlier one of their stream, over all chunks.
    loop_lag_p50_s, loop_lag_p99_s
        By how much the workers' loops ran late.
    read_lag_p50_s, read_lag_p99_s
        From the arrival of bytes in the kernel until they were in hand: the longest of each short while. None where the
        kernel tells no arrivals, and stamps are the workers' own.
    worker_cpu_share
        CPU time over wall time of each worker.
    miscounted
        Requests whose tokens by id differ from the server's usage.
    reasons
        Why the result is not valid; none if it is.
    """

    dispatch_lag_p50_s: float | None
    dispatch_lag_p99_s: float | None
    merged_share: float | None
    loop_lag_p50_s: float | None
    loop_lag_p99_s: float | None
    read_lag_p50_s: float | None
    read_lag_p99_s: float | None
    worker_cpu_share: tuple[float, ...]
    cpu_us_per_chunk: float | None
    miscounted: int
    counted: int
    reasons: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether no threshold was broken."""
        return not self.reasons

    def to_json(self) -> dict[str, Any]:
        """Return the audit as JSON values, `valid` first."""
        return {"valid": self.valid, **asdict(self)}


def audit_client(requests: Sequence[Measured], reports: Sequence[WorkerReport]) -> SelfAudit:
    """Return the audit of a run."""
    ok = [m for m in requests if m.ok]
    dispatch = np.array([(m.trace.sent_ns - m.trace.intended_ns) * NS for m in ok])
    lag = np.array([ns * NS for report in reports for ns in report.loop_lag_ns])
    read_lag = np.array([ns * NS for report in reports for ns in report.read_lag_ns])
    told = [m for m in ok if m.merged is not None]
    chunks = sum(len(m.answer.chunks) for m in told)
    counted = [m for m in ok if m.answer.token_ids is not None and m.answer.usage.completion_tokens is not None]
    miscounted = sum(len(m.answer.token_ids or ()) != m.answer.usage.completion_tokens for m in counted)
    cpu_s = sum(report.cpu_s for report in reports)
    all_chunks = sum(len(m.answer.chunks) for m in ok)
    audit = SelfAudit(
        _percentile(dispatch, 50),
        _percentile(dispatch, 99),
        sum(m.merged or 0 for m in told) / chunks if chunks else None,
        _percentile(lag, 50),
        _percentile(lag, 99),
        _percentile(read_lag, 50),
        _percentile(read_lag, 99),
        tuple(round(r.cpu_s / r.wall_s, 4) for r in reports if r.wall_s),
        cpu_s / all_chunks * 1e6 if all_chunks else None,
        miscounted,
        len(counted),
    )
    return replace(audit, reasons=_reasons(audit, ok))


def _percentile(values: np.ndarray, percent: float) -> float | None:
    # Of the client itself, the largest value of a short run is of interest too: no least number applies.
    return float(np.percentile(values, percent)) if len(values) else None


def _reasons(audit: SelfAudit, ok: Sequence[Measured]) -> tuple[str, ...]:
    ttft = _percentile(all_samples(TimeToFirstToken(), ok), 50) or 0.0
    step = _percentile(all_samples(StepLatency(), ok), 50) or 0.0
    bounds = [
        ("dispatch lag p99", audit.dispatch_lag_p99_s, max(MAX_DISPATCH_S, MAX_DISPATCH_SHARE_OF_TTFT * ttft)),
        ("merged share of reads", audit.merged_share, MAX_MERGED_SHARE),
        ("loop lag p99", _stamping_lag(audit), max(LOOP_TIMER_S, MAX_LOOP_LAG_SHARE_OF_STEP * step)),
        ("share of miscounted answers", audit.miscounted / max(audit.counted, 1), MAX_MISCOUNTED_SHARE),
    ]
    return tuple(
        f"{name} {value:.4g} is over {bound:.4g}"
        for name, value, bound in bounds
        if value is not None and value > bound
    )


def _stamping_lag(audit: SelfAudit) -> float | None:
    # A late loop stamps late, unless the kernel stamps. What it does else, merged reads and late requests, has bounds.
    return audit.loop_lag_p99_s if audit.read_lag_p99_s is None else None
