"""From the requests of a run to its tables. Pure: JSON values out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import acceptance
from bench.acceptance import Source
from bench.figures.base import (
    Context,
    RatioFigure,
    SampleFigure,
    all_samples,
    conversation_ratios,
    conversation_values,
    headline,
    over_repeats,
    percentile,
    pooled,
    request_mean,
)
from bench.figures.registry import RATIO_FIGURES, RUN_FIGURES, SAMPLE_FIGURES
from bench.measured import Measured, by_conversation, is_complete
from bench.slices import SLICES, sliced
from bench.statistics import headline_interval, mean_interval, ratio_interval, runs_interval
from bench.window import steady_state

PERCENTS = (50, 90, 99)
_RANK: tuple[Source, ...] = ("per_step", "totals", "chunks")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the acceptance of a run comes from, and for what share of its requests."""

    source: Source | None
    coverage: float | None
    without: int


def choose_evidence(requests: Sequence[Measured], min_coverage: float) -> tuple[list[Measured], Evidence]:
    """Return the requests with acceptance of one kind of evidence only, and which kind.

    The kind is the one that most requests have, the better one at a tie. A request with another counts as one without,
    and where too few are left, none keeps its acceptance: a figure over a chosen few is not the run's.
    """
    asked = [m for m in requests if m.ok and (m.answer.num_tokens or 0) > 1]
    counts = Counter(m.acceptance.source for m in asked if m.acceptance is not None)
    if not counts:
        return list(requests), Evidence(None, None, len(asked))
    source = max(_RANK, key=lambda kind: (counts[kind], -_RANK.index(kind)))
    coverage = counts[source] / len(asked)
    keep = coverage >= min_coverage

    def kept(m: Measured) -> Measured:
        same = m.acceptance is not None and m.acceptance.source == source
        return m if same and keep else replace(m, acceptance=None)

    return [kept(m) for m in requests], Evidence(source, coverage, len(asked) - counts[source])


def summarise(requests: Sequence[Measured], context: Context, concurrency: int | None) -> Json:
    """Return the tables of a run: overall, and by every slice that tells anything.

    Parameters
    ----------
    concurrency
        Streams that a closed loop kept open, for the steady state; None in an open loop.
    """
    runs = [list(group) for group in _by_repeat(requests).values()]
    return {
        "counts": counts(requests),
        "overall": group_table(requests) | {"headline": _headlines(requests)},
        "run": _run_table(runs, context, concurrency),
        "by": {by: tables for by in SLICES if (tables := _slice_tables(requests, by))},
    }


def counts(requests: Sequence[Measured]) -> Json:
    """Return how many conversations and requests there are, how they ended, and their tokens."""
    conversations = list(by_conversation(requests).values())
    ok = [m for m in requests if m.ok]
    errors = Counter(m.answer.error for m in requests if not m.ok)
    return {
        "conversations": len(conversations),
        "complete": sum(is_complete(turns) for turns in conversations),
        "requests": len(requests),
        "succeeded": len(ok),
        "failed": len(requests) - len(ok),
        "errors": dict(sorted(errors.items())),
        "input_tokens": _total([m.answer.usage.prompt_tokens for m in ok]),
        "input_tokens_by_client": _total([m.trace.prompt_tokens for m in ok]),
        "output_tokens": _total([m.answer.num_tokens for m in ok]),
        "mean_output_tokens": float(np.mean([m.answer.num_tokens or 0 for m in ok])) if ok else None,
    }


def _total(values: Sequence[int | None]) -> int | None:
    told = [value for value in values if value is not None]
    return sum(told) if told and len(told) == len(values) else None


def group_table(requests: Sequence[Measured]) -> Json:
    """Return every figure of a group of requests that is not one of a whole run."""
    ratios = {figure.name: _ratio_row(figure, requests) for figure in RATIO_FIGURES}
    samples = {figure.name: _sample_row(figure, requests) for figure in SAMPLE_FIGURES}
    return {"counts": counts(requests), "figures": ratios | samples, "positions": _positions(requests)}


def _ratio_row(figure: RatioFigure, requests: Sequence[Measured]) -> Json:
    sums = _sums_over_repeats(conversation_ratios(figure, requests))
    values = over_repeats(conversation_values(figure, requests))
    return {
        "pooled": pooled(figure, requests),
        "pooled_interval": asdict(ratio_interval(sums[:, 0], sums[:, 1])) if len(values) else None,
        "request_mean": request_mean(figure, requests),
        "request_mean_interval": asdict(mean_interval(values)) if len(values) else None,
        "n": len(values),
    }


def _sums_over_repeats(sums: Mapping[tuple[str, int], tuple[float, float]]) -> NDArray[np.float64]:
    """Return numerator and denominator of each conversation, its repeats together, shape ``(n, 2)``."""
    totals = dict[str, NDArray[np.float64]]()
    for (conversation_id, _), terms in sums.items():
        totals[conversation_id] = totals.get(conversation_id, np.zeros(2)) + terms
    return np.array([totals[name] for name in sorted(totals)], np.float64).reshape(-1, 2)


def _sample_row(figure: SampleFigure, requests: Sequence[Measured]) -> Json:
    values = all_samples(figure, requests)
    row: Json = {"mean": float(values.mean()) if len(values) else None, "n": len(values)}
    for percent in PERCENTS:
        known = percentile(values, percent)
        row[f"p{percent}"] = "n too small" if known is None and len(values) else known
    return row


def _positions(requests: Sequence[Measured]) -> Json | None:
    form = acceptance.pooled(m.acceptance for m in requests if m.acceptance is not None)
    if form is None:
        return None
    return {
        "histogram": _listed(form.histogram),
        "survival": _listed(form.survival()),
        "acceptance_rates": _listed(form.acceptance_rates()),
        "drafted_acceptance_rates": _listed(form.drafted_acceptance_rates()),
        "steps": form.steps,
        "delivered": form.delivered,
        "plain_steps": form.plain_steps,
        "drafted": form.drafted,
        "nodes": form.nodes,
    }


def _listed(values: Sequence[float | None] | None) -> list[float | None] | None:
    return None if values is None else list(values)


def _headlines(requests: Sequence[Measured]) -> Json:
    """Return the mean over categories of the mean over conversations of each ratio, with its interval."""
    rows = Json()
    for figure in RATIO_FIGURES:
        value = headline(figure, requests)
        groups = {
            name: over_repeats(conversation_values(figure, group))
            for name, group in sliced(requests, "category").items()
        }
        told = {name: values for name, values in groups.items() if len(values)}
        rows[figure.name] = {"value": value, "interval": asdict(headline_interval(told)) if told else None}
    return rows


def _by_repeat(requests: Sequence[Measured]) -> dict[int, list[Measured]]:
    groups = dict[int, list[Measured]]()
    for request in requests:
        groups.setdefault(request.trace.repeat, []).append(request)
    return dict(sorted(groups.items()))


def _run_table(runs: Sequence[Sequence[Measured]], context: Context, concurrency: int | None) -> Json:
    """Return the figures of a whole run, their mean over repeats, and those of the steady state."""
    table = Json()
    for figure in RUN_FIGURES:
        values = [figure.value(run, context) for run in runs]
        told = [value for value in values if value is not None]
        interval = asdict(runs_interval(told)) if len(told) == len(values) and told else None
        table[figure.name] = {"value": interval["value"] if interval else None, "runs": values, "interval": interval}
    if concurrency is not None:
        table["steady_state"] = [_steady_row(run, context, concurrency) for run in runs]
    return table


def _steady_row(run: Sequence[Measured], context: Context, concurrency: int) -> Json | None:
    window = steady_state(run, concurrency)
    if window is None:
        return None
    row: Json = {"duration_s": window.duration_s, "share": window.share, "refused": window.refused, "output_tps": None}
    if not window.refused:
        steady = replace(context, window=window)
        row["output_tps"] = next(f for f in RUN_FIGURES if f.name == "output_tps").value(run, steady)
    return row


def _slice_tables(requests: Sequence[Measured], by: str) -> Mapping[str, Json]:
    groups = sliced(requests, by)
    if set(groups) <= {""}:
        return {}
    return {value or "(none)": group_table(group) for value, group in groups.items()}
