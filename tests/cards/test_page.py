"""The page builder: self-contained, escaped, sortable."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from cards.page import Section, Table, highlighted, quoted, render_page

NASTY = '<script>alert("x")</script> & </td></table> \u202egnorts\u202c שלום \x00\x1b[31m'


class Structure(HTMLParser):
    """Open tags, their balance, and every address that the page would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.loads: list[str] = []
        self.counts: dict[str, int] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.loads += [v or "" for k, v in attrs if k in ("src", "href") and not (v or "").startswith("#")]
        if tag not in ("meta", "br", "link"):
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def page_of(*cells: object) -> str:
    table = Table(("name", NASTY), [cells], caption=NASTY)
    return render_page(NASTY, NASTY, [Section(NASTY, (NASTY,), (table,)), Section("End")], [("figure", NASTY)])


def test_a_page_is_balanced_and_loads_nothing() -> None:
    structure = Structure(page_of(NASTY, highlighted(NASTY, 2, 20)))
    assert structure.stack == []
    assert structure.loads == []
    assert structure.counts["script"] == 1
    assert structure.counts["table"] == 1


@pytest.mark.parametrize("cell", [NASTY, highlighted(NASTY, 0, 9), highlighted(NASTY, 9, 9), quoted(NASTY)])
def test_what_a_text_holds_is_never_markup(cell: object) -> None:
    page = page_of(cell, 1)
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "\x00" not in page


def test_a_quotation_keeps_its_direction_and_drops_overrides() -> None:
    markup = highlighted("אבג \u202edcba", 0, 3)
    assert markup.startswith("<bdi")
    assert "<mark>אבג</mark>" in markup
    assert "\u202e" not in markup


def test_what_was_not_measured_is_a_dash_and_no_zero() -> None:
    page = page_of(None, 0)
    assert ">–</td>" in page
    assert 'data-v="0">0</td>' in page


@pytest.mark.parametrize(("value", "shown"), [(1234567, "1,234,567"), (0.123456, "0.1235"), (True, "yes"), (2.0, "2")])
def test_numbers_are_readable_and_sort_by_their_value(value: float, shown: str) -> None:
    assert f">{shown}</td>" in page_of(value, "x")


def test_the_same_facts_give_the_same_bytes() -> None:
    assert page_of("a", 1.5) == page_of("a", 1.5)
