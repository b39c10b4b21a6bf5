"""The analytic speed-up beside the measured one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.experiments.draft_latency import step_latencies
from bench.experiments.tasks import tasks_of
from bench.report.comparisons import Comparison
from bench.report.experiments.parts import TASK_WORDS, of_experiment, server_of, told
from bench.report.results import Results, Run, Sweep
from bench.report.words import listed, milliseconds, paragraph, small_print, times
from cards.page import Section, Table, clipped, render_table

_HEAD = (
    "rows",
    "tier",
    "server",
    "streams",
    "acceptance_length, tokens/step",
    "t_ar, ms",
    "t_sd, ms",
    "measured",
    "analytic",
    "gap",
    "e2e_tps, tokens/s",
)
_WORDS = (
    (
        "Measured: user_tps over the baseline's, paired by conversation. Analytic: t_ar x tokens a step / t_sd "
        "(SPEED-Bench, eq. 3), from the mean step latencies t_ar of the baseline and t_sd of the run; tokens a "
        "step counts steps that drafted nothing. Gap: analytic over measured, less 1."
    ),
    TASK_WORDS,
)


def speed_up(results: Results) -> Section | None:
    """Return both speed-ups by input length and tier."""
    return of_experiment(results, "speed_up", "Analytic against measured speed-up", _section)


def _section(sweep: Sweep, results: Results) -> Section | None:
    own = [c for c in results.comparisons if c.run in sweep.runs]
    rows = [cells for c in own if c.result is not None for cells in _rows(c)]
    refused = [c.run.name for c in own if c.result is None]
    pieces = [render_table(Table(_HEAD, rows)), small_print(_WORDS)] if rows else []
    if refused:
        pieces.append(
            paragraph(f"Not comparable with their baseline: {listed([clipped(name, 60) for name in refused])}.")
        )
    return Section("", pieces=pieces) if pieces else None


def _rows(c: Comparison) -> list[list[Any]]:
    t_ar, t_sd = _means(c.baseline), _means(c.run)
    tasks = {task.task: task for task in tasks_of(c.run.requests)}
    lines: Mapping[str, Any] = c.result["by"] if c.result is not None else {}
    return [
        [
            c.run.place["config"],
            clipped(tier, 60),
            clipped(server_of(c.run), 60),
            c.run.place["concurrency"],
            told(tasks[tier].acceptance_length),
            milliseconds(t_ar.get(tier)),
            milliseconds(t_sd.get(tier)),
            times(line["user_tps"]["ratio"]) if line["user_tps"] else None,
            _times(line["analytic"]),
            None if line["analytic_gap"] is None else f"{line['analytic_gap']:+.0%}",
            told(tasks[tier].e2e_tps),
        ]
        for tier, line in lines.items()
        if tier in tasks
    ]


def _means(run: Run) -> dict[str, float]:
    return {task: float(gaps.mean()) for task, gaps in step_latencies(run.requests).items() if len(gaps)}


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.2f}x"
