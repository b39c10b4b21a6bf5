"""The diversity of a DIST as text, as JSON and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curation.composition import SPEC_BENCH_CATEGORY, Composition
from curation.diversity import CategoryDiversity, DiversityReport
from sources.disk import atomic


def as_document(report: DiversityReport) -> dict[str, Any]:
    """Return the report as JSON can hold it; a figure that was not measured is null."""
    document = asdict(report)
    for entry, category in zip(document["categories"], report.categories, strict=True):
        entry["under_spec_bench"] = category.under_spec_bench
    document["mean_own"] = report.mean_own
    document["mean_spec_bench"] = report.mean_spec_bench
    document["under_spec_bench"] = report.under_spec_bench
    return document


def as_text(report: DiversityReport) -> str:
    """Return the tables that `speedbench diversity` prints."""
    lines = [
        f"mean pairwise cosine by category, {report.embedder}; lower is more diverse",
        "",
        *_table(_DIVERSITY_HEAD, [*map(_diversity_row, report.categories), _mean_row(report)]),
        "",
        "composition",
        "",
        *_table(("", "this split", "Spec-Bench"), _composition_rows(report.composition, report.spec_bench)),
        "",
        "input length in tokens: mean (median)",
        "",
        *_table(("category", "rows", "this split", "Spec-Bench"), _length_rows(report.composition, report.spec_bench)),
    ]
    lines += [""] * bool(report.notes) + [f"note: {note}" for note in report.notes]
    return "\n".join(lines)


_DIVERSITY_HEAD = (
    "category",
    "rows",
    "pool",
    "Spec-Bench",
    "random (sd)",
    "greedy",
    "this split",
    "bound",
    "gap",
    "under Spec-Bench",
)


def _diversity_row(c: CategoryDiversity) -> tuple[str, ...]:
    spread = "" if c.random is None else f"{c.random:.4f} ({c.random_sd:.4f})"
    return (
        c.category,
        str(c.rows),
        "" if c.candidates is None else str(c.candidates),
        _cosine(c.spec_bench),
        spread,
        _cosine(c.greedy),
        _cosine(c.own),
        _cosine(c.bound),
        "" if c.gap is None else f"{100 * c.gap:.2f} %",
        _share(c.under_spec_bench),
    )


def _mean_row(report: DiversityReport) -> tuple[str, ...]:
    under = _share(report.under_spec_bench)
    return ("mean", "", "", _cosine(report.mean_spec_bench), "", "", _cosine(report.mean_own), "", "", under)


def _composition_rows(own: Composition, theirs: Composition | None) -> list[tuple[str, ...]]:
    sides = [own, theirs] if theirs else [own]
    rows: list[tuple[str, ...]] = [
        ("rows", *(str(s.rows) for s in sides)),
        ("multi-turn rows", *(f"{s.multiturn_rows} ({_percent(s.multiturn_rows, s.rows)})" for s in sides)),
        ("rows by turns", *(_counted(s.turns) for s in sides)),
        ("difficulty", *(_counted(s.difficulty) for s in sides)),
        ("programming languages (coding)", *(_counted(s.programming_languages) for s in sides)),
        ("languages (multilingual)", *(f"{len(s.languages)}: {_counted(s.languages)}" for s in sides)),
    ]
    return [(*row, *[""] * (3 - len(row))) for row in rows]


def _length_rows(own: Composition, theirs: Composition | None) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for category, n in own.input_lengths.items():
        other = theirs.input_lengths.get(SPEC_BENCH_CATEGORY.get(category, "")) if theirs else None
        beside = "" if other is None else f"{other.mean_isl:.1f} ({other.median_isl:.1f})"
        rows.append((category, str(n.rows), f"{n.mean_isl:.1f} ({n.median_isl:.1f})", beside))
    return rows


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    grid = [head, *rows]
    widths = [max(len(row[i]) for row in grid) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in grid]


def _counted(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{name or 'undeclared'} {n}" for name, n in counts.items())


def _cosine(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "no rows"


def write_plot(report: DiversityReport, path: Path) -> None:
    """Draw the comparison: a group of bars a category, the bound as a line across the split's own bar."""
    from matplotlib.figure import Figure

    names = [c.category for c in report.categories]
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    axes = figure.subplots()
    series = (
        ("Spec-Bench", [c.spec_bench for c in report.categories], "#b8b8b8"),
        ("random choice (10 seeds)", [c.random for c in report.categories], "#e2a45c"),
        ("this split", [c.own for c in report.categories], "#2f6f9f"),
    )
    width = 0.27
    for place, (label, values, colour) in enumerate(series):
        xs = [i + (place - 1) * width for i in range(len(names))]
        axes.bar(xs, [v if v is not None else 0.0 for v in values], width, label=label, color=colour)
    for i, c in enumerate(report.categories):
        if c.bound is not None:
            axes.hlines(c.bound, i + width / 2, i + 1.5 * width, color="#c0392b", linewidth=2)
    axes.set_xticks(range(len(names)), names, rotation=25, ha="right")
    axes.set_ylabel("mean pairwise cosine")
    axes.set_title(f"Lower is more diverse ({report.embedder})")
    axes.spines[["top", "right"]].set_visible(False)
    if any(c.bound is not None for c in report.categories):
        axes.plot([], [], color="#c0392b", linewidth=2, label="proven bound")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as scratch:
        # No date in the file: the same figures give the same bytes.
        figure.savefig(scratch, format=path.suffix.lstrip(".") or "png", dpi=130, metadata={})
