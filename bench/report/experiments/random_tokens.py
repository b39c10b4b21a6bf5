"""Real prompts against random tokens: speed, acceptance, how the noise was answered, and the experts it reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from bench.experiments.experts import LayerCoverage, expert_coverage
from bench.experiments.tasks import one_task
from bench.noise import ANSWERS
from bench.report.charts import Caption, Line, Point, line_chart
from bench.report.experiments.parts import TASK_HEAD, TASK_WORDS, grouped, of_experiment, server_of, shown, task_cells
from bench.report.results import Results, Run, Sweep, all_marks, derived
from bench.report.words import folded, in_rows, small_print
from cards.page import Section, Table, clipped, quoted, render_table

EXPERTS = "experts.json"
_HEAD = ("server", "prompts", *TASK_HEAD[1:], "output_tps, tokens/s", "random over real")
_KIND_HEAD = ("server", "prompts", "answers that are", "number", "share", "acceptance_length, tokens/step", "shown by")
_EXPERT_HEAD = (
    "server",
    "prompts",
    "layer",
    "experts",
    "routed tokens",
    "used",
    "effective experts",
    "busiest over mean",
)
_WORDS = (
    (
        "Random prompts: consecutive ids from a random place of the vocabulary, decoded and encoded anew, as long"
        " as the real ones. Random over real: output_tps of the two, less 1; above 0, random tokens flatter the "
        "server."
    ),
    (
        "Trivial: a greeting, a question back or 'I do not understand', by phrases in sixteen languages. Topic "
        "latching: a term of the noise is mentioned often, densely and in most parts of a long answer; it is "
        "asked of random prompts only. Both are rules, tested on outputs labelled by hand; docs/experiments.md "
        "says how often they are right."
    ),
    TASK_WORDS,
)
_EXPERT_WORDS = (
    "Used: share of a layer's experts that some token of the run was routed to. Effective: exp of the entropy of "
    "the load. Of a server that answered both kinds of prompts, growth of its counts over each run, its "
    "probe and warm-up included."
)


def random_tokens(results: Results) -> Section | None:
    """Return real prompts against random ones."""
    return of_experiment(results, "random_tokens", "Real prompts against random tokens", _section)


def _section(sweep: Sweep, _: Results) -> Section | None:
    runs = shown(sweep)
    if not runs:
        return None
    kinds = [cells for run in runs for cells in _kinds(run)]
    coverage = {run: found for run in runs if (found := _coverage(run))}
    pieces = [render_table(Table(_HEAD, _speeds(runs)))]
    if kinds:
        pieces.append(render_table(Table(_KIND_HEAD, kinds, "How the prompts were answered.")))
        pieces.append(folded("Answers to noise, as they were judged", render_table(_examples(runs))))
    if coverage:
        rows = [[*_names(run), *_layer(layer)] for run, layers in coverage.items() for layer in layers]
        pieces += [
            in_rows([_chart(coverage)]),
            folded("Experts of each layer", render_table(Table(_EXPERT_HEAD, rows))),
        ]
    return Section("", pieces=[*pieces, small_print((*_WORDS, *([_EXPERT_WORDS] if coverage else [])))])


def _names(run: Run) -> list[Any]:
    return [clipped(server_of(run), 60), "random" if _synthetic(run) else "real"]


def _synthetic(run: Run) -> bool:
    return bool(run.summary["synthetic_prompts"])


def _speeds(runs: Sequence[Run]) -> list[list[Any]]:
    rows = list[list[Any]]()
    for same in grouped(runs, lambda run: (server_of(run), run.place["config"], run.place["concurrency"])).values():
        real = [_output_tps(run) for run in same if not _synthetic(run)]
        for run in same:
            tps = _output_tps(run)
            over = tps / real[0] - 1.0 if _synthetic(run) and tps and real and real[0] else None
            cells = task_cells(one_task("", run.requests))[1:]
            rows.append([*_names(run), *cells, tps, None if over is None else f"{over:+.0%}"])
    return rows


def _output_tps(run: Run) -> float | None:
    value: float | None = run.summary["run"]["output_tps"]["value"]
    return value


def _kinds(run: Run) -> list[list[Any]]:
    answers = derived(run, ANSWERS)
    if answers is None:
        return []
    total = len(answers["answers"]) or 1
    return [
        [
            *_names(run),
            row["kind"].replace("_", " "),
            row["answers"],
            f"{row['answers'] / total:.0%}",
            row["acceptance_length"],
            clipped("; ".join(row["evidence"]), 120),
        ]
        for row in answers["kinds"]
        if answers["synthetic"] or row["kind"] != "topic_latching"
    ]


def _examples(runs: Sequence[Run]) -> Table:
    rows = []
    for run in runs:
        answers = derived(run, ANSWERS)
        if answers is not None and answers["synthetic"]:
            rows += [
                [
                    clipped(server_of(run), 60),
                    row["kind"].replace("_", " "),
                    clipped(row["evidence"], 60),
                    quoted(row["text"]),
                ]
                for row in answers["answers"][:8]
            ]
    return Table(("server", "judged", "shown by", "answer, its beginning"), rows)


def _coverage(run: Run) -> list[LayerCoverage]:
    """Return the experts that the prefills and steps of a run reached; none where nothing was counted."""
    page = derived(run, EXPERTS)
    if not page or not page.get("after"):
        return []
    after, before = _counts(page["after"]), _counts(page.get("before"))
    if after is None:
        return []
    return expert_coverage(after if before is None or before.shape != after.shape else after - before)


def _counts(page: Any) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """Return tokens by layer and expert, of prefills and steps together; None where nothing was routed yet."""
    parts = [page.get(key) for key in ("layers", "prefill_layers")] if page else []
    told = [np.array(part, np.int64) for part in parts if part and all(part)]
    return sum(told[1:], start=told[0]) if told else None


def _layer(layer: LayerCoverage) -> list[Any]:
    used = f"{layer.used:.0%}"
    return [layer.layer, layer.experts, layer.routed, used, layer.effective, layer.busiest]


def _chart(coverage: dict[Run, list[LayerCoverage]]) -> Markup:
    lines = [
        Line(" ".join(_names(run)), [Point(layer.layer, layer.used) for layer in layers])
        for run, layers in list(coverage.items())[:6]
    ]
    caption = Caption(
        "Experts in use by layer",
        "layer",
        "share of the experts",
        "Experts that some token of the run was routed to, over all experts of the layer.",
        all_marks(list(coverage)),
    )
    return line_chart(caption, lines, whole_x=True)
