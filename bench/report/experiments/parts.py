"""What the sections of several experiments are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bench.experiments.tasks import Task, tasks_of
from bench.measured import Measured
from bench.report.charts import Estimate
from bench.report.results import Results, Run, Sweep, all_marks
from bench.report.words import number
from bench.statistics import Interval
from cards.page import Section, Table, clipped

Key = TypeVar("Key")

TASK_HEAD = ("task", "conversations", "incomplete", "acceptance_length, tokens/step", "e2e_tps, tokens/s")
TASK_WORDS = (
    "acceptance_length: mean over conversations of delivered tokens / verify steps. e2e_tps: mean over conversations "
    "of output tokens of all turns / time of all turns from sent to last content, prefill included; a conversation "
    "that lacks a turn has none. In brackets: 95 % intervals; (n = 3): too few conversations for one."
)


def shown(sweep: Sweep) -> list[Run]:
    """Return the points whose figures may be shown."""
    return [run for run in sweep.runs if not run.held_back]


def of_experiment(
    results: Results, name: str, title: str, build: Callable[[Sweep, Results], Section | None]
) -> Section | None:
    """Return one section over all sweeps of an experiment; None where there are none, or none tells anything."""
    sweeps = results.experiment(name)
    sections = [s for sweep in sweeps if (s := build(sweep, results)) is not None]
    if not sections:
        return None
    return Section(
        title,
        [words for section in sections for words in section.paragraphs],
        [table for section in sections for table in section.tables],
        [piece for section in sections for piece in section.pieces if piece],
        all_marks([run for sweep in sweeps for run in shown(sweep)]),
    )


def grouped(runs: Sequence[Run], key: Callable[[Run], Key]) -> dict[Key, list[Run]]:
    """Return runs by what a key says of them, in the order in which they are met."""
    groups = dict[Key, list[Run]]()
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def engine_of(run: Run) -> tuple[str, str]:
    """Return dialect and model of a point's server: a baseline is one of the same engine and the same model."""
    engine = run.config["engine"]
    return engine["dialect"], engine["model"]


def requests_of(runs: Sequence[Run]) -> list[Measured]:
    """Return the requests of several runs, such as the starts of one server; each counts as further repeats."""
    found, first = list[Measured](), 0
    for run in runs:
        moved = [replace(m, trace=replace(m.trace, repeat=m.trace.repeat + first)) for m in run.requests]
        found += moved if first else run.requests
        first += 1 + max((m.trace.repeat for m in run.requests), default=-1)
    return found


def server_of(run: Run) -> str:
    """Return the name of the server that a point belongs to."""
    return str(run.place.get("server") or run.name)


def method_of(run: Run) -> str:
    """Return what drafts: the recipe's name, else the server's without its draft length."""
    return run.recipe.name if run.recipe is not None else server_of(run).rstrip("0123456789").rstrip("-_k") or "server"


def rows_of(run: Run) -> str:
    """Return which rows a point was sent: the variant of the data and the config."""
    parts = (run.place.get("data"), run.place.get("config"))
    return ", ".join(str(part) for part in parts if part)


def told(interval: Interval | None) -> str | None:
    """Return a value with its bounds, or with n where there are none; None where there is no value."""
    if interval is None:
        return None
    if interval.low is None or interval.high is None:
        return f"{number(interval.value)} (n = {interval.n})"
    return f"{number(interval.value)} [{number(interval.low)}, {number(interval.high)}]"


def drawn(interval: Interval | None) -> Estimate | None:
    """Return an interval as a chart takes it."""
    return None if interval is None else Estimate(interval.value, interval.low, interval.high)


def task_cells(task: Task) -> list[Any]:
    """Return the cells of `TASK_HEAD`."""
    return [clipped(task.task), task.conversations, task.incomplete, told(task.acceptance_length), told(task.e2e_tps)]


def task_table(runs: Mapping[str, Sequence[Any]], caption: str) -> Table:
    """Return a per-task table of several runs, given by name with their requests."""
    rows = [[clipped(name, 60), *task_cells(task)] for name, requests in runs.items() for task in tasks_of(requests)]
    return Table(("run", *TASK_HEAD), rows, caption)
