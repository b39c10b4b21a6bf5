"""Charts: what is drawn is what was given, where it was not measured nothing is, and no name becomes markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.report.axes import SERIES, WIDTH, Scale, fitted, mark, text_width, tick_text, ticks
from bench.report.charts import Caption, Estimate, Line, Point, histogram, interval_chart, line_chart, timeline
from bench.report.pareto import Spot, along, non_dominated
from bench.report.streams import active_streams
from cards.page import visible
from tests.bench.test_figures import S, request

CAPTION = Caption("Title", "across, s", "up, tokens", "What it is.", ("TOY MODEL",))
NASTY = '<script>alert("x")</script> & </svg></td> \u202eevil'
finite = st.floats(-1e9, 1e9).map(lambda x: float(f"{x:.6g}"))


def drawing(chart: str) -> ElementTree.Element:
    """The chart's SVG, parsed: it must be well formed."""
    found = re.search(r'<svg role="img".*?</svg>', chart, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found[0])


def places(chart: str, series: int) -> list[tuple[float, float]]:
    """Where the marks of a series stand."""
    moved = [m.get("transform", "") for m in drawing(chart).iter("path") if f" s{series} " in f" {m.get('class')} "]
    return [(float(x), float(y)) for text in moved for x, y in re.findall(r"translate\(([\d.-]+) ([\d.-]+)\)", text)]


def lines(chart: str, series: int = 1) -> list[int]:
    """How many points each stretch of a series' line has."""
    drawn = [p for p in drawing(chart).iter("path") if f"line s{series}" in str(p.get("class"))]
    return [len(re.findall("[ML]", str(p.get("d")))) for p in drawn]


@given(finite, finite)
@example(0.0, 5e-324)
@example(5e-324, 5e-324)
@example(-5e-324, 5e-324)
@example(1.0, 1.0 + 2**-52)
def test_ticks_are_round_evenly_spaced_and_cover_the_range(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    found = ticks(low, high)
    least = 1e-8 * (high - low) + 1e-300  # what no eye can tell from the edge
    assert found[0] <= low + least
    assert found[-1] >= high - least - 1e-12 * abs(high)
    assert 2 <= len(found) <= 8
    gaps = np.diff(found)
    assert np.allclose(gaps, gaps[0], rtol=1e-6)
    assert f"{gaps[0]:.0e}"[0] in "125"


def test_ticks_refuse_what_has_no_place_on_an_axis() -> None:
    with pytest.raises(ValueError, match="finite"):
        ticks(0.0, float("nan"))


@pytest.mark.parametrize(("value", "shown"), [(0.0, "0"), (0.25, "0.25"), (12_000.0, "12,000"), (2.5, "2.5")])
def test_a_tick_is_as_short_as_it_can_be_read(value: float, shown: str) -> None:
    assert tick_text(value) == shown


@given(st.floats(-100, 100), st.floats(0.001, 100), st.floats(0, 1))
def test_a_scale_is_linear_between_its_ends(low: float, span: float, share: float) -> None:
    scale = Scale(low, low + span, 40.0, 360.0)
    assert scale(low) == 40.0
    assert scale(low + span) == 360.0
    assert scale(low + share * span) == pytest.approx(40.0 + 320.0 * share, abs=0.06)


@given(st.text(max_size=60), st.floats(20, 200))
def test_a_label_is_cut_to_its_room_and_no_more(words: str, room: float) -> None:
    cut = fitted(words, room)
    assert text_width(cut) <= room or cut == "…"
    assert cut == visible(words) if text_width(visible(words)) <= room else cut.endswith("…")


def test_wide_letters_need_more_room() -> None:
    assert text_width("WWW") > text_width("xxx")
    assert text_width("日本") > text_width("ab")


def test_marks_differ_in_form_and_not_in_colour_only() -> None:
    assert len({re.search(r' d="([^"]*)"', mark(i, 0, 0))[1] for i in range(SERIES)}) == SERIES


def test_estimates_stand_where_their_values_are_with_whiskers_to_their_bounds() -> None:
    chart = interval_chart(CAPTION, ["a", "b", "c"], {"run": [Estimate(1.0, 0.5, 1.5), Estimate(2.0), None]})
    (x1, y1), (x2, y2) = places(chart, 1)
    assert y2 > y1
    whiskers = [w for w in drawing(chart).iter("line") if "interval" in str(w.get("class"))]
    assert len(whiskers) == 1, "an estimate without bounds has no whisker, and none is no mark"
    left, right = (float(whiskers[0].get(name)) for name in ("x1", "x2"))
    assert x1 - left == pytest.approx(right - x1, abs=0.2)
    assert right - x1 == pytest.approx((x2 - x1) / 2, abs=0.2)


def test_a_line_breaks_at_a_point_that_failed() -> None:
    points = [Point(1, 1), Point(2, 2), None, Point(4, 4), Point(5, 5), Point(6, 6)]
    chart = line_chart(CAPTION, [Line("run", points)])
    assert lines(chart) == [2, 3]
    assert len(places(chart, 1)) == 5
    assert lines(line_chart(CAPTION, [Line("run", points, joined=False)])) == []


def test_points_lie_on_a_common_scale_and_those_set_off_are_ringed() -> None:
    chart = line_chart(CAPTION, [Line("a", [Point(0, 0), Point(10, 4, ringed=True)]), Line("b", [Point(5, 2)])])
    (x0, y0), (x1, y1) = places(chart, 1)
    (x, y), *_ = places(chart, 2)
    assert (x, y) == (pytest.approx((x0 + x1) / 2, abs=0.1), pytest.approx((y0 + y1) / 2, abs=0.1))
    rings = [c for c in drawing(chart).iter("circle") if c.get("class") == "ring"]
    assert [(float(c.get("cx")), float(c.get("cy"))) for c in rings] == [(x1, y1)]


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=60), st.lists(st.floats(0, 1e3), min_size=1, max_size=60))
def test_a_histogram_accounts_for_every_value(a: list[float], b: list[float]) -> None:
    chart = histogram(CAPTION, {"a": a, "b": b})
    rows = re.findall(r"<tr>\s*(<td.*?)</tr>", chart, re.DOTALL)
    cells = [[float(v) for v in re.findall(r'data-v="([^"]*)"', row)] for row in rows]
    assert sum(row[-2] for row in cells) == pytest.approx(1.0)
    assert sum(row[-1] for row in cells) == pytest.approx(1.0)


def test_a_timeline_marks_its_windows_and_its_target() -> None:
    chart = timeline(CAPTION, [(0.0, 1.0, 2.0), (1.0, 2.0, 4.0)], windows=[(1.0, 2.0)], target=4.0)
    svg = drawing(chart)
    (window,) = [r for r in svg.iter("rect") if r.get("class") == "window"]
    half = float(window.get("x")) - min(float(t.get("x1")) for t in svg.iter("line") if t.get("class") == "axis")
    assert float(window.get("width")) == pytest.approx(half, abs=0.2)
    assert [r for r in svg.iter("line") if r.get("class") == "reference"]


CHARTS = {
    "intervals": lambda name: interval_chart(
        CAPTION, [name, name * 900], {name: [Estimate(1.0), None], "b": [None] * 2}
    ),
    "lines": lambda name: line_chart(
        CAPTION, [Line(name, [Point(1, 1, label=name), Point(2, 1)]), Line(name * 900, [])]
    ),
    "histogram": lambda name: histogram(CAPTION, {name: [1.0, 2.0], name * 900: [3.0]}),
    "timeline": lambda name: timeline(Caption(name, name, name, name, (name,)), [(0.0, 1.0, 2.0)]),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_name_is_never_markup_nor_longer_than_a_page(name: str) -> None:
    chart = CHARTS[name](NASTY)
    assert "<script" not in chart
    assert "&lt;script&gt;" in chart
    assert "\u202e" not in chart
    assert len(chart) < 40_000
    assert drawing(chart).get("viewBox", "").startswith(f"0 0 {WIDTH} ")


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_can_be_heard_and_its_data_read(name: str) -> None:
    chart = CHARTS[name]("plain words")
    svg = drawing(chart)
    assert svg[0].tag == "title"
    assert svg[1].tag == "desc"
    assert "<table>" in chart
    assert "TOY MODEL" in str(svg[0].text) or name == "timeline"
    assert CAPTION.definition in chart or name == "timeline"


def test_nothing_is_drawn_of_nothing() -> None:
    assert interval_chart(CAPTION, ["a"], {"run": [None]}) == ""
    assert line_chart(CAPTION, [Line("a", [None])]) == ""
    assert histogram(CAPTION, {"a": []}) == ""
    assert timeline(CAPTION, []) == ""


def test_one_value_alone_still_has_an_axis() -> None:
    assert places(line_chart(CAPTION, [Line("a", [Point(3, 0)])]), 1)
    assert places(interval_chart(CAPTION, ["a"], {"run": [Estimate(2.0, 2.0, 2.0)]}), 1)


points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(points)
def test_non_dominated_points_are_those_of_the_definition(given_points: list[tuple[int, int]]) -> None:
    found = non_dominated(given_points)
    kept = [p for p, best in zip(given_points, found, strict=True) if best]
    assert bool(kept) == bool(given_points), "some point is always best"
    for p, best in zip(given_points, found, strict=True):
        beaten = [q for q in given_points if q[0] >= p[0] and q[1] >= p[1] and q != p]
        assert best == (not beaten)
    # Stretching an axis changes nothing, and neither does the order.
    assert non_dominated([(x**3, 2 * y) for x, y in given_points]) == found
    assert non_dominated(given_points[::-1]) == found[::-1]


def test_a_series_goes_by_streams_and_keeps_the_place_of_what_failed() -> None:
    spots = [Spot(8, 5.0, 40.0), Spot(2, 9.0, 18.0), Spot(4, None, None), Spot(16, 3.0, None)]
    found = along(spots)
    assert [spot and spot.concurrency for spot in found] == [2, None, 8, None]


def test_active_streams_are_counted_by_hand() -> None:
    requests = [request("a", 0.0, [(1.0, 1), (2.0, 1)]), request("b", 1.0, [(2.5, 1), (3.0, 1)])]
    found = active_streams(requests, None, spans=3)
    assert found is not None
    assert found.levels == ((0.0, 1.0, 1.0), (1.0, 2.0, 2.0), (2.0, 3.0, 1.0))
    assert found.steady == ()
    assert active_streams([], None) is None


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0.01, 5)), min_size=1, max_size=8), st.integers(1, 50))
def test_the_area_under_the_timeline_is_the_time_of_all_streams(spans: list[tuple[float, float]], bins: int) -> None:
    requests = [request(str(i), sent, [(sent + length, 1)]) for i, (sent, length) in enumerate(spans)]
    found = active_streams(requests, None, spans=bins)
    assert found is not None
    total = sum((m.last.at_ns - m.trace.sent_ns) / S for m in requests)
    assert sum((end - start) * level for start, end, level in found.levels) == pytest.approx(total)
    assert max(level for _, _, level in found.levels) <= len(spans) + 1e-9


def test_the_steady_state_is_that_of_the_window_in_seconds_since_the_start() -> None:
    requests = [request(str(i), 100.0 + i, [(150.0 - i, 1)]) for i in range(3)]
    found = active_streams(requests, 3)
    assert found is not None
    assert [found.seconds(window) for window in found.steady] == [(2.0, 48.0)]
