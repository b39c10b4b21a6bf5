"""Acceptance by category, and by position of the draft."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from bench.experiments.tiers import TIERS
from bench.recipes.published import rows_of
from bench.report.axes import SERIES
from bench.report.charts import Caption, Estimate, Line, Point, interval_chart, line_chart
from bench.report.results import Results, Run, all_marks
from bench.report.sections.comparison import estimate
from bench.report.sections.headline import published_of
from bench.report.words import definition, folded, in_rows, listed, with_interval
from cards.page import Section, Table, clipped, render_table

_CATEGORY_HEAD = (
    "category",
    "conversations",
    "failed requests",
    "mean output, tokens",
    "acceptance_length, tokens/step",
    "acceptance_rate",
    "ttft_s p50",
    "step_latency_s mean",
    "user_tps p50",
)
_POSITION_HEAD = ("run", "position i", "AR_i", "AR_i_drafted", "steps that kept i drafts", "of all steps")
_OF_SWEEPS = " Of each series of a sweep, the point with the fewest streams stands for all."


def detailed(results: Results) -> list[Run]:
    """Return the runs that get charts of their own: those outside of sweeps, and of each series of a sweep one."""
    kept, seen = list[Run](), set[tuple[Any, ...]]()
    for run in sorted(results.shown, key=lambda run: run.config["load"]["concurrency"] if run.sweep else 0):
        axes = ("server", "data", "config", "temperature", "draft_length")
        series = (run.path.parent, *(run.place.get(axis) for axis in axes))
        if not run.sweep or series not in seen:
            kept.append(run)
            seen.add(series)
    order = {run: number for number, run in enumerate(results.runs)}
    return sorted(kept, key=order.__getitem__)


def in_charts(runs: Sequence[Run]) -> list[Sequence[Run]]:
    """Return runs in groups that one chart can tell apart."""
    return [runs[i : i + SERIES] for i in range(0, len(runs), SERIES)]


def of_sweeps(runs: Sequence[Run]) -> str:
    """Return what is to be said of the choice of points, "" where there was none."""
    return _OF_SWEEPS if any(run.sweep for run in runs) else ""


def acceptance(results: Results) -> Section | None:
    """Return acceptance length by category, with intervals, acceptance rates by position, and both in tables."""
    runs = [run for run in detailed(results) if run.summary["by"].get("category")]
    told = [run for run in runs if any(_length(table)["n"] for table in _categories(run).values())]
    if not runs:
        return None
    charts = [_category_chart(group) for alike in _same_categories(told) for group in in_charts(alike)]
    charts += _position_charts(runs)
    tables = [folded(f"{clipped(run.title, 80)}: figures by category", _category_table(run)) for run in runs]
    rows = [row for run in runs if _rates(run, "acceptance_rates") for row in _position_rows(run)]
    if rows:
        tables.append(folded("Figures by position", render_table(Table(_POSITION_HEAD, rows))))
    missing = [run.name for run in runs if run.speculative and run not in told]
    words = [f"Nothing tells the acceptance of {listed(missing)}."] if missing else []
    return Section("Acceptance", words, pieces=[piece for piece in (in_rows(charts), *tables) if piece])


def _categories(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run.summary["by"]["category"]
    return found


def _same_categories(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs in groups over the same categories: those of one split."""
    groups = dict[tuple[str, ...], list[Run]]()
    for run in runs:
        groups.setdefault(_in_order(_categories(run)), []).append(run)
    return list(groups.values())


def _in_order(categories: Iterable[str]) -> tuple[str, ...]:
    """Return categories by name, the tiers from low to high entropy."""
    return tuple(sorted(categories, key=lambda name: (TIERS.index(name) if name in TIERS else -1, name)))


def _length(table: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = table["figures"]["acceptance_length"]
    return found


def _category_chart(runs: Sequence[Run]) -> Markup:
    groups = _in_order({name for run in runs for name in _categories(run)})
    series = {run.name: [_category_estimate(_categories(run).get(name)) for name in groups] for run in runs}
    words = definition("acceptance_length", "mean over the conversations of a category, with its 95 % interval")
    caption = Caption(
        "Acceptance length by category", "acceptance_length, tokens/step", "", words + of_sweeps(runs), all_marks(runs)
    )
    return interval_chart(caption, groups, series)


def _category_estimate(table: Mapping[str, Any] | None) -> Estimate | None:
    if table is None or _length(table)["request_mean"] is None:
        return None
    return estimate(_length(table)["request_mean_interval"])


def _category_table(run: Run) -> Markup:
    published = [p for p in published_of(run) if p.acceptance_length]
    extra = [f"published, {rows_of(p, run.described)} ({p.source})" for p in published]
    rows = [
        [*_category_row(name, table), *(p.acceptance_length.get(name) for p in published)]
        for name, table in _categories(run).items()
    ]
    return render_table(Table((*_CATEGORY_HEAD, *extra), rows))


def _category_row(name: str, table: Mapping[str, Any]) -> list[Any]:
    counts, figures, length = table["counts"], table["figures"], _length(table)
    return [
        clipped(name, 60),
        counts["conversations"],
        counts["failed"],
        counts["mean_output_tokens"],
        None if length["request_mean"] is None else _with_interval(length),
        figures["acceptance_rate"]["pooled"],
        figures["ttft_s"]["p50"],
        figures["step_latency_s"]["mean"],
        figures["user_tps"]["p50"],
    ]


def _with_interval(length: Mapping[str, Any]) -> str:
    return with_interval(length["request_mean"], length["request_mean_interval"])


def _position_charts(runs: Sequence[Run]) -> list[Markup]:
    """Return AR_i and, where it differs, AR_i_drafted by position; none where no run has a histogram of its steps."""
    told = [run for run in runs if _rates(run, "acceptance_rates")]
    words = "AR_i = S_i / S_(i-1): steps that kept at least i drafts, over those that kept i - 1; pooled."
    charts = [_position_chart(group, "acceptance_rates", "AR_i", words) for group in in_charts(told)]
    # Where every step drafts to the full, the two are the same, and one picture does.
    differ = [run for run in told if _rates(run, "drafted_acceptance_rates") != _rates(run, "acceptance_rates")]
    drafted = [run for run in differ if _rates(run, "drafted_acceptance_rates")]
    words = "As AR_i, among the steps that had drafted at least i tokens: what the drafter is worth where it drafts."
    return charts + [
        _position_chart(group, "drafted_acceptance_rates", "AR_i_drafted", words) for group in in_charts(drafted)
    ]


def _rates(run: Run, name: str) -> Sequence[float | None]:
    positions = run.summary["overall"]["positions"]
    return (positions[name] or []) if positions else []


def _position_chart(runs: Sequence[Run], name: str, short: str, words: str) -> Markup:
    caption = Caption(
        f"{short} by position", "position of the draft in its step", short, words + of_sweeps(runs), all_marks(runs)
    )
    lines = [
        Line(
            run.name,
            [None if rate is None else Point(i, rate) for i, rate in enumerate(_rates(run, name), 1)],
        )
        for run in runs
    ]
    return line_chart(caption, lines, whole_x=True)


def _position_rows(run: Run) -> list[list[Any]]:
    rates, survival = _rates(run, "acceptance_rates"), run.summary["overall"]["positions"]["survival"]
    drafted = _rates(run, "drafted_acceptance_rates") or [None] * len(rates)
    return [
        [
            clipped(run.title, 60),
            i,
            rate,
            drafted[i - 1],
            survival[i],
            survival[i] / survival[0] if survival[0] else None,
        ]
        for i, rate in enumerate(rates, 1)
    ]
