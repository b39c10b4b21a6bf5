"""Charts as inline SVG: no script, no file beside them, legible in light, dark and print, their data in a table below.

A chart is `Markup` that stands in `Section.pieces`. Its colours are the page's variables; series differ by colour, form
of mark and dash. Numbers are drawn as they are given; whoever calls states the unit in `Caption`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from bench.report.axes import (
    SERIES,
    WIDTH,
    Frame,
    Scale,
    fitted,
    frame,
    line,
    mark,
    path,
    text,
    text_width,
    tick_text,
    ticks,
)
from bench.report.chart_figure import Caption, chart_figure, without_empty
from cards.page import Table, clipped

__all__ = [
    "Caption",
    "Estimate",
    "Line",
    "Point",
    "histogram",
    "interval_chart",
    "line_chart",
    "timeline",
]

MAX_BINS = 40
LABEL_ROOM = 110.0
"""Room for the name of a row, user units."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval; `low` and `high` are None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line: `low` and `high` bound y, `label` stands beside it, `ringed` sets it off."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""
    ringed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points; None among them is a point that failed, across which no line is drawn."""

    name: str
    points: Sequence[Point | None]
    joined: bool = True


def interval_chart(
    caption: Caption,
    groups: Sequence[str],
    series: Mapping[str, Sequence[Estimate | None]],
    *,
    reference: float | None = None,
) -> Markup:
    """Return marks with intervals, a row for each group and in it a line for each series.

    Parameters
    ----------
    groups
        Names of the rows, from the top.
    series
        By name, an estimate for each group; None where there is none.
    reference
        A value to draw a line at, such as 1 for a speed-up.
    """
    told = [e for estimates in series.values() for e in estimates if e is not None]
    if not told:
        return Markup("")
    bounds = [v for e in told for v in (e.value, e.low, e.high) if v is not None]
    bounds += [] if reference is None else [reference]
    labels = [fitted(group, LABEL_ROOM) for group in groups]
    step, pitch, top = 12, 12 * len(series) + 8, 24 if caption.y else 8
    height = top + pitch * len(groups) + 36
    marks = ticks(min(bounds), max(bounds))
    left = 8 + max(text_width(label) for label in labels)
    x = Scale(marks[0], marks[-1], left, WIDTH - 44)
    parts = [text(0, 10, caption.y, "label"), text(WIDTH - 44, height - 4, caption.x, "label end")]
    for value in marks:
        parts += [line(x(value), top - 4, x(value), height - 34, "grid")]
        parts += [text(x(value), height - 20, tick_text(value), "tick middle")]
    if reference is not None:
        parts.append(line(x(reference), top - 6, x(reference), height - 34, "reference"))
    for row, label in enumerate(labels):
        begin = top - 2 + pitch * row
        parts.append(text(left - 6, begin + pitch / 2 + 2, label, "group end"))
        for number, estimates in enumerate(series.values()):
            estimate = estimates[row]
            if estimate is not None:
                parts += _estimate(number, x, begin + 10 + step * number, estimate)
    return chart_figure(caption, list(series), Markup("").join(parts), height, _estimate_table(groups, series))


def _estimate(number: int, x: Scale, y: float, estimate: Estimate) -> list[Markup]:
    parts = []
    if estimate.low is not None and estimate.high is not None:
        parts.append(line(x(estimate.low), y, x(estimate.high), y, f"interval s{number % SERIES + 1}"))
    parts.append(mark(number, x(estimate.value), y))
    parts.append(text(WIDTH - 38, y + 3.6, _short(estimate.value), "tick"))
    return parts


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _estimate_table(groups: Sequence[str], series: Mapping[str, Sequence[Estimate | None]]) -> Table:
    rows = [
        [clipped(group), clipped(name), e.value if e else None, e.low if e else None, e.high if e else None]
        for row, group in enumerate(groups)
        for name, estimates in series.items()
        for e in [estimates[row]]
    ]
    return Table(("group", "series", "value", "low", "high"), rows)


def line_chart(
    caption: Caption,
    lines: Sequence[Line],
    *,
    x_from_zero: bool = False,
    y_from_zero: bool = True,
    whole_x: bool = False,
) -> Markup:
    """Return lines or clouds of points.

    Parameters
    ----------
    x_from_zero, y_from_zero
        Whether an axis begins at 0.
    whole_x
        Whether x takes whole numbers only, each of which gets a tick, such as positions.
    """
    told = [p for series in lines for p in series.points if p is not None]
    if not told:
        return Markup("")
    xs = [p.x for p in told] + ([0.0] if x_from_zero else [])
    ys = [v for p in told for v in (p.y, p.low, p.high) if v is not None] + ([0.0] if y_from_zero else [])
    if whole_x:
        every = max(1, round((max(xs) - min(xs)) / 12))
        along = [float(v) for v in range(int(min(xs)), int(max(xs)) + 1, every)]
        plot = frame((min(xs) - 0.4, max(xs) + 0.4), (min(ys), max(ys)), x_ticks=along)
    else:
        plot = frame((min(xs), max(xs)), (min(ys), max(ys)))
    parts = [plot.grid(caption.x, caption.y)]
    for number, series in enumerate(lines):
        parts += _drawn_line(number, plot, series)
    rows = [
        [clipped(series.name), clipped(p.label), p.x, p.y, p.low, p.high, "yes" if p.ringed else ""]
        for series in lines
        for p in series.points
        if p is not None
    ]
    table = without_empty(Table(("series", "point", caption.x, caption.y, "low", "high", "set off"), rows))
    return chart_figure(caption, [series.name for series in lines], Markup("").join(parts), plot.height, table)


def _drawn_line(number: int, plot: Frame, series: Line) -> list[Markup]:
    parts, stretch = list[Markup](), list[tuple[float, float]]()
    for point in [*series.points, None]:
        if point is not None:
            stretch.append((plot.x(point.x), plot.y(point.y)))
        else:
            parts += [path(stretch, f"line s{number % SERIES + 1}")] if series.joined else []
            stretch = []
    for point in series.points:
        if point is not None:
            parts += _drawn_point(number, plot, point)
    return parts


def _drawn_point(number: int, plot: Frame, point: Point) -> list[Markup]:
    x, y = plot.x(point.x), plot.y(point.y)
    parts = []
    if point.low is not None and point.high is not None:
        parts.append(line(x, plot.y(point.low), x, plot.y(point.high), f"interval s{number % SERIES + 1}"))
    if point.ringed:
        parts.append(Markup('<circle class="ring" cx="{}" cy="{}" r="7"/>').format(x, y))
    parts.append(mark(number, x, y))
    if point.label:
        near_end = x > plot.x.end - 60
        parts.append(text(x + (-9 if near_end else 9), y - 5, clipped(point.label, 14), f"tick{' end' * near_end}"))
    return parts


def histogram(caption: Caption, samples: Mapping[str, Sequence[float] | NDArray[np.float64]]) -> Markup:
    """Return the distribution of values >= 0, an outline for each series, as shares of its values.

    The bins are alike for all series and reach to the largest of their 99th percentiles; what lies beyond is in the
    last, open one, and in the table.
    """
    told = {name: np.asarray(values, np.float64) for name, values in samples.items() if len(values)}
    if not told:
        return Markup("")
    end = max(float(np.percentile(values, 99)) for values in told.values()) or 1.0
    marks = ticks(0.0, end)
    edges = np.linspace(0.0, marks[-1], MAX_BINS + 1)
    width = marks[-1] / MAX_BINS
    shares = {name: np.append(np.histogram(v, edges)[0], (v > edges[-1]).sum()) / len(v) for name, v in told.items()}
    plot = frame((0.0, marks[-1] + 2 * width), (0.0, max(float(s.max()) for s in shares.values())), x_ticks=marks)
    parts = [plot.grid(caption.x, caption.y)]
    for number, share in enumerate(shares.values()):
        outline = [(0.0, 0.0)]
        for left, right, height in zip(edges[:-1], edges[1:], share[:-1], strict=True):
            outline += [(left, height), (right, height)]
        places = [(plot.x(x), plot.y(y)) for x, y in [*outline, (marks[-1], 0.0)]]
        parts.append(path(places, f"line area s{number % SERIES + 1}"))
        if share[-1]:
            parts.append(mark(number, plot.x(marks[-1] + 1.2 * width), plot.y(float(share[-1]))))
    names = list(shares)
    rows: list[list[Any]] = [
        [float(low), float(high), *(float(shares[name][i]) for name in names)]
        for i, (low, high) in enumerate(pairwise(edges))
    ]
    rows.append([float(edges[-1]), None, *(float(shares[name][-1]) for name in names)])
    table = Table(("from", "to", *(clipped(name) for name in names)), rows)
    return chart_figure(caption, names, Markup("").join(parts), plot.height, table)


def timeline(
    caption: Caption,
    levels: Sequence[tuple[float, float, float]],
    *,
    windows: Sequence[tuple[float, float]] = (),
    target: float | None = None,
) -> Markup:
    """Return a level over time as steps.

    Parameters
    ----------
    levels
        ``(from, to, level)`` of spans that follow one another.
    windows
        Spans to set off, such as the steady state of each repeat.
    target
        A level to draw a line at.
    """
    if not levels:
        return Markup("")
    most = max([level for _, _, level in levels] + ([] if target is None else [target]))
    plot = frame((levels[0][0], levels[-1][1]), (0.0, most), height=210)
    parts = list[Markup]()
    for start, end in windows:
        x, width = plot.x(start), plot.x(end) - plot.x(start)
        box = '<rect class="window" x="{}" y="24" width="{:.1f}" height="{}"/>'
        parts.append(Markup(box).format(x, width, plot.y.start - 24))
    parts.append(plot.grid(caption.x, caption.y))
    if target is not None:
        parts.append(line(plot.x.start, plot.y(target), plot.x.end, plot.y(target), "reference"))
    steps = [place for start, end, level in levels for place in ((start, level), (end, level))]
    places = [(levels[0][0], 0.0), *steps, (levels[-1][1], 0.0)]
    parts.append(path([(plot.x(x), plot.y(y)) for x, y in places], "line area s1"))
    table = Table(("from", "to", caption.y), [list(level) for level in levels])
    return chart_figure(caption, [], Markup("").join(parts), plot.height, table)
