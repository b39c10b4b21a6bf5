"""The throughput split of a build: sources read, rows streamed to disk, what was found written beside them."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

from curation.options import Book, Options
from curation.publish import StreamedConfigs
from curation.reading import OpenSource, chosen_sources, open_sources, read_passages, revisions
from curation.recipe import Recipe
from curation.store import BuildFolder, write_json
from curation.throughput.build import build_throughput
from curation.throughput.report import ThroughputReport, write_tier_plot
from curation.throughput.rows import provenance_of
from sources.passages import PassageSource
from sources.registry import SOURCES, THROUGHPUT


def build_throughput_split(
    recipe: Recipe, folder: BuildFolder, options: Options, book: Book
) -> tuple[OpenSource[PassageSource], ...]:
    """Write the throughput configs, `throughput.json` and `tiers.png`; return the sources that were read."""
    opened = open_sources(chosen_sources(recipe, THROUGHPUT), options.origin, allow_short=options.allow_short)
    sink = StreamedConfigs(folder, {name: source.spec for name, source in SOURCES.items()})
    with tempfile.TemporaryDirectory(prefix="speedbench-passages-") as scratch:
        report = build_throughput(
            read_passages(opened, book.drops),
            provenance_of([o.source for o in opened], revisions(opened)),
            recipe,
            sink,
            folder=Path(scratch),
            workers=options.num_workers,
            allow_short=options.allow_short,
        )
    sink.finish()
    book.drops += report.drops
    book.configs += sink.configs
    book.languages.add("en")
    book.facts["throughput"] = _summary(report)
    write_json(folder.root / "throughput.json", report.as_document())
    write_tier_plot(report, folder.root / "tiers.png")
    return opened


def _summary(report: ThroughputReport) -> dict[str, object]:
    shared = [{k: v for k, v in asdict(s).items() if k != "share_by_row"} for s in report.shared]
    return {
        "cells": [asdict(cell) for cell in report.cells],
        "shared": shared,
        "tier_order": list(report.sentences),
    }
