"""The sections of the page, written out in the order in which they stand. A new one is one line."""

from __future__ import annotations

from collections.abc import Callable

from bench.report.results import Results
from cards.page import Section

SectionBuilder = Callable[[Results], Section | None]
"""Returns a section, or None where the results have nothing for it."""

SECTIONS: tuple[SectionBuilder, ...] = ()
