"""Spec-Bench's six tasks, by its own definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.experiments.spec_bench import OVERALL, Mean, SpecBenchRow, spec_bench_rows
from bench.experiments.tasks import Task, tasks_of
from bench.measured import Measured
from bench.report.experiments.parts import (
    TASK_WORDS,
    engine_of,
    grouped,
    of_experiment,
    requests_of,
    rows_of,
    server_of,
    shown,
    told,
)
from bench.report.results import Results, Run, Sweep
from bench.report.words import number, small_print
from cards.page import Section, Table, clipped, render_table

_HEAD = (
    "task",
    "questions",
    "mean accepted tokens (Spec-Bench), tokens/step",
    "speed (Spec-Bench), tokens/s",
    "baseline's speed, tokens/s",
    "speed-up (Spec-Bench)",
    "acceptance_length, tokens/step",
    "e2e_tps, tokens/s",
)
_WORDS = (
    (
        "Spec-Bench (evaluation/speed.py): speed of a question = new tokens of its turns / wall time of its "
        "turns, prefill included; of a task, the mean over questions. Speed-up = ratio of the two mean speeds. "
        "Over repeats: mean ± standard deviation with n - 1."
    ),
    (
        "Mean accepted tokens = mean over all steps of all questions of the tokens that a step added, steps that "
        "drafted nothing counted with one: our tokens_per_step, pooled. acceptance_length leaves those steps out "
        "and is a mean over conversations."
    ),
    (
        "What differs: our time ends with the last content over HTTP; Spec-Bench counts the baseline's tokens by "
        "encoding its text anew, less one a turn, ours are counted by id; Spec-Bench's lists hold drafts past the"
        " budget, ours are cut."
    ),
    "To hold a run against an earlier one, task by task: speedbench bench gate RUN --against golden.json.",
    TASK_WORDS,
)


def spec_bench(results: Results) -> Section | None:
    """Return the six tasks of each server against the one without speculation."""
    return of_experiment(results, "spec_bench", "Spec-Bench's six tasks", _section)


def _section(sweep: Sweep, _: Results) -> Section | None:
    runs = shown(sweep)
    plain = [run for run in runs if not run.speculative]
    tables = []
    for (server, rows_sent, temperature, streams), own in grouped(
        [run for run in runs if run.speculative], _place
    ).items():
        beside = [run for run in plain if _place(run)[1:] == _place(own[0])[1:] and engine_of(run) == engine_of(own[0])]
        rows = _rows(requests_of(own), requests_of(beside))
        where = f"{clipped(server, 60)}, {clipped(rows_sent, 60)}, temperature {temperature:g}, streams: {streams}."
        tables.append(Table(_HEAD, rows, where))
    if not tables:
        return None
    return Section("", pieces=[*(render_table(table) for table in tables), small_print(_WORDS)])


def _place(run: Run) -> tuple[str, str, float, int]:
    """Return server, and what a baseline shares with it: rows, temperature and streams."""
    return server_of(run), rows_of(run), run.config["sampling"]["temperature"], run.config["load"]["concurrency"]


def _rows(speculative: Sequence[Measured], baseline: Sequence[Measured]) -> list[list[Any]]:
    tasks = {task.task: task for task in tasks_of(speculative)}
    return [_cells(row, tasks.get(row.task)) for row in spec_bench_rows(speculative, baseline)]


def _cells(row: SpecBenchRow, task: Task | None) -> list[Any]:
    own = [row.acceptance_length, None] if task is None else [told(task.acceptance_length), told(task.e2e_tps)]
    means = [_mean(row.tokens_per_second), _mean(row.baseline_tokens_per_second), _mean(row.speed_up)]
    name = row.task if row.task != OVERALL else "overall"
    return [name, row.questions, row.mean_accepted_tokens, *means, *own]


def _mean(mean: Mean | None) -> str | None:
    if mean is None:
        return None
    return number(mean.value) + (f" ± {number(mean.std)}" if mean.std is not None else "")
