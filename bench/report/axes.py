"""Scales, ticks and the frame of a chart. Pure: numbers in, SVG out. Colours are variables of the page's style."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cards.page import visible

WIDTH = 380
"""User units across a chart: with letters of 11.5 it can be read on a phone of 360 pixels, where it is as wide."""
LETTER = 7.4
"""Width of a digit of the axes, user units, in a wide typeface: a label gets as much room for each letter."""
_WIDE = frozenset("mwMW@%—…")
SERIES = 6
"""Series that a chart can tell apart by colour, dash and mark; a chart of more is drawn in several."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values to user units.

    Attributes
    ----------
    low, high
        Values at the two ends.
    start, end
        User units there.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return where a value lies, to a tenth of a unit."""
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return round(self.start + share * (self.end - self.start), 1)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values 1, 2 or 5 x 10^n apart that cover ``[low, high]``, at most `most` + 1 of them inside."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"low and high must be finite, got {low} and {high}")
    if high - low <= max(1e-12 * max(abs(low), abs(high)), 1e-300):  # no step that a float can take lies between
        high = low + (abs(low) if abs(low) > 1e-300 else 1.0)
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= rough * 0.999999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def text_width(words: str) -> float:
    """Return about how wide words are at most, user units."""
    return sum(
        LETTER * (2.0 if unicodedata.east_asian_width(c) in "WF" else 1.6 if c in _WIDE or c.isupper() else 1.0)
        for c in words
    )


def fitted(words: str, room: float) -> str:
    """Return words cut to some room, user units, the last letter an ellipsis where something was left out."""
    words = visible(words[:100])
    if text_width(words) <= room:
        return words
    while words and text_width(words + "…") > room:
        words = words[:-1]
    return words + "…"


def tick_text(value: float) -> str:
    """Return a tick as short as it can be read."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.6g}"


@dataclass(frozen=True, slots=True)
class Frame:
    """The plotting area of a chart, with what its axes say."""

    x: Scale
    y: Scale
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    height: int

    def grid(self, x_label: str, y_label: str) -> Markup:
        """Return grid lines, ticks and the two labels; the label of y stands above the axis, level, to be read."""
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        parts = [text(0, 10, y_label, "label")]
        for value in self.y_ticks:
            parts += [line(left, self.y(value), right, self.y(value), "grid")]
            parts += [text(left - 5, self.y(value) + 3.6, tick_text(value), "tick end")]
        for value in self.x_ticks:
            parts += [line(self.x(value), bottom, self.x(value), bottom + 4, "axis")]
            parts += [text(self.x(value), bottom + 15, tick_text(value), "tick middle")]
        parts += [line(left, bottom, right, bottom, "axis"), text(right, bottom + 30, x_label, "label end")]
        return Markup("").join(part for part in parts if top <= bottom)


def frame(
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    height: int = 250,
    x_ticks: Sequence[float] | None = None,
) -> Frame:
    """Return a frame around two ranges: y from its ticks' ends, x likewise unless ticks are given."""
    y_ticks = ticks(*y_range)
    left = 8 + max(text_width(tick_text(value)) for value in y_ticks)
    along = ticks(*x_range) if x_ticks is None else list(x_ticks)
    low, high = (along[0], along[-1]) if x_ticks is None else x_range
    right = WIDTH - max(6.0, text_width(tick_text(along[-1])) / 2)
    return Frame(
        Scale(low, high, left, right),
        Scale(y_ticks[0], y_ticks[-1], height - 36, 24),
        along,
        y_ticks,
        height,
    )


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """Return a straight line."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(style, *map(_unit, (x1, y1, x2, y2)))


def text(x: float, y: float, words: str, style: str) -> Markup:
    """Return words at a place."""
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(style, _unit(x), _unit(y), visible(words))


def path(points: Sequence[tuple[float, float]], style: str) -> Markup:
    """Return a line through points; none for fewer than two."""
    if len(points) < 2:
        return Markup("")
    d = "M" + "L".join(f"{_unit(x)} {_unit(y)}" for x, y in points)
    return Markup('<path class="{}" d="{}"/>').format(style, d)


def mark(series: int, x: float, y: float, style: str = "") -> Markup:
    """Return the mark of a series at a point: each has its own form, so that it is known without its colour."""
    r = 3.6
    forms = (
        f"M{-r} 0a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        f"M{-r} {-r}h{2 * r}v{2 * r}h{-2 * r}z",
        f"M0 {-r - 1}L{r + 1} 0L0 {r + 1}L{-r - 1} 0z",
        f"M0 {-r - 1}L{r + 1} {r}H{-r - 1}z",
        f"M0 {r + 1}L{r + 1} {-r}H{-r - 1}z",
        f"M{-r} {-r}L{r} {r}M{-r} {r}L{r} {-r}",
    )
    return Markup('<path class="m s{}{}" transform="translate({} {})" d="{}"/>').format(
        series % SERIES + 1, f" {style}" if style else "", _unit(x), _unit(y), forms[series % SERIES]
    )


def _unit(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
