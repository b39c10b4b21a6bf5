"""Throughput against latency by input length and tier: the points that nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.experiments.tasks import end_to_end_tps
from bench.report.experiments.parts import grouped, of_experiment, server_of, shown
from bench.report.pareto import non_dominated
from bench.report.results import Results, Run, Sweep
from bench.report.words import Kind, kind_of, small_print
from cards.page import Section, Table, clipped, render_table

_HEAD = (
    "rows",
    "tier",
    "front of",
    "server",
    "streams",
    "user_tps p50, tokens/s",
    "output_tps, tokens/s",
    "acceptance_length, tokens/step",
    "e2e_tps, tokens/s",
)
_FRONTS: dict[Kind, str] = {
    "none": "no drafts",
    "strict_greedy": "strict greedy",
    "sampling": "speculative sampling",
    "token_tree": "token tree",
    "": "verification not stated",
}
_WORDS = (
    "The points of each input length and tier that no other beats in both user_tps (median over requests) and "
    "output_tps (of the run, by GPU where there are any), the baseline among those of each kind of verification. "
    "e2e_tps: mean over conversations of tokens over time from sent to last content. The charts stand under "
    "Throughput against latency."
)


def pareto(results: Results) -> Section | None:
    """Return the Pareto front of each input length and tier."""
    return of_experiment(results, "pareto", "Pareto front by input length and tier", _section)


def _section(sweep: Sweep, _: Results) -> Section | None:
    runs = [run for run in shown(sweep) if None not in _spot(run)]
    rows = list[list[Any]]()
    for (config, tier), own in grouped(runs, lambda run: (run.place["config"], run.place.get("data") or "all")).items():
        kinds = grouped(own, kind_of)
        plain = kinds.pop("none", [])
        fronts = {kind: [*plain, *drafting] for kind, drafting in kinds.items()} or {"none": plain}
        rows += [[config, tier, *_row(run, kind)] for kind, beside in fronts.items() for run in _front(beside)]
    if not rows:
        return None
    return Section("", pieces=[render_table(Table(_HEAD, rows)), small_print((_WORDS,))])


def _spot(run: Run) -> tuple[float | None, float | None]:
    whole = run.summary["run"]
    by_gpu, all_gpus = whole["output_tps_per_gpu"]["value"], whole["output_tps"]["value"]
    return run.summary["overall"]["figures"]["user_tps"]["p50"], by_gpu if by_gpu is not None else all_gpus


def _front(runs: Sequence[Run]) -> list[Run]:
    best = non_dominated([(x or 0.0, y or 0.0) for x, y in map(_spot, runs)])
    return sorted(
        (run for run, is_best in zip(runs, best, strict=True) if is_best), key=lambda run: _spot(run)[0] or 0.0
    )


def _row(run: Run, kind: Kind) -> list[Any]:
    user, output = _spot(run)
    speeds = list(end_to_end_tps(run.requests).values())
    length = run.summary["overall"]["headline"]["acceptance_length"]["value"]
    return [
        _FRONTS[kind],
        clipped(server_of(run), 60),
        run.place["concurrency"],
        user,
        output,
        length,
        sum(speeds) / len(speeds) if speeds else None,
    ]
