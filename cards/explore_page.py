"""The page of `speedbench explore`: rows to filter, search and read, and a picture of each category's pool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cards.page import Section, environment, render_page, visible


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A candidate near a row: its number in `ExploreFacts.candidates`, and the cosine."""

    candidate: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record of the pool: `question_id` of its row, "" if not chosen; `excerpt` None if it may not be shown."""

    record_id: str
    category: str
    question_id: str
    excerpt: str | None


@dataclass(frozen=True, slots=True)
class Point:
    """Where a row lies in the picture of a category, in whole steps."""

    category: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Picture:
    """The candidates of a category in the plane of their principal components, and its share of their variance."""

    category: str
    share: float
    candidates: tuple[tuple[int, int], ...]
    chosen: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ExploreRow:
    """One row as the page shows it.

    `turns` holds of each turn its begin, the code points left out, and its end; `drops` (record_id, stage, reason,
    score) of what was dropped for it, of `num_drops` in all.
    """

    config: str
    question_id: str
    category: str
    sub_category: str
    source: str
    src_id: str
    language: str
    difficulty: str
    status: str
    license: str
    template_id: str
    num_tokens: int | None
    turns: tuple[tuple[str, int, str], ...]
    neighbours: tuple[Neighbour, ...]
    point: Point | None
    drops: tuple[tuple[str, str, str, float | None], ...]
    num_drops: int


@dataclass(frozen=True, slots=True)
class ExploreFacts:
    """All that the page holds; `notes` say what it has not, and why."""

    title: str
    rows: tuple[ExploreRow, ...]
    candidates: tuple[Candidate, ...]
    pictures: tuple[Picture, ...]
    notes: tuple[str, ...]


FACETS = ("config", "category", "source", "language", "difficulty", "status")
"""What rows can be filtered by."""

_COLUMNS: Mapping[str, Callable[[ExploreRow], Any]] = {
    "id": lambda row: row.question_id,
    "sub_category": lambda row: visible(row.sub_category),
    "src_id": lambda row: visible(row.src_id),
    "license": lambda row: row.license,
    "template_id": lambda row: row.template_id,
    "num_tokens": lambda row: row.num_tokens,
    "turns": lambda row: [_turn(turn) for turn in row.turns],
    "neighbours": lambda row: [[n.candidate, n.cosine] for n in row.neighbours],
    "point": lambda row: [row.point.category, row.point.x, row.point.y] if row.point else None,
    "drops": lambda row: [list(drop) for drop in row.drops],
    "num_drops": lambda row: row.num_drops,
}


def render_explore(facts: ExploreFacts) -> str:
    """Return the page: self-contained, every text of a row escaped or set as text by its script."""
    data = as_json(page_data(facts))
    template = environment().get_template("explore.html.jinja")
    rows = Section("Rows", (), pieces=(Markup(template.render(facets=FACETS, data=Markup(data))),))
    sections = [rows, *_picture_sections(facts.pictures), Section("What this page holds", facts.notes)]
    figures = [
        ("rows", f"{len(facts.rows):,}"),
        ("configs", f"{len({row.config for row in facts.rows}):,}"),
        ("placeholders", f"{sum(row.status == 'placeholder' for row in facts.rows):,}"),
        ("data in this page", f"{len(data.encode()) / 1e6:,.1f} MB"),
    ]
    return render_page(f"Rows of {facts.title}", "Read and judge the rows of the benchmark.", sections, figures)


def page_data(facts: ExploreFacts) -> dict[str, Any]:
    """Return the rows by column, facets as numbers of their names: a third of the size of one object a row."""
    names = {facet: list(dict.fromkeys(getattr(row, facet) for row in facts.rows)) for facet in FACETS}
    number = {facet: {name: i for i, name in enumerate(given)} for facet, given in names.items()}
    rows: dict[str, list[Any]] = {f: [number[f][getattr(row, f)] for row in facts.rows] for f in FACETS}
    rows |= {column: [value(row) for row in facts.rows] for column, value in _COLUMNS.items()}
    candidates = [[visible(c.record_id), c.category, c.question_id, c.excerpt] for c in facts.candidates]
    return {"names": names, "rows": rows, "candidates": candidates}


def as_json(value: Any) -> str:
    """Return JSON that can stand in a `script` element: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def _turn(turn: tuple[str, int, str]) -> Any:
    begin, left_out, end = turn
    return [visible(begin), left_out, visible(end)] if left_out else visible(begin)


def _picture_sections(pictures: Sequence[Picture]) -> list[Section]:
    if not pictures:
        return []
    template = environment().get_template("explore_picture.html.jinja")
    drawn = [
        Markup(template.render(picture=p, candidates=_dots(p.candidates), chosen=_dots(p.chosen))) for p in pictures
    ]
    words = (
        "Each dot is a candidate, in the plane of the two principal components of its category's vectors; the large "
        "ones were chosen. A plane shows a part of the variance only, which stands under each picture."
    )
    grid = Markup('<div class="pictures">{}</div>').format(Markup("\n").join(drawn))
    return [Section("Candidates and choice, by category", (words,), pieces=(grid,))]


def _dots(points: Sequence[tuple[int, int]]) -> str:
    """Return a path of dots; one on another is drawn once."""
    return "".join(f"M{x} {y}h0" for x, y in dict.fromkeys(points))
