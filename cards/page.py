"""One page a report: self-contained HTML from facts, with jinja2; light and dark, on a phone and in print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup, escape


@dataclass(frozen=True, slots=True)
class Table:
    """A table that its reader can sort.

    Attributes
    ----------
    head
        Names of the columns.
    rows
        Cells as text, numbers, `Markup` from this module, or None for "not measured".
    caption
        One sentence above it.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with paragraphs, tables and pieces of markup under it, in this order; `marks` stand in the heading."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pieces: Sequence[Markup] = ()
    marks: Sequence[str] = ()


def render_page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    figures: Sequence[tuple[str, str]] = (),
    *,
    banner: str = "",
    marks: Sequence[str] = (),
) -> str:
    """Return a page that needs no other file and no network.

    Parameters
    ----------
    title, lead
        Heading, and the paragraph under it.
    sections
        The body; a page with more than one begins with links to them.
    figures
        Name and value of the few numbers that a reader wants first.
    banner
        A caution above everything else.
    marks
        A word or two each, put behind the title: what nobody may overlook.
    """
    page = environment().get_template("page.html.jinja")
    return page.render(title=title, lead=lead, sections=sections, figures=figures, banner=banner, marks=marks) + "\n"


def render_table(table: Table) -> Markup:
    """Return a table as a piece of a section, to stand between other pieces."""
    return Markup(environment().get_template("table.html.jinja").render(table=table))


def clipped(text: str, most: int = 200) -> str:
    """Return a text made visible, of at most `most` characters, the last an ellipsis where something was left out."""
    return visible(text if len(text) <= most else text[: most - 1] + "…")


def highlighted(text: str, begin: int, end: int) -> Markup:
    """Return a text with one stretch marked, in its own direction of writing, control characters made visible."""
    before, match, after = (escape(visible(part)) for part in (text[:begin], text[begin:end], text[end:]))
    return Markup(f'<bdi class="quote">{before}<mark>{match}</mark>{after}</bdi>')


def quoted(text: str) -> Markup:
    """Return a text in its own direction of writing, control characters made visible."""
    return Markup('<bdi class="quote">{}</bdi>').format(escape(visible(text)))


def visible(text: str) -> str:
    """Return a text without overrides of its direction, other control characters shown as one sign."""
    if text.isprintable():
        return text
    return text.translate(_SHOWN)


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# Overrides of direction could make a quotation read as something else; other controls are not HTML.
_SHOWN = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"))
_SHOWN |= {code: "\ufffd" for code in range(32) if chr(code) not in "\n\t"}


@cache
def environment() -> jinja2.Environment:
    """Return the templates of the pages; every value in them is escaped, `Markup` apart."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cards", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["cell"] = _cell
    environment.tests["numeric"] = _is_number
    return environment


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: object) -> str | Markup:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.0f}"
    return value if isinstance(value, Markup) else str(value)
