"""Figures of a whole run: throughput, goodput, spread across the batch, energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from bench.acceptance import ratio
from bench.figures.base import Context
from bench.figures.latency import StepLatency, TimePerOutputToken, TimeToFirstToken
from bench.measured import Measured
from bench.window import tokens_within, whole_run


class OutputThroughput:
    """Tokens that the server delivers a second, over all users."""

    name: ClassVar[str] = "output_tps"
    unit: ClassVar[str] = "tokens/s"
    formula: ClassVar[str] = "output tokens of successful requests / (last token - first request sent)"
    needs: ClassVar[tuple[str, ...]] = ("tokens",)
    higher_is_better: ClassVar[bool] = True

    def value(self, requests: Sequence[Measured], context: Context) -> float | None:
        """Return the rate over the context's window, else over the whole run."""
        if context.window is not None:
            return ratio(tokens_within(requests, context.window), context.window.duration_s)
        whole = whole_run(requests)
        tokens = [m.answer.num_tokens for m in requests if m.ok]
        if whole is None or any(count is None for count in tokens):
            return None
        return ratio(sum(count or 0 for count in tokens), whole.duration_s)


class OutputThroughputPerGpu:
    """Output throughput by accelerator."""

    name: ClassVar[str] = "output_tps_per_gpu"
    unit: ClassVar[str] = "tokens/s/GPU"
    formula: ClassVar[str] = "output_tps / GPUs of the server"
    needs: ClassVar[tuple[str, ...]] = ("tokens", "engine.num_gpus")
    higher_is_better: ClassVar[bool] = True

    def value(self, requests: Sequence[Measured], context: Context) -> float | None:
        """Return the rate; None where the number of GPUs is unknown or 0."""
        total = OutputThroughput().value(requests, context)
        return ratio(total, context.num_gpus) if total is not None and context.num_gpus else None


class Goodput:
    """Requests a second that kept the stated limits."""

    name: ClassVar[str] = "goodput_rps"
    unit: ClassVar[str] = "requests/s"
    formula: ClassVar[str] = "successful requests within the TTFT and TPOT limits / duration"
    needs: ClassVar[tuple[str, ...]] = ("limits.ttft_s or limits.tpot_s",)
    higher_is_better: ClassVar[bool] = True

    def value(self, requests: Sequence[Measured], context: Context) -> float | None:
        """Return the rate; None where no limit is stated."""
        whole = whole_run(requests)
        if whole is None or (context.ttft_limit_s is None and context.tpot_limit_s is None):
            return None
        return ratio(sum(1 for m in requests if m.ok and _kept(m, context)), whole.duration_s)


def _kept(request: Measured, context: Context) -> bool:
    # An answer of one chunk has no time per token, and so breaks no limit on it.
    ttft = TimeToFirstToken().samples(request)
    tpot = TimePerOutputToken().samples(request)
    return _within(ttft, context.ttft_limit_s) and _within(tpot, context.tpot_limit_s)


def _within(values: Sequence[float], limit: float | None) -> bool:
    return limit is None or all(value <= limit for value in values)


class BatchSpread:
    """How unlike the streams of one batch are in what a step gives them."""

    name: ClassVar[str] = "batch_tokens_std"
    unit: ClassVar[str] = "tokens"
    formula: ClassVar[str] = "mean over spans of one median step of the standard deviation of tokens a chunk"
    needs: ClassVar[tuple[str, ...]] = ("a chunk a step", "tokens", "two streams at once")
    higher_is_better: ClassVar[bool] = False

    def value(self, requests: Sequence[Measured], context: Context) -> float | None:
        """Return the spread; None where two streams never shared a span."""
        gaps = [gap for m in requests for gap in StepLatency().samples(m)]
        step_s = float(np.median(gaps)) if gaps else 0.0
        chunks = [c for m in requests if m.ok for c in m.answer.chunks[1:] if c.num_tokens is not None]
        if step_s <= 0 or not chunks:
            return None
        at_s = np.array([c.at_ns for c in chunks], np.float64) * 1e-9
        tokens = np.array([c.num_tokens for c in chunks], np.float64)
        _, span, counts = np.unique(np.floor(at_s / step_s), return_inverse=True, return_counts=True)
        sums, squares = np.bincount(span, tokens), np.bincount(span, tokens**2)
        shared = counts >= 2
        if not shared.any():
            return None
        variance = (squares - sums**2 / counts)[shared] / (counts[shared] - 1)
        return float(np.mean(np.sqrt(np.maximum(variance, 0.0))))


class EnergyPerToken:
    """Energy of the GPUs by output token."""

    name: ClassVar[str] = "energy_j_per_token"
    unit: ClassVar[str] = "J/token"
    formula: ClassVar[str] = "energy of the GPUs over the run (NVML) / output tokens"
    needs: ClassVar[tuple[str, ...]] = ("NVML on this host", "tokens")
    higher_is_better: ClassVar[bool] = False

    def value(self, requests: Sequence[Measured], context: Context) -> float | None:
        """Return the energy; None where no GPU was read."""
        tokens = sum(m.answer.num_tokens or 0 for m in requests if m.ok)
        return ratio(context.energy_j, tokens) if context.energy_j is not None else None
