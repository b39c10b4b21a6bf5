"""Acceptance by category, and whether it falls with the entropy of the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from bench.experiments.tasks import tasks_of
from bench.experiments.tiers import TIERS, TierStep, tier_order
from bench.figures.acceptance import AcceptanceLength
from bench.figures.base import conversation_values, over_repeats
from bench.measured import Measured
from bench.report.axes import SERIES
from bench.report.charts import Caption, interval_chart
from bench.report.experiments.parts import (
    TASK_WORDS,
    drawn,
    grouped,
    of_experiment,
    requests_of,
    rows_of,
    server_of,
    shown,
    task_table,
)
from bench.report.results import Results, Run, Sweep, all_marks
from bench.report.words import folded, in_rows, number, small_print
from bench.slices import sliced
from cards.page import Section, Table, clipped, render_table

_HEAD = ("rows", "server", "of", "over", "difference, tokens/step", "low > mixed > high")
_WORDS = (
    "Tiers: acceptance is expected to fall from low to mixed to high entropy. A step holds if the 95 % interval "
    "of the difference of the means over conversations, each tier drawn again apart, lies above 0; it does not "
    "hold if the interval lies below; else it is not shown, as it is for fewer than eight conversations."
)


def categories(results: Results) -> Section | None:
    """Return acceptance by category with intervals, and the order of the tiers."""
    return of_experiment(results, "categories", "Acceptance by category and tier", _section)


def _section(sweep: Sweep, _: Results) -> Section | None:
    runs = [run for run in shown(sweep) if run.speculative]
    groups = grouped(runs, lambda run: (rows_of(run), run.place["concurrency"], run.config["sampling"]["temperature"]))
    charts, tasks, steps = list[Markup](), list[Markup](), list[list[Any]]()
    for (rows, *_axes), own in groups.items():
        servers = {name: requests_of(same) for name, same in grouped(own, server_of).items()}
        charts.append(_chart(rows, servers, own))
        tasks.append(folded(f"{clipped(rows, 60)}: each task", render_table(task_table(servers, ""))))
        steps += [
            [clipped(rows, 60), clipped(name, 60), *_cells(step)] for name, r in servers.items() for step in _steps(r)
        ]
    if not charts:
        return None
    order = (
        [render_table(Table(_HEAD, steps, "Whether acceptance falls with the entropy of the text."))] if steps else []
    )
    return Section(
        "", pieces=[in_rows(charts), *order, *tasks, small_print((TASK_WORDS, *([_WORDS] if steps else [])))]
    )


def _steps(requests: Sequence[Measured]) -> list[TierStep]:
    groups = sliced(requests, "tier")
    values = {tier: conversation_values(AcceptanceLength(), groups[tier]) for tier in TIERS if tier in groups}
    return tier_order({tier: over_repeats(found) for tier, found in values.items()})


def _cells(step: TierStep) -> list[Any]:
    bounds = "" if step.low is None or step.high is None else f" [{number(step.low)}, {number(step.high)}]"
    return [step.first, step.second, f"{number(step.difference)}{bounds}", step.verdict]


def _chart(rows: str, servers: dict[str, list[Measured]], runs: Sequence[Run]) -> Markup:
    tables = {
        name: {task.task: task for task in tasks_of(requests)} for name, requests in list(servers.items())[:SERIES]
    }
    there = {task for table in tables.values() for task in table}
    groups = [tier for tier in TIERS if tier in there] if there <= set(TIERS) else sorted(there)
    series = {
        name: [drawn(table[group].acceptance_length) if group in table else None for group in groups]
        for name, table in tables.items()
    }
    caption = Caption(
        clipped(rows, 40),
        "acceptance_length, tokens/step",
        "",
        "Mean over conversations with its 95 % interval; none for fewer than eight.",
        all_marks(runs),
    )
    return interval_chart(caption, groups, series)
