"""Pruned vocabularies: what lies outside them, and what they would cost."""

from __future__ import annotations

from typing import Any

from bench.experiments.tasks import tasks_of
from bench.pruned import VOCABULARY
from bench.report.charts import Caption, Estimate, interval_chart
from bench.report.experiments.parts import TASK_WORDS, told
from bench.report.results import Results, Run, all_marks, derived
from bench.report.words import folded, in_rows, small_print, with_interval
from cards.page import Section, Table, clipped, render_table

_HEAD = (
    "category",
    "top K",
    "output tokens",
    "outside",
    "acceptance_length, tokens/step",
    "with the pruned vocabulary",
    "lost at most",
    "requests whose steps are untold",
    "e2e_tps, tokens/s",
)
_WORDS = (
    (
        "Outside: share of the output tokens that are not among the K most frequent of the training text, pooled,"
        " with the interval over conversations."
    ),
    (
        "With the pruned vocabulary: a what-if. Each accepted draft outside the top K is taken as rejected; the "
        "target then gives that token itself and the step ends there, which makes one step more: delivered / "
        "(steps + such drafts). What is lost is an upper bound: a drafter trained with the pruned vocabulary, or "
        "a step that drafts on past where the old one ended, loses less. acceptance_length here is pooled over "
        "steps."
    ),
    TASK_WORDS,
)


def vocabulary(results: Results) -> Section | None:
    """Return the tables of every run over which `bench vocabulary` or its experiment was run."""
    runs = {run: table for run in results.shown if (table := derived(run, VOCABULARY)) is not None and table["rows"]}
    if not runs:
        return None
    pieces = [in_rows([_chart(run, table) for run, table in runs.items()])]
    pieces += [
        folded(f"{clipped(run.title, 80)}: by category", render_table(_table(run, t))) for run, t in runs.items()
    ]
    sources = [
        f"{run.name}: {table['known']:,} of the vocabulary's tokens occur in {clipped(table['source'], 60)} "
        f"({table['tokens']:,} tokens)."
        for run, table in runs.items()
    ]
    words = small_print((*_WORDS, *dict.fromkeys(sources)))
    return Section("Pruned vocabulary", pieces=[*pieces, words], marks=all_marks(runs))


def _table(run: Run, table: dict[str, Any]) -> Table:
    speeds = {task.task: told(task.e2e_tps) for task in tasks_of(run.requests)}
    rows = [
        [
            clipped(row["category"], 60),
            row["top_k"],
            row["tokens"],
            with_interval(row["outside"]["value"], row["outside"]),
            row["acceptance_length"],
            row["pruned_length"],
            None if row["cost"] is None else f"{row['cost']:.1%}",
            row["untold"],
            speeds.get(row["category"]),
        ]
        for row in table["rows"]
    ]
    return Table(_HEAD, rows)


def _chart(run: Run, table: dict[str, Any]) -> Any:
    names = list(dict.fromkeys(row["category"] for row in table["rows"]))
    sizes = list(dict.fromkeys(row["top_k"] for row in table["rows"]))[:6]
    found = {(row["category"], row["top_k"]): row["outside"] for row in table["rows"]}
    series = {
        f"K = {size:,}": [
            Estimate(cell["value"], cell["low"], cell["high"]) if (cell := found.get((name, size))) else None
            for name in names
        ]
        for size in sizes
    }
    caption = Caption(
        f"Output outside the top K: {clipped(run.name, 40)}",
        "share of output tokens",
        "",
        "Pooled over the tokens of a category, with its 95 % interval over conversations.",
        run.marks,
    )
    return interval_chart(caption, names, series)
