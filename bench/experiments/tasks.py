"""What every per-task table shows: acceptance length and end-to-end speed of each task. Pure.

A task is a category, or the value of another slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.figures.acceptance import AcceptanceLength
from bench.figures.base import conversation_values, over_repeats
from bench.figures.latency import EndToEndLatency
from bench.measured import Measured, by_conversation, is_complete
from bench.slices import sliced
from bench.statistics import Interval, mean_interval


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a run.

    Attributes
    ----------
    conversations, incomplete
        Conversations, and those of them that lack a turn: these have no speed.
    acceptance_length
        Mean over conversations, tokens/step; None where nothing was verified.
    e2e_tps
        Mean over conversations of `end_to_end_tps`, tokens/s; None where no conversation is complete.
    """

    task: str
    conversations: int
    incomplete: int
    acceptance_length: Interval | None
    e2e_tps: Interval | None


def tasks_of(requests: Sequence[Measured], by: str = "category") -> list[Task]:
    """Return the tasks of a run in sorted order."""
    return [one_task(name, group) for name, group in sliced(requests, by).items()]


def one_task(name: str, requests: Sequence[Measured]) -> Task:
    """Return requests as one task."""
    conversations = by_conversation(requests)
    speeds = end_to_end_tps(requests)
    lengths = conversation_values(AcceptanceLength(), requests)
    incomplete = sum(not is_complete(turns) for turns in conversations.values())
    return Task(name, len(conversations), incomplete, _interval(lengths), _interval(speeds))


def end_to_end_tps(requests: Sequence[Measured]) -> dict[tuple[str, int], float]:
    """Return, by conversation, output tokens of its turns over the time from each sent to its last content.

    The prefill is in the time. A conversation that lacks a turn, or whose tokens are untold, is left out.
    """
    speeds = dict[tuple[str, int], float]()
    for key, turns in by_conversation(requests).items():
        seconds = sum(s for turn in turns for s in EndToEndLatency().samples(turn))
        tokens = [turn.answer.num_tokens for turn in turns]
        if is_complete(turns) and None not in tokens and seconds > 0:
            speeds[key] = sum(count or 0 for count in tokens) / seconds
    return speeds


def _interval(values: Mapping[tuple[str, int], float]) -> Interval | None:
    return mean_interval(over_repeats(values)) if values else None
