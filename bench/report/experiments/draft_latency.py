"""Draft and verify latency by task, each with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.experiments.draft_latency import DraftLatency, Floats, from_gauge, inferred, step_latencies, timed
from bench.experiments.tasks import tasks_of
from bench.report.experiments.parts import (
    TASK_HEAD,
    TASK_WORDS,
    engine_of,
    grouped,
    method_of,
    of_experiment,
    requests_of,
    rows_of,
    server_of,
    task_cells,
)
from bench.report.experiments.parts import shown as shown_points
from bench.report.results import Results, Run, Sweep, all_marks
from bench.report.words import milliseconds, small_print
from cards.page import Section, Table, clipped, render_table

_HEAD = (
    "server",
    "draft length",
    *TASK_HEAD,
    "draft, ms",
    "verify, ms",
    "drafting",
    "evidence",
    "steps",
    "off the line, ms",
)
_WORDS = (
    (
        "Timed: the engine runs in process and tells the time of each draft and each verification; means over "
        "verify steps, the first draft of an answer, which holds the drafter's own prefill, among them. Gauge: the "
        "engine tells the share of an iteration that it drafted (trtllm_spec_decode_draft_overhead: latency of "
        "drafting / latency of the iteration, of the last one before the page was read); it splits the mean step "
        "latency."
    ),
    (
        "Inferred: nothing is told. The mean step latency is fitted as a + b k over the draft lengths k that were"
        " run, the baseline as k = 0; a draft of length k is said to take b k; nothing is said where the line "
        "falls or begins below 0. Whatever else grows with k, such as verifying more tokens, is in b. Off the "
        "line: the largest distance of a mean from it; two lengths have none."
    ),
    TASK_WORDS,
)


def draft_latency(results: Results) -> Section | None:
    """Return draft and verify latency by task; timed ones of any run, inferred ones of sweeps over draft lengths."""
    of_sweeps = of_experiment(results, "draft_latency", "Draft and verify latency", _section)
    alone = [run for run in results.shown if not run.sweep and run.speculative]
    rows = [cells for run in alone for cells in _told_rows(run)]
    if not rows:
        return of_sweeps
    table = render_table(Table(_HEAD, rows, "Runs that tell it themselves."))
    pieces = [table, *(of_sweeps.pieces if of_sweeps else (small_print(_WORDS),))]
    marks = all_marks([*alone, *(run for sweep in results.experiment("draft_latency") for run in shown_points(sweep))])
    return Section("Draft and verify latency", pieces=pieces, marks=marks)


def _section(sweep: Sweep, _: Results) -> Section | None:
    runs = shown_points(sweep)
    rows = [cells for run in runs if run.speculative for cells in _told_rows(run)]
    silent = [run for run in runs if not run.speculative or not _told(run)]
    groups = grouped(
        silent,
        lambda run: (engine_of(run), rows_of(run), run.place["concurrency"], run.config["sampling"]["temperature"]),
    )
    for own in groups.values():
        rows += _inferred_rows(own)
    return Section("", pieces=[render_table(Table(_HEAD, rows)), small_print(_WORDS)]) if rows else None


def _told(run: Run) -> list[DraftLatency]:
    """Return what a run tells of itself: times, else a gauge."""
    length = run.config["engine"]["draft_length"]
    counters = run.summary["server_counters"] or {}
    share = counters.get("draft_share")
    found = timed(run.requests, length)
    # A gauge that is no share, as some versions give it, says nothing here.
    return found or ([] if share is None or not 0.0 <= share <= 1.0 else from_gauge(run.requests, length, share))


def _told_rows(run: Run) -> list[list[Any]]:
    return _cells(server_of(run), _told(run), [run])


def _inferred_rows(runs: Sequence[Run]) -> list[list[Any]]:
    """Return the rows of each method whose draft lengths were run, its baseline among them."""
    plain = [run for run in runs if not run.speculative]
    rows = list[list[Any]]()
    for method, own in grouped([run for run in runs if run.speculative], method_of).items():
        by_length = dict[int, dict[str, Floats]]()
        for length, same in grouped([*plain, *own], lambda run: run.config["engine"]["draft_length"] or 0).items():
            by_length[length] = _pooled([step_latencies(run.requests) for run in same])
        rows += _cells(method, inferred(by_length), own)
    return rows


def _pooled(parts: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
    tasks = sorted({task for part in parts for task in part})
    return {task: np.concatenate([part[task] for part in parts if task in part]) for task in tasks}


def _cells(server: str, latencies: Sequence[DraftLatency], runs: Sequence[Run]) -> list[list[Any]]:
    rows = list[list[Any]]()
    for length, same in grouped(runs, lambda run: run.config["engine"]["draft_length"]).items():
        tasks = {task.task: task for task in tasks_of(requests_of(same))}
        for found in latencies:
            if found.draft_length == length and found.task in tasks:
                rows.append([clipped(server, 60), length, *task_cells(tasks[found.task]), *_times(found)])
    return rows


def _times(found: DraftLatency) -> list[Any]:
    share = None if found.draft_share is None else f"{found.draft_share:.0%}"
    evidence = found.evidence if found.draft_s is not None else f"{found.evidence}: no growth with k"
    return [
        milliseconds(found.draft_s),
        milliseconds(found.verify_s),
        share,
        evidence,
        found.steps,
        milliseconds(found.residual_s),
    ]
