"""The sections of the page, written out in the order in which they stand. A new one is one line."""

from __future__ import annotations

from collections.abc import Callable

from bench.report.experiments import EXPERIMENTS
from bench.report.results import Results
from bench.report.sections.acceptance import acceptance
from bench.report.sections.comparison import comparison
from bench.report.sections.headline import headline
from bench.report.sections.provenance import citation, definitions, provenance
from bench.report.sections.speed import latency, streams
from bench.report.sections.sweeps import throughput
from bench.report.sections.trust import failures, gates, losslessness, self_audit
from cards.page import Section

SectionBuilder = Callable[[Results], Section | None]
"""Returns a section, or None where the results have nothing for it; the page puts the runs' marks in its title."""

SECTIONS: tuple[SectionBuilder, ...] = (
    headline,
    gates,
    comparison,
    throughput,
    acceptance,
    latency,
    streams,
    *EXPERIMENTS,
    losslessness,
    failures,
    self_audit,
    provenance,
    citation,
    definitions,
)
