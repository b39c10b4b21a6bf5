"""Throughput against latency over sweeps and runs, and every point of a sweep in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from bench.report.axes import SERIES
from bench.report.chart_figure import without_empty
from bench.report.charts import Caption, Line, Point, line_chart
from bench.report.pareto import Spot, along, non_dominated
from bench.report.results import Results, Run, Sweep, all_marks
from bench.report.words import KINDS, Kind, definition, in_rows, kind_of, named, small_print, times, with_interval
from cards.page import Section, Table, clipped, render_table

Key = tuple[str, str, float, Kind]
"""Digest of the rows, name of the throughput, temperature, kind of verification: what one chart holds."""

_WORDS = (
    "A point is a run: to the right a user's tokens a second, upwards those of the server; its number is the streams "
    "that were kept open. Ringed: no other point of the chart is as good in both and better in one. A line joins the "
    "points of one server by streams and breaks where a point failed or is held back. Each kind of verification has a "
    "chart of its own, with the baseline in it."
)
_HEAD = (
    "point",
    "state",
    "user_tps p50, tokens/s",
    "output_tps, tokens/s",
    "output_tps_per_gpu, tokens/s/GPU",
    "speed-up of user_tps",
    "acceptance_length, tokens/step",
    "step_latency_s mean",
    "streams",
    "draft length",
    "temperature",
)


def throughput(results: Results) -> Section | None:
    """Return the charts of throughput against latency, and the points of the sweeps; None for a lone run."""
    charts = [_chart(key, runs, results) for key, runs in _grouped(results).items() if len(runs) > 1]
    tables = [render_table(_table(sweep, results)) for sweep in results.sweeps]
    if not any(charts) and not tables:
        return None
    pieces = [in_rows(charts), *tables]
    if any(charts):
        pieces.append(small_print((_WORDS, definition("user_tps", "median over requests"))))
    return Section("Throughput against latency", pieces=[piece for piece in pieces if piece])


def _grouped(results: Results) -> dict[Key, list[Run]]:
    """Return the shown runs of each chart: those of one kind of verification over one split, with its baselines."""
    groups = dict[Key, list[Run]]()
    for run in results.shown:
        groups.setdefault(_key(run, kind_of(run)), []).append(run)
    plain = {key: runs for key, runs in groups.items() if key[-1] == "none"}
    charts = {key: [*plain.get((*key[:-1], "none"), []), *runs] for key, runs in groups.items() if key[-1] != "none"}
    beside = {key[:-1] for key in charts}
    return charts | {key: runs for key, runs in plain.items() if key[:-1] not in beside}


def _key(run: Run, kind: Kind) -> Key:
    return run.described["split"]["sha256"], _figure(run), run.config["sampling"]["temperature"], kind


def _figure(run: Run) -> str:
    told = run.summary["run"]["output_tps_per_gpu"]["value"] is not None
    return "output_tps_per_gpu" if told else "output_tps"


def _chart(key: Key, runs: Sequence[Run], results: Results) -> Markup:
    series = dict[str, list[Spot]]()
    for run in runs:
        series.setdefault(_series(run), []).append(_spot(run, key[1]))
    for run in results.held_back:
        # Those that failed are not drawn, but no line may pass over them.
        series.get(_series(run), []).append(Spot(run.place["concurrency"], None, None))
    for sweep in results.sweeps:
        for place in sweep.unfinished:
            if "server" in place:
                series.get(_series_name(sweep.name, place), []).append(Spot(place["concurrency"], None, None))
    drawn = [(spot, name) for name, spots in series.items() for spot in spots if spot.told]
    best = non_dominated([(spot.user_tps or 0.0, spot.output_tps or 0.0) for spot, _ in drawn])
    ringed = {id(spot) for (spot, _), is_best in zip(drawn, best, strict=True) if is_best}
    split = runs[0].described["split"]
    caption = Caption(
        f"{split['name']} ({split['rows']:,} rows), temperature {key[2]:g}: {KINDS[key[-1]][0]}",
        "user_tps p50, tokens/s",
        named(key[1]),
        f"{definition(key[1])} Of several repeats, the mean with its 95 % interval.",
        all_marks(runs),
    )
    lines = [Line(name, [_point(spot, ringed) for spot in along(spots)]) for name, spots in series.items()]
    charts = [line_chart(caption, lines[i : i + SERIES], x_from_zero=True) for i in range(0, len(lines), SERIES)]
    return Markup("").join(charts)


def _series(run: Run) -> str:
    return _series_name(run.sweep, run.place) if run.sweep else run.name


def _series_name(sweep: str, place: Mapping[str, Any]) -> str:
    parts = [
        place.get("server") or sweep,
        place.get("data"),
        f"repeat {place['repeat'] + 1}" if place.get("repeat") else "",
    ]
    return ", ".join(str(part) for part in parts if part)


def _spot(run: Run, figure: str) -> Spot:
    user = run.summary["overall"]["figures"]["user_tps"]["p50"]
    whole = run.summary["run"][figure]
    interval = whole["interval"] or {"low": None, "high": None}
    return Spot(run.config["load"]["concurrency"], user, whole["value"], interval["low"], interval["high"])


def _point(spot: Spot | None, ringed: set[int]) -> Point | None:
    if spot is None:
        return None
    x, y, label = spot.user_tps or 0.0, spot.output_tps or 0.0, str(spot.concurrency)
    return Point(x, y, spot.low, spot.high, label=label, ringed=id(spot) in ringed)


def _table(sweep: Sweep, results: Results) -> Table:
    speed_ups = {c.run: c.speed_up for c in results.comparisons}
    rows = [_row(run, speed_ups.get(run)) for run in sweep.runs]
    blank = [None] * (len(_HEAD) - 2)
    rows += [[clipped(str(place["point"]), 80), "did not finish", *blank] for place in sweep.unfinished]
    skipped = sweep.described.get("skipped") or {}
    rows += [[clipped(name, 80), f"not run here: {clipped(why)}", *blank] for name, why in skipped.items()]
    experiment = f", experiment {sweep.experiment}" if sweep.experiment else ""
    # A column that nothing fills, such as throughput by GPU where there is none, only pushes the others aside.
    return without_empty(Table(_HEAD, rows, f"Points of the sweep {clipped(sweep.name, 60)}{experiment}."))


def _row(run: Run, speed_up: Mapping[str, Any] | None) -> list[Any]:
    settings = [
        run.config["load"]["concurrency"],
        run.config["engine"]["draft_length"],
        run.config["sampling"]["temperature"],
    ]
    if run.held_back:
        state = f"held back: {', '.join(gate['name'] for gate in run.summary['gates'])}"
        return [clipped(run.title, 80), state, *([None] * (len(_HEAD) - 2 - len(settings))), *settings]
    overall, whole = run.summary["overall"], run.summary["run"]
    length = overall["headline"]["acceptance_length"]
    return [
        clipped(run.title, 80),
        "finished",
        overall["figures"]["user_tps"]["p50"],
        whole["output_tps"]["value"],
        whole["output_tps_per_gpu"]["value"],
        times(speed_up),
        with_interval(length["value"], length["interval"]) if run.speculative else None,
        overall["figures"]["step_latency_s"]["mean"],
        *settings,
    ]
