"""When an open loop sends: offsets from the start, computed before the run. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def constant_offsets(n: int, rate_per_s: float) -> NDArray[np.float64]:
    """Return n offsets, s, equally far apart."""
    return np.arange(n) / _positive("rate_per_s", rate_per_s)


def gamma_offsets(n: int, rate_per_s: float, shape: float, seed: int) -> NDArray[np.float64]:
    """Return n offsets, s, with gamma gaps of mean ``1 / rate_per_s``; shape 1 is Poisson, below it bursts.

    The first request is sent after a gap too, so that the offsets are a piece of a stationary stream.
    """
    rng = np.random.default_rng(seed)
    scale = 1.0 / (_positive("rate_per_s", rate_per_s) * _positive("shape", shape))
    return np.cumsum(rng.gamma(shape, scale, n))


def poisson_offsets(n: int, rate_per_s: float, seed: int) -> NDArray[np.float64]:
    """Return n offsets, s, of a Poisson stream."""
    return gamma_offsets(n, rate_per_s, 1.0, seed)


def trace_offsets(stamps_s: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the first n offsets, s, of recorded arrivals, from the first of them.

    Raises
    ------
    ValueError
        If the arrivals are fewer than n or do not ascend.
    """
    if len(stamps_s) < n:
        raise ValueError(f"the trace must hold at least {n} arrivals, got {len(stamps_s)}")
    if np.any(np.diff(stamps_s) < 0):
        raise ValueError("the arrivals of the trace must ascend")
    return np.asarray(stamps_s[:n] - stamps_s[0], np.float64)


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{name} must be > 0, got {value}")
    return value
