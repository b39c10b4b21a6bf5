"""Active streams over the time of a run, and its steady states. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.measured import NS, Measured
from bench.window import Window, steady_state

SPANS = 160
"""Equal spans of a run, of each of which the mean is drawn."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Active streams of a run.

    Attributes
    ----------
    levels
        ``(from, to, level)``, s since the first request was sent; the mean number of streams in each of equal spans.
    steady
        The steady state of each repeat that has one.
    start_ns
        When the first request was sent.
    """

    levels: tuple[tuple[float, float, float], ...]
    steady: tuple[Window, ...]
    start_ns: int

    def seconds(self, window: Window) -> tuple[float, float]:
        """Return a window in seconds since the start."""
        return (window.start_ns - self.start_ns) * NS, (window.end_ns - self.start_ns) * NS


def active_streams(requests: Sequence[Measured], concurrency: int | None, spans: int = SPANS) -> Streams | None:
    """Return the streams of a run; None without a request that took time.

    A stream is active from its request being sent until its last content, a failed one until it ended.

    Parameters
    ----------
    concurrency
        Streams that a closed loop kept open; None in an open loop, which has no steady state.
    """
    begun = np.array([m.trace.sent_ns for m in requests], np.int64)
    ended = np.array([m.last.at_ns if m.last is not None else m.trace.end_ns for m in requests], np.int64)
    if not len(begun) or not ended.max() > begun.min():
        return None
    start = int(begun.min())
    edges = np.linspace(0.0, (int(ended.max()) - start) * NS, spans + 1)
    since, until = (begun - start) * NS, (np.maximum(ended, begun) - start) * NS
    # Stream-seconds until each edge; their growth over a span, over its length, is the mean number of streams in it.
    area = np.array([np.clip(edge - since, 0.0, until - since).sum() for edge in edges])
    means = np.diff(area) / np.diff(edges)
    levels = tuple((float(a), float(b), float(v)) for a, b, v in zip(edges[:-1], edges[1:], means, strict=True))
    return Streams(levels, _steady(requests, concurrency), start)


def _steady(requests: Sequence[Measured], concurrency: int | None) -> tuple[Window, ...]:
    if concurrency is None:
        return ()
    repeats = sorted({m.trace.repeat for m in requests})
    found = (steady_state([m for m in requests if m.trace.repeat == repeat], concurrency) for repeat in repeats)
    return tuple(window for window in found if window is not None)
