"""The frame of every chart: title and marks, legend, the drawing as it is seen and told, its definition, its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench.report.axes import SERIES, WIDTH, line, mark
from cards.page import Table, clipped, render_table, visible


@dataclass(frozen=True, slots=True)
class Caption:
    """What a chart is of.

    Attributes
    ----------
    title
        What is shown, in a few words.
    x, y
        Labels of the axes, with the unit.
    definition
        Formula and aggregation of what is drawn, a sentence or two under the chart.
    marks
        Marks of the runs that it draws (`Run.marks`), put behind the title.
    """

    title: str
    x: str
    y: str
    definition: str = ""
    marks: Sequence[str] = ()


def chart_figure(caption: Caption, names: Sequence[str], drawing: Markup, height: float, table: Table) -> Markup:
    """Return the figure: title and marks, legend, drawing, definition, and the data to unfold."""
    badges = Markup("").join(Markup(' <span class="badge">{}</span>').format(visible(m)) for m in caption.marks)
    spoken = " ".join([visible(caption.title), *(f"[{visible(m)}]" for m in caption.marks)])
    described = visible(f"{caption.y} by {caption.x}. {caption.definition}")
    return Markup(
        '<figure class="chart"><figcaption>{title}{badges}</figcaption>{legend}'
        '<svg role="img" viewBox="0 0 {width} {height:.0f}"><title>{spoken}</title><desc>{described}</desc>{drawing}'
        "</svg>{definition}<details><summary>Data of this chart</summary>{table}</details></figure>"
    ).format(
        title=visible(caption.title),
        badges=badges,
        legend=_legend(names) if len(names) > 1 else "",
        width=WIDTH,
        height=height,
        spoken=spoken,
        described=described,
        drawing=drawing,
        definition=_definition(caption.definition),
        table=render_table(table),
    )


def _definition(words: str) -> Markup:
    return Markup('<p class="definition">{}</p>').format(visible(words)) if words else Markup("")


def _legend(names: Sequence[str]) -> Markup:
    item = '<span><svg viewBox="0 0 26 12" aria-hidden="true">{}{}</svg> {}</span>'
    items = [
        Markup(item).format(line(0, 6, 26, 6, f"line s{number % SERIES + 1}"), mark(number, 13, 6), clipped(name, 60))
        for number, name in enumerate(names)
    ]
    return Markup('<div class="legend">{}</div>').format(Markup("").join(items))


def without_empty(table: Table) -> Table:
    """Return a table without the columns that hold nothing."""
    kept = [i for i in range(len(table.head)) if any(row[i] not in (None, "") for row in table.rows)]
    return Table([table.head[i] for i in kept], [[row[i] for i in kept] for row in table.rows], table.caption)
