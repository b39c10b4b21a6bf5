"""How the page words numbers, intervals, definitions and kinds of verification. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from markupsafe import Markup

from bench.figures.registry import RATIO_FIGURES, RUN_FIGURES, SAMPLE_FIGURES
from bench.report.results import Run
from cards.page import visible

FIGURES = {figure.name: figure for figure in (*RATIO_FIGURES, *SAMPLE_FIGURES, *RUN_FIGURES)}

AGGREGATIONS = (
    ("headline", "mean over categories of the mean over conversations"),
    ("request_mean", "mean over conversations of each one's ratio"),
    ("pooled", "ratio of the sums over all requests"),
    (
        "mean, p50, p90, p99",
        "over all values; a percentile with fewer than 5 values expected beyond it is not stated",
    ),
    ("run", "one number a run, its mean over repeats, with a t-interval over them"),
)

Kind = Literal["none", "strict_greedy", "sampling", "token_tree", ""]

KINDS: Mapping[Kind, tuple[str, str]] = {
    "none": ("no drafting", "one token a step, the baseline of the others"),
    "strict_greedy": ("strict greedy verification", "a draft is kept only if it is the target's own first choice"),
    "sampling": (
        "verification by speculative sampling",
        "drafts are kept so that the output is distributed as the target's",
    ),
    "token_tree": ("token-tree verification", "several continuations are checked in one step"),
    "": ("verification not stated", "no recipe says how drafts are verified"),
}
"""Kinds of verification in the order in which they stand: name, and what it means."""


def kind_of(run: Run) -> Kind:
    """Return how a run's drafts were verified, by its recipe; "" where nothing says."""
    if not run.speculative:
        return "none"
    return run.recipe.method.verification if run.recipe is not None and run.recipe.speculative else ""


def named(name: str) -> str:
    """Return a figure's name with its unit."""
    unit = FIGURES[name].unit
    return f"{name}, {unit}" if unit else name


def definition(name: str, aggregation: str = "") -> str:
    """Return a figure's formula and unit, and how it is aggregated, in one sentence."""
    figure = FIGURES[name]
    unit = f", {figure.unit}" if figure.unit else ""
    return f"{name} = {figure.formula}{unit}{f'; {aggregation}' if aggregation else ''}."


def number(value: float | str | None) -> str:
    """Return a number as it is read in a line of text; a reason as it is, "n/a" for None."""
    if value is None:
        return "n/a"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}" if abs(value) >= 100 else f"{value:.3f}"


def milliseconds(seconds: float | None) -> float | None:
    """Return seconds in ms; None for None."""
    return None if seconds is None else seconds * 1e3


def bounds(interval: Mapping[str, Any]) -> str:
    """Return the bounds of an interval that has them, never broken over two lines."""
    return f"[{number(interval['low'])},\u00a0{number(interval['high'])}]"


def with_interval(value: float | None, interval: Mapping[str, Any] | None) -> str:
    """Return a value with its interval, or with the reason why there is none."""
    if value is None or interval is None:
        return number(value)
    if interval["low"] is None:
        return f"{number(value)} ({interval['note']})"
    return f"{number(value)} {bounds(interval)}"


def paragraph(words: str, style: str = "") -> Markup:
    """Return a paragraph that stands between other pieces of a section."""
    return Markup('<p class="{}">{}</p>').format(style, visible(words))


def small_print(lines: Sequence[str]) -> Markup:
    """Return lines in small print, one under the other: what the words and figures of a section mean."""
    items = Markup("").join(Markup("<li>{}</li>").format(visible(line)) for line in lines)
    return Markup('<ul class="small">{}</ul>').format(items)


def folded(summary: str, piece: Markup) -> Markup:
    """Return a piece behind a line that unfolds it; in print it is unfolded."""
    return Markup("<details><summary>{}</summary>{}</details>").format(visible(summary), piece)


def times(ratio: Mapping[str, Any] | None) -> str | None:
    """Return a speed-up with its interval, "1.87x [1.83, 1.91]"; None for none."""
    if ratio is None:
        return None
    within = f" [{ratio['low']:.2f},\u00a0{ratio['high']:.2f}]" if ratio["low"] is not None else ""
    return f"{ratio['value']:.2f}x{within}"


def in_rows(charts: Sequence[Markup]) -> Markup:
    """Return charts side by side where there is room, one under the other on a phone."""
    drawn = [chart for chart in charts if chart]
    return Markup('<div class="charts">{}</div>').format(Markup("").join(drawn)) if drawn else Markup("")


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return names as a list in words; of many, how many more there are."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "none"
