"""Predicted speed-ups: acceptance from one qualitative run, step latencies from one sweep.

Speculation with k drafts is faster by ``t_ar * AL_k / t_sd(k)``: one step of ``t_sd(k)`` delivers ``AL_k`` tokens, for
which decoding one by one needs ``AL_k`` steps of ``t_ar``. ``AL_k = 1 + sum_{i<=k} prod_{j<=i} AR_j`` follows from the
rates of a run with at least k drafts, if the drafter proposes the same first k tokens whatever its draft length is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.comparison.compare import refuse_unpublished
from bench.errors import BenchError
from bench.figures.base import all_samples
from bench.figures.latency import StepLatency, TimePerOutputToken
from bench.finished import read_measured, read_side
from bench.measured import Measured
from bench.results import RunFolder
from bench.slices import sliced
from bench.statistics import LEVEL, RESAMPLES, resampled_weights
from bench.sweeps.rows import read_sweep

Floats = NDArray[np.float64]

PREDICTION_COLUMNS = (
    "category",
    "config",
    "concurrency",
    "draft_length",
    "acceptance_length",
    "speed_up",
    "low",
    "high",
    "best",
    "measured",
    "error",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a sweep: its place, and the latency of each step, s."""

    config: str
    concurrency: int
    draft_length: int
    step_latencies_s: Floats


def survival_matrix(requests: Sequence[Measured], k: int) -> Floats:
    """Return steps that kept at least i drafts by conversation, shape ``(n, k + 1)``; column 0 holds all steps.

    Conversations whose acceptance is untold, or told without a histogram, are left out.
    """
    sums = dict[str, Floats]()
    for request in requests:
        survival = request.acceptance.survival() if request.acceptance else None
        if survival is not None:
            kept = sums.setdefault(request.trace.conversation_id, np.zeros(k + 1))
            count = min(len(survival), k + 1)
            kept[:count] += survival[:count]
    rows = [sums[name] for name in sorted(sums) if sums[name][0]]
    return np.array(rows, np.float64).reshape(-1, k + 1)


def lengths_by_draft(survival: Floats) -> Floats:
    """Return ``AL_k`` for k = 0..K of survival counts, shape ``(..., K + 1)``: partial sums of ``S_i / S_0``."""
    lengths: Floats = np.cumsum(survival / survival[..., :1], axis=-1)
    return lengths


def predict_cells(categories: Mapping[str, Floats], cells: Sequence[Cell], *, seed: int = 0) -> list[dict[str, Any]]:
    """Return a row for each category and speculative cell; `best` marks the draft length with the highest speed-up.

    Parameters
    ----------
    categories
        Survival counts of the conversations of each category, as `survival_matrix` returns them.
    cells
        Points of a sweep; those with draft length 0 are the baselines.
    """
    rng = np.random.default_rng(seed)
    baselines = {(c.config, c.concurrency): c for c in cells if c.draft_length == 0}
    rows = []
    for name in sorted(categories):
        survival = categories[name]
        weights = resampled_weights(len(survival), rng)
        point, drawn = lengths_by_draft(survival.sum(axis=0)), lengths_by_draft(weights @ survival)
        for cell in cells:
            baseline = baselines.get((cell.config, cell.concurrency))
            if cell.draft_length and baseline is not None and cell.draft_length < len(point):
                rows.append({"category": name} | _row(cell, baseline, point, drawn, rng))
    _mark_best(rows)
    return rows


def _row(cell: Cell, baseline: Cell, point: Floats, drawn: Floats, rng: np.random.Generator) -> dict[str, Any]:
    k = cell.draft_length
    t_ar, t_sd = float(baseline.step_latencies_s.mean()), float(cell.step_latencies_s.mean())
    ratios = _drawn_mean(baseline.step_latencies_s, rng) / _drawn_mean(cell.step_latencies_s, rng)
    low, high = np.percentile(ratios * drawn[:, k], [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return {
        "config": cell.config,
        "concurrency": cell.concurrency,
        "draft_length": k,
        "acceptance_length": float(point[k]),
        "speed_up": t_ar * float(point[k]) / t_sd,
        "low": float(low),
        "high": float(high),
    }


def _drawn_mean(values: Floats, rng: np.random.Generator) -> Floats:
    """Return means as they would vary from sweep to sweep, by their standard error; steps are many and short."""
    spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    drawn: Floats = rng.normal(values.mean(), spread, RESAMPLES)
    return drawn


def _mark_best(rows: list[dict[str, Any]]) -> None:
    best = dict[tuple[Any, ...], float]()
    for row in rows:
        key = (row["category"], row["config"], row["concurrency"])
        best[key] = max(best.get(key, 0.0), row["speed_up"])
    for row in rows:
        row["best"] = row["speed_up"] == best[row["category"], row["config"], row["concurrency"]]


def predict_from(qualitative: Path, sweep: Path, *, allow: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the predictions of a finished run and a finished sweep, beside what the sweep measured.

    Parameters
    ----------
    allow
        Gates that may be shut.

    Raises
    ------
    BenchError
        If the run tells no histogram, the sweep has no baseline without speculation, or two points in one cell.
    UnpublishedFigure
        If a gate holds the run or a point back.
    """
    side = read_side(qualitative)
    refuse_unpublished(side.name, [gate["name"] for gate in side.summary["gates"]], allow)
    categories = _survival_by_category(side.requests)
    if not categories:
        raise BenchError(f"{qualitative}: tells no acceptance by position")
    rows = read_sweep(sweep)
    for row in rows:
        refuse_unpublished(row["path"], row["gates"], allow)
    _refuse_two_in_a_cell(sweep, rows)
    points = [(row, read_measured(RunFolder(Path(row["path"])))[1]) for row in rows]
    cells = [_cell(row, measured) for row, measured in points]
    if not any(cell.draft_length == 0 for cell in cells):
        raise BenchError(f"{sweep}: no point without speculation (draft_length = 0) to predict from")
    predicted = predict_cells(categories, [cell for cell in cells if len(cell.step_latencies_s)])
    _set_measured(predicted, points)
    return predicted


def _refuse_two_in_a_cell(sweep: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    seen = dict[tuple[str, int, int], str]()
    for row in rows:
        first = seen.setdefault((row["config"], row["concurrency"], row["draft_length"] or 0), row["point"])
        if first != row["point"]:
            raise BenchError(
                f"{sweep}: {first} and {row['point']} have one config, concurrency and draft length; "
                "predict from a sweep with one point of each: one method, temperature and start, no variants of data"
            )


def _survival_by_category(requests: Sequence[Measured]) -> dict[str, Floats]:
    depths = [len(m.acceptance.histogram) - 1 for m in requests if m.acceptance and m.acceptance.histogram]
    groups = {
        name: survival_matrix(group, max(depths, default=0)) for name, group in sliced(requests, "category").items()
    }
    return {name: survival for name, survival in groups.items() if len(survival)}


def _cell(row: Mapping[str, Any], measured: Sequence[Measured]) -> Cell:
    return Cell(row["config"], row["concurrency"], row["draft_length"] or 0, all_samples(StepLatency(), measured))


def _set_measured(rows: list[dict[str, Any]], points: Sequence[tuple[dict[str, Any], list[Measured]]]) -> None:
    """Put the measured speed-up of each cell whose sweep held the category, and the error of the prediction.

    It is the baseline's time a token over the cell's, means over requests, as in `bench compare`.
    """
    seconds = dict[tuple[str, int, int, str], float]()
    for point, measured in points:
        samples = dict[str, list[float]]()
        for m in measured:
            samples.setdefault(m.trace.slices.get("category", ""), []).extend(TimePerOutputToken().samples(m))
        for category, values in samples.items():
            if values:
                key = (point["config"], point["concurrency"], point["draft_length"] or 0, category)
                seconds[key] = float(np.mean(values))
    for row in rows:
        cell = (row["config"], row["concurrency"])
        plain, own = (seconds.get((*cell, k, row["category"])) for k in (0, row["draft_length"]))
        row["measured"] = plain / own if plain and own else None
        row["error"] = row["speed_up"] / row["measured"] - 1.0 if row["measured"] else None
