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
    "output, tokens/s",
    "of",
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
    "The points of each input length, tier and temperature that no other beats in both user_tps (median over requests) "
    "and output_tps (of the server, or output_tps_per_gpu where its GPUs are known), the baseline among those of each "
    "kind of verification. e2e_tps: mean over conversations of tokens over time from sent to last content. The charts "
    "stand under Throughput against latency."
)


def pareto(results: Results) -> Section | None:
    """Return the Pareto front of each input length and tier."""
    return of_experiment(results, "pareto", "Pareto front by input length and tier", _section)


def _section(sweep: Sweep, _: Results) -> Section | None:
    runs = [run for run in shown(sweep) if all(_spot(run))]
    rows = list[list[Any]]()
    for (config, tier, *_axes), own in grouped(runs, _axes_of).items():
        kinds = grouped(own, kind_of)
        plain = kinds.pop("none", [])
        fronts = {kind: [*plain, *drafting] for kind, drafting in kinds.items()} or {"none": plain}
        rows += [[config, tier, *_row(run, kind)] for kind, beside in fronts.items() for run in _front(beside)]
    if not rows:
        return None
    return Section("", pieces=[render_table(Table(_HEAD, rows)), small_print((_WORDS,))])


def _spot(run: Run) -> tuple[float | None, float | None]:
    figure = "output_tps_per_gpu" if _by_gpu(run) else "output_tps"
    return run.summary["overall"]["figures"]["user_tps"]["p50"], run.summary["run"][figure]["value"]


def _front(runs: Sequence[Run]) -> list[Run]:
    best = non_dominated([(x or 0.0, y or 0.0) for x, y in map(_spot, runs)])
    return sorted(
        (run for run, is_best in zip(runs, best, strict=True) if is_best), key=lambda run: _spot(run)[0] or 0.0
    )


def _axes_of(run: Run) -> tuple[str, str, float, bool]:
    """Return what the points of one front share: rows, tier, temperature, and what their throughput is of."""
    temperature = run.config["sampling"]["temperature"]
    return run.place["config"], run.place.get("data") or "all", temperature, _by_gpu(run)


def _by_gpu(run: Run) -> bool:
    return run.summary["run"]["output_tps_per_gpu"]["value"] is not None


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
        "a GPU" if _by_gpu(run) else "the server",
        length,
        sum(speeds) / len(speeds) if speeds else None,
    ]
