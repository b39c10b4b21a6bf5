"""Spans of a run: the whole of it, and the part in which as many streams ran as were asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.measured import NS, Measured

MIN_STEADY_S = 30.0
MIN_STEADY_REQUESTS = 3.0
STEADY_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Window:
    """A span of CLOCK_MONOTONIC, ns; `share` is its part of the whole run, `refused` why it must not be used."""

    start_ns: int
    end_ns: int
    share: float = 1.0
    refused: str = ""

    @property
    def duration_s(self) -> float:
        """Length, s."""
        return (self.end_ns - self.start_ns) * NS


def whole_run(requests: Sequence[Measured]) -> Window | None:
    """Return the span from the first request sent to the last token of a successful one; None without one."""
    ends = [m.last.at_ns for m in requests if m.last is not None]
    starts = [m.trace.sent_ns for m in requests if m.ok]
    return Window(min(starts), max(ends)) if ends and starts else None


def steady_state(requests: Sequence[Measured], concurrency: int) -> Window | None:
    """Return the longest span in which at least 0.95 x `concurrency` streams were active.

    Returns
    -------
    Window or None
        With `refused` set if it is shorter than 30 s or than three mean requests; None if there is no such span.
    """
    whole = whole_run(requests)
    spans = [(m.trace.sent_ns, m.last.at_ns) for m in requests if m.last is not None]
    if whole is None or not whole.end_ns > whole.start_ns:
        return None
    mean_s = float(np.mean([(end - start) * NS for start, end in spans]))
    full = _full_spans(spans, STEADY_SHARE * concurrency, round((1 - STEADY_SHARE) * mean_s / NS))
    best = max(((end - begin, begin) for begin, end in full), default=(0, 0))
    if not best[0]:
        return None
    return Window(best[1], best[1] + best[0], best[0] * NS / whole.duration_s, _too_short(best[0] * NS, mean_s))


def _full_spans(spans: Sequence[tuple[int, int]], least: float, pause_ns: int) -> list[tuple[int, int]]:
    """Return when at least `least` of the spans ran; a shorter time than `pause_ns` with fewer does not end it.

    Of a few streams, one that is between two requests is more than a twentieth of them.
    """
    edges = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    full, begin, active = list[tuple[int, int]](), None, 0
    for at_ns, change in edges:
        active += change
        if active >= least:
            begin = at_ns if begin is None else begin
        elif begin is not None:
            paused = bool(full) and begin - full[-1][1] <= pause_ns
            full.append((full.pop()[0] if paused else begin, at_ns))
            begin = None
    return full


def _too_short(duration_s: float, mean_request_s: float) -> str:
    if duration_s < MIN_STEADY_S:
        return f"steady for {duration_s:.1f} s, less than {MIN_STEADY_S:g} s"
    if duration_s < MIN_STEADY_REQUESTS * mean_request_s:
        return f"steady for {duration_s:.1f} s, less than three requests of {mean_request_s:.1f} s"
    return ""


def tokens_within(requests: Sequence[Measured], window: Window) -> float:
    """Return the output tokens of a window; a chunk that spans its edge counts by the share of its gap inside."""
    total = 0.0
    for request in requests:
        previous = request.trace.sent_ns
        for chunk in request.answer.chunks if request.ok else ():
            inside = min(chunk.at_ns, window.end_ns) - max(previous, window.start_ns)
            gap = chunk.at_ns - previous
            if gap <= 0:
                share = 1.0 if window.start_ns < chunk.at_ns <= window.end_ns else 0.0
            else:
                share = max(inside, 0) / gap
            total += (chunk.num_tokens or 0) * share
            previous = chunk.at_ns
    return total
