"""Two runs or more: each against its baseline, paired by conversation, or the reason why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from bench.report.charts import Caption, Estimate, interval_chart
from bench.report.comparisons import Comparison
from bench.report.results import Results, all_marks
from bench.report.words import definition, in_rows, paragraph, with_interval
from cards.page import Section, Table, clipped, render_table

_HEAD = ("against the baseline", "pairs", "speed-up of user_tps", "geometric mean", "of output_tps", "analytic", "gap")
_MEANING = (
    "Speed-ups are ratios over conversations that both runs answered: the mean over categories of the run's user_tps, "
    "over the same of its baseline; beside it the geometric mean of the pairs' ratios. Of output_tps: the ratio of the "
    "two runs' throughputs. Analytic: t_ar x tokens a step / t_sd, from the step latencies of both; gap: analytic over "
    "measured, less 1. Above 1 the run is faster. "
)


def comparison(results: Results) -> Section | None:
    """Return the comparisons of runs outside of sweeps; None where there is nothing to compare."""
    found = [c for c in results.comparisons if not c.run.sweep]
    if not found:
        return None
    done = [c for c in found if c.result is not None]
    pieces = [paragraph(_MEANING + definition("user_tps"))] if done else []
    pieces.append(in_rows([_chart(c) for c in done]))
    pieces += [render_table(_table(c)) for c in done]
    pieces += [
        paragraph(f"{clipped(c.run.title, 80)} is not compared: {clipped(c.refused, 400)}.")
        for c in found
        if c.result is None
    ]
    return Section("Comparison", pieces=[piece for piece in pieces if piece])


def _chart(c: Comparison) -> Markup:
    assert c.result is not None
    by = {name: line["user_tps"]["ratio"] for name, line in c.result["by"].items() if line["user_tps"]}
    whole = c.speed_up
    groups = [*by, *(["(all)"] if whole else [])]
    estimates = [estimate(ratio) for ratio in [*by.values(), *([whole] if whole else [])]]
    caption = Caption(
        f"Speed-up of {clipped(c.run.name, 40)} over {clipped(c.baseline.name, 40)}",
        "ratio of user_tps; 1 = as fast as the baseline",
        "category",
        "With 95 % intervals over pairs; no interval where a category has fewer than eight.",
        all_marks((c.run, c.baseline)),
    )
    return interval_chart(caption, groups, {c.run.name: estimates}, reference=1.0)


def estimate(interval: Any) -> Estimate:
    """Return an interval as a chart takes it."""
    return Estimate(interval["value"], interval["low"], interval["high"])


def _table(c: Comparison) -> Table:
    assert c.result is not None
    rows = [_cells("(all)", c.result["speed_up"])]
    rows += [_cells(clipped(name, 60), line) for name, line in c.result["by"].items()]
    return Table(_HEAD, rows, f"{clipped(c.run.title, 80)} against {clipped(c.baseline.title, 80)}.")


def _cells(name: str, line: Any) -> Sequence[Any]:
    user = line["user_tps"]
    ratio, mean = (user["ratio"], user["geometric_mean_ratio"]) if user else (None, None)
    return (
        name,
        user["pairs"] if user else 0,
        with_interval(ratio["value"], ratio) if ratio else None,
        with_interval(mean["value"], mean) if mean else None,
        line["output_tps"],
        line["analytic"],
        None if line["analytic_gap"] is None else f"{line['analytic_gap']:+.1%}",
    )
