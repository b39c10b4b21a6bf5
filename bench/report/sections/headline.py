"""What a reader wants first: acceptance and speed of each run, losslessness beside them, no ranking across kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.recipes.fields import Published
from bench.recipes.published import published_beside, rows_of
from bench.report.results import Results, Run
from bench.report.words import KINDS, Kind, definition, kind_of, number, small_print, times, with_interval
from cards.page import Section, Table, clipped

_HEAD = (
    "run",
    "acceptance_length, tokens/step",
    "speed-up of user_tps",
    "output against no drafts",
    "user_tps p50, tokens/s",
    "output_tps, tokens/s",
    "draft length",
    "temperature",
    "streams",
    "published elsewhere",
)
_NO_RANKING = (
    "One table for each kind of verification. Methods of different kinds promise different outputs, some the target's "
    "own choices, some its distribution: their speeds are not ranked against one another. Rows stand in the order in "
    "which they were given."
)
_IN_BRACKETS = (
    "In brackets: 95 % intervals over conversations; for output_tps, a figure of the whole run, over repeats. A dash "
    "means not measured, never zero."
)
_SMALL_PRINT = (
    _IN_BRACKETS,
    definition("acceptance_length", "mean over categories of the mean over conversations"),
    definition("user_tps", "median over requests"),
    definition("output_tps", "mean over repeats"),
    "Speed-up: of user_tps over the baseline's, harmonic means over conversations of both; see Comparison.",
)


def headline(results: Results) -> Section | None:
    """Return the figures of every run that may be shown, a table for each kind of verification."""
    shown = [run for run in results.shown if not run.sweep]
    if not shown:
        return None if results.shown else Section("Figures", (_none_shown(results),))
    speed_ups = {c.run: c.speed_up for c in results.comparisons}
    tables = []
    for kind, (name, meaning) in KINDS.items():
        rows = [_row(run, speed_ups.get(run), kind) for run in shown if kind_of(run) == kind]
        if rows:
            tables.append(Table(_HEAD, rows, f"{name[0].upper()}{name[1:]}: {meaning}."))
    words = (_NO_RANKING,) if len(tables) > 1 else ()
    return Section("Figures", words, tables, (small_print(_SMALL_PRINT),))


def _none_shown(results: Results) -> str:
    return f"No figure is shown: gates hold back all of the {len(results.runs)} runs. They are named below."


def _row(run: Run, speed_up: Any, kind: Kind) -> Sequence[Any]:
    overall, output = run.summary["overall"], run.summary["run"]["output_tps"]
    length = overall["headline"]["acceptance_length"]
    return (
        clipped(run.title, 80),
        with_interval(length["value"], length["interval"]) if run.speculative else None,
        times(speed_up),
        verdict(run) if kind != "none" else None,
        overall["figures"]["user_tps"]["p50"],
        with_interval(output["value"], output["interval"]),
        run.config["engine"]["draft_length"],
        run.config["sampling"]["temperature"],
        _streams(run),
        published_cell(run),
    )


def _streams(run: Run) -> str | int:
    load = run.config["load"]
    return int(load["concurrency"]) if load["mode"] == "closed" else f"{load['mode']} arrivals"


def verdict(run: Run) -> str:
    """Return whether the output was found to be that of the model without drafts."""
    if run.lossless is None:
        return "not checked"
    return {"equal": "equal", "differs": "DIFFERS", "not shown": "not shown"}.get(
        str(run.lossless.get("verdict")), clipped(str(run.lossless.get("verdict")), 40)
    )


def published_of(run: Run) -> tuple[Published, ...]:
    """Return what was published of the run's recipe for its config and temperature."""
    return () if run.recipe is None else published_beside(run.recipe.published, run.described)


def published_cell(run: Run) -> str | None:
    """Return the published means, each with its rows; None where nothing was published."""
    cells = []
    for published in published_of(run):
        told = [
            f"{name} {number(value)}{unit}"
            for name, value, unit in (
                ("acceptance length", published.acceptance_length_mean, ""),
                ("speed-up", published.speed_up_mean, "x"),
            )
            if value is not None
        ]
        cells += [f"{', '.join(told)} ({published.source}; {rows_of(published, run.described)})"] if told else []
    return "; ".join(cells) or None
