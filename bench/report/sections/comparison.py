"""Two runs or more: each against its baseline, paired by conversation, or the reason why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from bench.report.axes import SERIES
from bench.report.charts import Caption, Estimate, interval_chart
from bench.report.comparisons import Comparison
from bench.report.results import Results, all_marks
from bench.report.words import KINDS, definition, folded, in_rows, kind_of, paragraph, small_print, times
from cards.page import Section, Table, clipped, render_table

_HEAD = ("category", "pairs", "speed-up of user_tps", "geometric mean", "of output_tps", "analytic", "gap")
_SPEED_UP = (
    "Speed-up: over conversations that both runs answered, the baseline's time a token (tpot_s, mean over categories "
    "of the mean over conversations) over the run's: the ratio of the harmonic means of user_tps; above 1 the run is "
    "faster. Geometric mean: of the pairs' ratios. In brackets: 95 % interval."
)
_ANALYTIC = (
    "Of output_tps: ratio of the two runs' throughputs. Analytic: t_ar x tokens a step / t_sd, from the step latencies "
    "of both runs. Gap: analytic over measured speed-up, less 1."
)
ALL = "(all)"


def comparison(results: Results) -> Section | None:
    """Return the comparisons of runs outside of sweeps; None where there is nothing to compare."""
    found = [c for c in results.comparisons if not c.run.sweep]
    if not found:
        return None
    done = [c for c in found if c.result is not None]
    pieces = [paragraph(f"{_against(c)} is refused: {clipped(c.refused, 400)}.") for c in found if c.result is None]
    pieces.append(in_rows([_chart(group) for group in _grouped(done)]))
    pieces += [folded(f"{_against(c)}, by category", render_table(_table(c))) for c in done]
    pieces += [small_print((_SPEED_UP, _ANALYTIC, definition("user_tps")))] if done else []
    return Section("Comparison", pieces=[piece for piece in pieces if piece])


def _against(c: Comparison) -> str:
    return f"{clipped(c.run.title, 80)} against {clipped(c.baseline.title, 80)}"


def _grouped(comparisons: Sequence[Comparison]) -> list[Sequence[Comparison]]:
    """Return the comparisons of each chart: one baseline, one kind of verification, as many as can be told apart."""
    groups = dict[tuple[str, str], list[Comparison]]()
    for c in comparisons:
        groups.setdefault((c.baseline.name, kind_of(c.run)), []).append(c)
    return [group[i : i + SERIES] for group in groups.values() for i in range(0, len(group), SERIES)]


def _chart(comparisons: Sequence[Comparison]) -> Markup:
    lines = [_by_category(c) for c in comparisons]
    groups = list(dict.fromkeys([*sorted({name for line in lines for name in line} - {ALL}), ALL]))
    series = {
        c.run.name: [estimate(line[name]) if name in line else None for name in groups]
        for c, line in zip(comparisons, lines, strict=True)
    }
    first = comparisons[0]
    caption = Caption(
        f"Speed-up over {clipped(first.baseline.name, 40)}: {KINDS[kind_of(first.run)][0]}",
        "user_tps over the baseline's",
        "",
        "With 95 % intervals over pairs; none where a category has fewer than eight. Dotted: as fast as the baseline.",
        all_marks([run for c in comparisons for run in (c.run, c.baseline)]),
    )
    return interval_chart(caption, groups, series, reference=1.0)


def _by_category(c: Comparison) -> dict[str, Any]:
    by = c.result["by"] if c.result is not None else {}
    found = {name: line["user_tps"]["ratio"] for name, line in by.items() if line["user_tps"]}
    return found | ({ALL: c.speed_up} if c.speed_up else {})


def estimate(interval: Any) -> Estimate:
    """Return an interval as a chart takes it."""
    return Estimate(interval["value"], interval["low"], interval["high"])


def _table(c: Comparison) -> Table:
    result = c.result or {"speed_up": {}, "by": {}}
    rows = [_cells(ALL, result["speed_up"])]
    rows += [_cells(clipped(name, 60), line) for name, line in result["by"].items()]
    return Table(_HEAD, rows)


def _cells(name: str, line: Any) -> Sequence[Any]:
    user = line["user_tps"]
    return (
        name,
        user["pairs"] if user else 0,
        times(user["ratio"]) if user else None,
        times(user["geometric_mean_ratio"]) if user else None,
        line["output_tps"],
        line["analytic"],
        None if line["analytic_gap"] is None else f"{line['analytic_gap']:+.1%}",
    )
