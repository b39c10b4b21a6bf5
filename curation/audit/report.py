"""The report of an audit: one page to read, and the paragraph for a model card."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cards.page import Section, Table, highlighted, quoted, render_page
from curation.audit.arrow import equals
from curation.audit.results import Results
from curation.kernels.audit_rules import CLASSES, COMMON_DOCUMENTS, CONTAMINATED
from curation.store import write_text

MAX_PAIRS = 500
"""Pairs of a class on the page; the parquet file holds them all."""

_MEANING = {
    "exact": "the same characters, white space aside",
    "format": "the same letters, digits and signs of meaning; case, punctuation, width or wrapping differ",
    "near": "an edited copy, by aligned tokens",
    "number_variant": "the same text with other numbers",
    "partial": "a long stretch of the prompt",
    "common_text": f"a phrase, or a part of a prompt, that more than {COMMON_DOCUMENTS} documents hold",
    "ngram": "a shared run of the length that the published rule names",
    "semantic": "alike by an embedding: a candidate for a person to judge, no verdict",
}
_STATUS = {
    "too_short": "too few tokens to be told from chance",
    "boilerplate": "all its shingles are shared by many prompts",
    "placeholder": "its text is not in the benchmark folder",
}


def write_report(out: Path, results: Results) -> None:
    """Write `report.html` and `statement.md`."""
    write_text(out / "report.html", render_report(results))
    write_text(out / "statement.md", statement(results.summary) + "\n")


def statement(summary: dict[str, Any]) -> str:
    """Return one paragraph that a model card can carry: what was looked for, in what, and what was found."""
    benchmark, corpus, settings = summary["benchmark"], summary["corpus"], summary["settings"]
    hidden = sum(benchmark["not_auditable"].values())
    skipped = sum(corpus["skipped"].values())
    flagged = [f"{summary['by_class'][c]['prompts']:,} {c}" for c in _flagged_classes(settings["rule"])]
    unread = len(corpus["passed_over"])
    return (
        f"The training text ({corpus['documents']:,} documents, {corpus['num_bytes'] / 1e6:,.1f} MB of text in "
        f"{corpus['files']:,} files) was searched for the {benchmark['auditable_prompts']:,} auditable prompts of "
        f"{settings['benchmark']} (sha256 {settings['benchmark_sha256'][:16]}, rule {settings['rule']}, normaliser "
        f"{settings['normaliser']}). Prompts found: {', '.join(flagged)}, in "
        f"{corpus['contaminated_documents']:,} documents. {hidden:,} prompts could not be audited, {skipped:,} rows "
        f"were not scanned and {unread:,} files were passed over; nothing is claimed about these."
    )


def _flagged_classes(rule: str) -> Sequence[str]:
    return CONTAMINATED if rule == "adaptive" else ("ngram",)


def render_report(results: Results) -> str:
    """Return the page."""
    summary = results.summary
    sections = [
        Section("Statement for a model card", (statement(summary),)),
        Section("Classes", tables=(_class_table(summary),)),
        Section("By category, config and source", tables=tuple(_extent_tables(summary))),
        Section("By file", tables=(_file_table(summary),)),
        *_pair_sections(results.hits),
        _prompt_section(results.prompts),
        _row_section(summary),
        Section("Settings", tables=(Table(("setting", "value"), _settings_rows(summary["settings"])),)),
    ]
    lead = "Which prompts of the benchmark are in the training text, with the evidence for each pair."
    return render_page("Contamination audit", lead, sections, _figures(summary))


def _figures(summary: dict[str, Any]) -> list[tuple[str, str]]:
    benchmark, corpus = summary["benchmark"], summary["corpus"]
    return [
        ("documents scanned", f"{corpus['documents']:,}"),
        ("documents with a prompt", f"{corpus['contaminated_documents']:,}"),
        ("prompts found", f"{benchmark['contaminated_prompts']:,} of {benchmark['auditable_prompts']:,}"),
        ("prompts not auditable", f"{sum(benchmark['not_auditable'].values()):,}"),
        ("rows not scanned", f"{sum(corpus['skipped'].values()):,}"),
    ]


def _class_table(summary: dict[str, Any]) -> Table:
    rows = [
        (name, _MEANING[name], extent["pairs"], extent["documents"], extent["prompts"])
        for name, extent in summary["by_class"].items()
    ]
    return Table(("class", "meaning", "pairs", "documents", "prompts"), rows)


def _extent_tables(summary: dict[str, Any]) -> Iterable[Table]:
    for name in ("category", "config", "source"):
        rows = [(key, e["pairs"], e["documents"], e["prompts"]) for key, e in summary[f"by_{name}"].items()]
        yield Table((name, "pairs", "documents", "prompts"), rows, "Pairs of the classes exact, format and near.")


def _file_table(summary: dict[str, Any]) -> Table:
    rows = [
        (e["file"], e["rows"], e["documents"], e["num_bytes"], e["contaminated_documents"], _skips(e))
        for e in summary["corpus"]["by_file"]
    ]
    head = ("file", "rows", "documents", "bytes of text", "documents with a prompt", "rows not scanned")
    return Table(head, rows)


def _skips(entry: dict[str, Any]) -> int:
    return sum(count for count, _ in entry["skipped"].values())


def _pair_sections(hits: pa.Table) -> Iterable[Section]:
    for name in CLASSES:
        part = hits.filter(equals(hits.column("class"), name))
        if not len(part):
            continue
        shown = part.slice(0, MAX_PAIRS).to_pylist()
        note = f"{len(part):,} pairs" + (f"; the first {MAX_PAIRS} are shown" if len(part) > MAX_PAIRS else "")
        yield Section(f"Pairs: {name}", (f"{note}. All are in hits.parquet.",), (_pair_table(shown),))


def _pair_table(rows: Iterable[dict[str, Any]]) -> Table:
    head = ("file", "row", "id", "question", "turn", "category", "coverage", "longest run", "text")
    cells = [
        (
            row["file"],
            row["row"],
            row["document_id"],
            row["question_id"],
            row["turn"],
            row["category"],
            row["coverage"],
            row["longest_run"],
            highlighted(row["snippet"], row["snippet_begin"], row["snippet_end"]),
        )
        for row in rows
    ]
    return Table(head, cells)


def _prompt_section(prompts: pa.Table) -> Section:
    hidden = prompts.filter(pc.invert(equals(prompts.column("status"), "auditable")))
    shown = hidden.slice(0, MAX_PAIRS).to_pylist()
    rows = [
        (p["config"], p["question_id"], p["turn"], _STATUS[p["status"]], p["num_tokens"], quoted(p["excerpt"]))
        for p in shown
    ]
    note = f"{len(hidden):,} prompts. They were not looked for, and are not counted as clean."
    if len(hidden) > MAX_PAIRS:
        note += f" The first {MAX_PAIRS} are shown; prompts.parquet has all."
    table = Table(("config", "question", "turn", "reason", "tokens", "text"), rows)
    return Section("Prompts that cannot be audited", (note,), (table,) if rows else ())


def _row_section(summary: dict[str, Any]) -> Section:
    corpus = summary["corpus"]
    rows = [
        (entry["file"], reason, count, first, fate)
        for entry in corpus["by_file"]
        for what, fate in (("skipped", "not scanned"), ("repaired", "scanned with replacement characters"))
        for reason, (count, first) in entry[what].items()
    ]
    tables = [Table(("file", "reason", "rows", "first row", "fate"), rows)] if rows else []
    passed = [(entry["file"], entry["reason"]) for entry in corpus["passed_over"]]
    if passed:
        tables.append(Table(("file passed over", "reason"), passed))
    note = "Every row that held no document, and every file that was not read." if tables else "None."
    return Section("Skipped, empty and broken rows", (note,), tables)


def _settings_rows(settings: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, ", ".join(v) if isinstance(v, list) else str(v)) for name, v in sorted(settings.items())]
