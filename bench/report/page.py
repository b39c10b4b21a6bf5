"""The page itself: the sections of the registry over what the folders hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.report.registry import SECTIONS
from bench.report.results import Results, read_results
from bench.results import RunFolder
from cards.page import render_page


def write_report(results: Sequence[Path], out: Path) -> None:
    """Write the page of runs and sweeps, whole or not at all.

    Raises
    ------
    BenchError
        If a folder is neither a finished run nor a sweep.
    """
    RunFolder(out.parent).write_text(out.name, render_report(read_results(results)))


def render_report(results: Results) -> str:
    """Return the page."""
    sections = [section for build in SECTIONS if (section := build(results)) is not None]
    return render_page("Speculative decoding, measured", "", sections)
