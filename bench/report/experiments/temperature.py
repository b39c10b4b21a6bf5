"""Temperature: acceptance and speed-up at each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from bench.experiments.temperature import TemperatureRow, temperature_rows
from bench.report.axes import SERIES
from bench.report.charts import Caption, Line, Point, line_chart
from bench.report.experiments.parts import (
    TASK_WORDS,
    grouped,
    of_experiment,
    requests_of,
    rows_of,
    server_of,
    shown,
    task_table,
    told,
)
from bench.report.results import Results, Run, Sweep, all_marks
from bench.report.words import folded, in_rows, small_print, times
from cards.page import Section, Table, clipped, render_table

_HEAD = (
    "server",
    "temperature",
    "acceptance_length, tokens/step",
    "of the lowest temperature's",
    "output_tps, tokens/s",
    "speed-up of user_tps",
)
_WORDS = (
    "acceptance_length: mean over categories of the mean over conversations, with its 95 % interval. Speed-up: "
    "against the server without speculation at the same temperature. An engine that drafts the likeliest token "
    "and accepts by sampling loses acceptance as the temperature rises; one that samples its drafts loses less."
)


def temperature(results: Results) -> Section | None:
    """Return acceptance by temperature."""
    return of_experiment(results, "temperature", "Temperature", _section)


def _section(sweep: Sweep, results: Results) -> Section | None:
    groups = grouped(shown(sweep), lambda run: (rows_of(run), run.place["concurrency"]))
    pieces = list[Markup]()
    for (rows, streams), runs in groups.items():
        pieces += _pieces(runs, f"{rows}, {streams} streams", results)
    return Section("", pieces=[*pieces, small_print((_WORDS, TASK_WORDS))]) if pieces else None


def _pieces(runs: Sequence[Run], where: str, results: Results) -> list[Markup]:
    requests = {place: requests_of(starts) for place, starts in grouped(runs, _place).items()}
    rows = temperature_rows(requests)
    speed_ups = {c.run: c.speed_up for c in results.comparisons}
    cells = [
        _cells(row, [run for run in runs if _place(run) == (row.server, row.temperature)], speed_ups) for row in rows
    ]
    named = {f"{server}, temperature {t:g}": found for (server, t), found in sorted(requests.items())}
    tasks = task_table(named, f"By task: {clipped(where, 60)}.")
    return [
        in_rows([_chart(rows, where, runs)]),
        render_table(Table(_HEAD, cells, f"{clipped(where, 60)}.")),
        folded("Each task at each temperature", render_table(tasks)),
    ]


def _place(run: Run) -> tuple[str, float]:
    return server_of(run), run.config["sampling"]["temperature"]


def _cells(row: TemperatureRow, runs: Sequence[Run], speed_ups: dict[Run, Any]) -> list[Any]:
    tps = [run.summary["run"]["output_tps"]["value"] for run in runs]
    mean = sum(tps) / len(tps) if tps and None not in tps else None
    ups = [times(speed_ups[run]) for run in runs if speed_ups.get(run)]
    return [
        clipped(row.server, 60),
        row.temperature,
        told(row.acceptance_length),
        row.kept,
        mean,
        ", ".join(filter(None, ups)),
    ]


def _chart(rows: Sequence[TemperatureRow], where: str, runs: Sequence[Run]) -> Markup:
    servers = dict.fromkeys(row.server for row in rows if row.acceptance_length)
    lines = []
    for server in list(servers)[:SERIES]:
        own = [row for row in rows if row.server == server]
        points = [
            Point(row.temperature, interval.value, interval.low, interval.high)
            for row in own
            if (interval := row.acceptance_length) is not None
        ]
        lines.append(Line(server, points))
    caption = Caption(
        f"Acceptance by temperature: {clipped(where, 40)}",
        "temperature",
        "acceptance_length, tokens/step",
        "Mean over categories of the mean over conversations, with its 95 % interval.",
        all_marks(runs),
    )
    return line_chart(caption, lines, y_from_zero=False)
