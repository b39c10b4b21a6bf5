"""Spec-Bench's figures of its six tasks, as Spec-Bench defines them. Pure.

References
----------
Xia et al. (2024), "Unlocking Efficiency in Large Language Model Inference: A Comprehensive Survey of Speculative
Decoding", and `evaluation/speed.py` of hemingkx/Spec-Bench at 132ba4c.

Notes
-----
Its definitions, and what is theirs alone:

* tokens per second of a question: new tokens of all turns over wall time of all turns, prefill included; of a task,
  the plain mean over its questions. Ours over HTTP runs from the request sent to the last content.
* speed-up: ratio of those two means. Spec-Bench counts the baseline's tokens by encoding its text anew, less one a
  turn; here both sides are counted by the ids that were delivered.
* mean accepted tokens: mean over all steps of all questions, pooled over repeats, of the tokens that a step added, its
  own one included; a step that drafted nothing counts with one. So it is `tokens_per_step`, pooled, not
  `acceptance_length`. Its methods that have no prefill of their own (SpS, PLD) draft in the first forward too.
* over several runs: mean, and standard deviation with n - 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.experiments.tasks import end_to_end_tps
from bench.figures.acceptance import AcceptanceLength, TokensPerStep
from bench.figures.base import pooled
from bench.measured import Measured

MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
TASKS = ("mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag")
OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean over runs and its standard deviation; None for one run."""

    value: float
    std: float | None


@dataclass(frozen=True, slots=True)
class SpecBenchRow:
    """One task by Spec-Bench's definitions, our acceptance length beside it.

    Attributes
    ----------
    questions
        Of one run.
    mean_accepted_tokens
        Tokens/step; None where the steps are untold.
    tokens_per_second, baseline_tokens_per_second, speed_up
        Over runs; None where a side has no complete question. Run i is held against run i.
    acceptance_length
        Ours: pooled over verify steps only.
    """

    task: str
    questions: int
    mean_accepted_tokens: float | None
    tokens_per_second: Mean | None
    baseline_tokens_per_second: Mean | None
    speed_up: Mean | None
    acceptance_length: float | None


def task_of(category: str) -> str:
    """Return the task of one of Spec-Bench's categories: MT-Bench's eight are one."""
    return "mt_bench" if category in MT_BENCH else category


def spec_bench_rows(speculative: Sequence[Measured], baseline: Sequence[Measured]) -> list[SpecBenchRow]:
    """Return the six tasks in Spec-Bench's order, as far as the run has them, then further ones, then the whole."""
    groups = _by_task(speculative)
    known = [task for task in TASKS if task in groups]
    names = [*known, *(task for task in groups if task not in TASKS)]
    plain = _by_task(baseline)
    rows = [_row(name, groups[name], plain.get(name, [])) for name in names]
    return [*rows, _row(OVERALL, speculative, baseline)] if rows else []


def _by_task(requests: Sequence[Measured]) -> dict[str, list[Measured]]:
    groups = dict[str, list[Measured]]()
    for request in requests:
        groups.setdefault(task_of(request.trace.slices.get("category", "")), []).append(request)
    return dict(sorted(groups.items()))


def _row(name: str, speculative: Sequence[Measured], baseline: Sequence[Measured]) -> SpecBenchRow:
    own, plain = _speeds(speculative), _speeds(baseline)
    both = sorted(own.keys() & plain.keys())
    steps = pooled(TokensPerStep(), speculative)
    length = pooled(AcceptanceLength(), speculative)
    return SpecBenchRow(
        name,
        len({m.trace.conversation_id for m in speculative}),
        length if steps is None else steps,
        _mean([own[repeat] for repeat in sorted(own)]),
        _mean([plain[repeat] for repeat in sorted(plain)]),
        _mean([own[repeat] / plain[repeat] for repeat in both]),
        length,
    )


def _speeds(requests: Sequence[Measured]) -> Mapping[int, float]:
    """Return, by repeat, the mean over questions of their tokens a second."""
    runs = dict[int, list[float]]()
    for (_, repeat), speed in end_to_end_tps(requests).items():
        runs.setdefault(repeat, []).append(speed)
    return {repeat: float(np.mean(speeds)) for repeat, speeds in runs.items()}


def _mean(values: Sequence[float]) -> Mean | None:
    if not values:
        return None
    return Mean(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)
