"""Draft length by concurrency, and the best of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from bench.experiments.draft_length import BestLength, Measurement, best_lengths
from bench.report.axes import SERIES
from bench.report.charts import Caption, Line, Point, line_chart
from bench.report.experiments.parts import engine_of, grouped, method_of, of_experiment, rows_of, shown, told
from bench.report.results import Results, Run, Sweep, all_marks
from bench.report.words import in_rows, small_print
from cards.page import Section, Table, clipped, render_table

_WORDS = (
    "Best: the draft length with the highest output_tps, mean over starts of the server; of two alike the "
    "shorter. 0 is no speculation. Gain: over no speculation. Told apart: its t-interval over starts lies above "
    "every other length's; a dash: started but once, so that nothing is known of chance. Each method is held "
    "against the baseline alone."
)


def draft_length(results: Results) -> Section | None:
    """Return throughput by draft length and concurrency."""
    return of_experiment(results, "draft_length", "Draft length by concurrency", _section)


def _section(sweep: Sweep, _: Results) -> Section | None:
    runs = [run for run in shown(sweep) if run.summary["run"]["output_tps"]["value"]]
    plain = [run for run in runs if not run.speculative]
    methods = grouped([run for run in runs if run.speculative], method_of)
    pieces = list[Markup]()
    for method, own in methods.items():
        pieces += _pieces(method, [*(run for run in plain if engine_of(run) == engine_of(own[0])), *own])
    return Section("", pieces=[*pieces, small_print((_WORDS,))]) if pieces else None


def _pieces(method: str, runs: Sequence[Run]) -> list[Markup]:
    best = best_lengths(
        Measurement(rows_of(run), run.place["concurrency"], run.config["engine"]["draft_length"] or 0, _output_tps(run))
        for run in runs
    )
    charts = [_chart(method, rows, cells, runs) for rows, cells in _by_rows(best).items()]
    return [in_rows(charts), render_table(_table(method, best))]


def _output_tps(run: Run) -> float:
    return float(run.summary["run"]["output_tps"]["value"])


def _by_rows(best: Sequence[BestLength]) -> dict[str, list[BestLength]]:
    groups = dict[str, list[BestLength]]()
    for cell in best:
        groups.setdefault(cell.config, []).append(cell)
    return groups


def _lengths(best: Sequence[BestLength]) -> list[int]:
    return sorted({k for cell in best for k in cell.output_tps})


def _table(method: str, best: Sequence[BestLength]) -> Table:
    lengths = _lengths(best)
    head = (
        "rows",
        "streams",
        "best draft length",
        "gain",
        "told apart",
        *(f"k = {k}: output_tps, tokens/s" for k in lengths),
    )
    rows = list[list[Any]]()
    for cell in best:
        values = [told(cell.output_tps[k]) if k in cell.output_tps else None for k in lengths]
        rows.append([clipped(cell.config, 60), cell.concurrency, cell.draft_length, cell.gain, cell.separated, *values])
    return Table(head, rows, f"Best draft length of {clipped(method, 60)} by streams.")


def _chart(method: str, rows: str, best: Sequence[BestLength], runs: Sequence[Run]) -> Markup:
    lines = []
    for k in _lengths(best)[:SERIES]:
        points = []
        for cell in best:
            interval = cell.output_tps.get(k)
            if interval is not None:
                ringed = cell.draft_length == k
                points.append(Point(cell.concurrency, interval.value, interval.low, interval.high, ringed=ringed))
        lines.append(Line("no drafts" if k == 0 else f"k = {k}", points))
    caption = Caption(
        f"{clipped(method, 40)}: {clipped(rows, 40)}",
        "streams",
        "output_tps, tokens/s",
        "Mean over starts of the server, with its 95 % t-interval. Ringed: the best at these streams.",
        all_marks(runs),
    )
    return line_chart(caption, lines, x_from_zero=True)
