"""The page itself: the sections of the registry over what the folders hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.report.registry import SECTIONS
from bench.report.results import Results, Run, read_results
from bench.report.words import KINDS, bounds, kind_of, listed, number
from bench.results import RunFolder
from cards.page import Section, clipped, render_page

MAX_TILES = 6


def write_report(results: Sequence[Path], out: Path) -> None:
    """Write the page of runs and sweeps, whole or not at all.

    Raises
    ------
    BenchError
        If a folder is neither a finished run nor a sweep.
    """
    RunFolder(out.parent).write_text(out.name, render_report(read_results(results)))


def render_report(results: Results) -> str:
    """Return the page: self-contained, whatever the runs hold escaped."""
    sections = [section for build in SECTIONS if (section := build(results)) is not None]
    return render_page(
        title(results),
        _lead(results),
        [_with_marks(section, results) for section in sections],
        _tiles(results),
        banner=results.banner,
        marks=results.marks,
    )


def title(results: Results) -> str:
    """Return the title of the page: what was measured."""
    names = [run.name for run in results.runs if not run.sweep] + [sweep.name for sweep in results.sweeps]
    return f"Speculative decoding: {listed([clipped(name, 40) for name in names], 4)}"


def _with_marks(section: Section, results: Results) -> Section:
    return section if section.marks else replace(section, marks=results.marks)


def _lead(results: Results) -> str:
    """Return one or two sentences: model, rows, runs, and how many of them are held back."""
    models = list(dict.fromkeys(clipped(str(run.config["engine"]["model"]), 60) for run in results.runs))
    splits = list(
        dict.fromkeys(f"{r.described['split']['name']} ({r.described['split']['rows']:,} rows)" for r in results.runs)
    )
    kinds = list(dict.fromkeys(KINDS[kind_of(run)][0] for run in results.runs))
    held = f" {len(results.held_back)} of {len(results.runs)} runs are held back by gates." if results.held_back else ""
    return f"{listed(models)} on {listed(splits)}; {listed(kinds)}.{held}"


def _tiles(results: Results) -> list[tuple[str, str]]:
    """Return the few numbers that stand first: acceptance length and speed-up of each run that drafts."""
    drafting = [run for run in results.shown if run.speculative and not run.sweep]
    speed_ups = {c.run: c.speed_up for c in results.comparisons}
    tiles = list[tuple[str, str]]()
    for run in drafting:
        tiles += [_length_tile(run)]
        ratio = speed_ups.get(run)
        if ratio is not None:
            tiles.append((_named(run, "speed-up", ratio), f"{ratio['value']:.2f}x"))
    counts = [
        ("runs", f"{len(results.runs):,}"),
        ("conversations", f"{sum(r.summary['overall']['counts']['conversations'] for r in results.runs):,}"),
    ]
    return tiles if tiles and len(tiles) <= MAX_TILES else counts


def _length_tile(run: Run) -> tuple[str, str]:
    length = run.summary["overall"]["headline"]["acceptance_length"]
    return _named(run, "acceptance length, tokens/step", length["interval"]), number(length["value"])


def _named(run: Run, what: str, interval: Mapping[str, Any] | None) -> str:
    within = f" {bounds(interval)}" if interval is not None and interval["low"] is not None else ""
    return f"{clipped(run.title, 50)}: {what}{within}"
