"""Speed: latencies and throughput, their distribution, and the streams over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from bench.figures.base import SampleFigure, all_samples
from bench.figures.latency import StepLatency, TimeToFirstToken
from bench.figures.registry import RUN_FIGURES, SAMPLE_FIGURES
from bench.report.charts import Caption, histogram, timeline
from bench.report.results import Results, Run, all_marks
from bench.report.sections.acceptance import detailed, in_charts, of_sweeps
from bench.report.streams import active_streams
from bench.report.words import definition, folded, in_rows, named, with_interval
from cards.page import Section, Table, clipped, render_table

_BEYOND = " The mark at the right is the share of what lies beyond the axis."
_ORDER = ("mean", "p50", "p90", "p99", "n")


def latency(results: Results) -> Section | None:
    """Return the distribution of step latencies, and every figure of latency and throughput in tables."""
    runs = detailed(results)
    if not runs:
        return None
    shown = (("Step latency", StepLatency(), "steps"), ("Time to first token", TimeToFirstToken(), "requests"))
    charts = in_rows([_distribution(group, *one) for group in in_charts(runs) for one in shown])
    samples = [[clipped(run.title, 60), named(f.name), *_sample(run, f.name)] for f in SAMPLE_FIGURES for run in runs]
    whole = [
        [clipped(run.title, 60), named(f.name), *_whole(run.summary["run"][f.name])]
        for f in RUN_FIGURES
        for run in runs
        if run.summary["run"][f.name]["value"] is not None
    ]
    tables = [
        ("Latencies, and what one user sees", Table(("run", "figure", *_ORDER), samples)),
        (
            "Figures of the whole run",
            Table(("run", "figure", "mean over repeats, with its interval", "by repeat"), whole),
        ),
    ]
    return Section(
        "Latency and throughput", pieces=[charts, *(folded(f, render_table(t)) for f, t in tables if t.rows)]
    )


def _sample(run: Run, name: str) -> list[Any]:
    row = run.summary["overall"]["figures"][name]
    return [row[key] for key in _ORDER]


def _whole(row: Mapping[str, Any]) -> list[Any]:
    return [with_interval(row["value"], row["interval"]), ", ".join(f"{value:,.4g}" for value in row["runs"])]


def _distribution(runs: Sequence[Run], title: str, figure: SampleFigure, unit: str) -> Markup:
    words = definition(figure.name) + _BEYOND + of_sweeps(runs)
    caption = Caption(title, f"{figure.name}, ms", f"share of {unit}", words, all_marks(runs))
    return histogram(caption, {run.name: all_samples(figure, run.requests) * 1e3 for run in runs})


def streams(results: Results) -> Section | None:
    """Return the active streams of each run over time, with the steady windows marked."""
    charts = [chart for run in detailed(results) if (chart := _timeline(run))]
    return Section("Active streams", pieces=[in_rows(charts)]) if charts else None


def _timeline(run: Run) -> Markup | None:
    load = run.config["load"]
    concurrency = int(load["concurrency"]) if load["mode"] == "closed" else None
    found = active_streams(run.requests, concurrency)
    if found is None:
        return None
    words = "A stream is active from its request being sent to its last token; means of 160 equal spans. "
    if concurrency is not None:
        words += f"Dotted: {concurrency} streams, as asked for. "
        refused = [window.refused for window in found.steady if window.refused]
        words += "Shaded: steady, at least 95 % of them active" if found.steady else "No part of it was steady"
        words += f"; not used for a figure ({refused[0]})." if refused else "."
    caption = Caption(f"Active streams: {clipped(run.name, 40)}", "time, s", "streams", words, run.marks)
    windows = [found.seconds(window) for window in found.steady]
    return timeline(caption, found.levels, windows=windows, target=concurrency)
