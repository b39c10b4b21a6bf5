"""The simulator's metrics page, under the names of each engine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.counters import CounterNames
from bench.engines.registry import ENGINES
from bench.simulator.process import SimulatedAnswer


@dataclass(slots=True)
class Totals:
    """What one rank counted, past the end of text too."""

    drafts: int = 0
    draft_tokens: int = 0
    accepted: int = 0
    accepted_at: list[int] = field(default_factory=list)
    cache_hits: int = 0

    def add(self, answer: SimulatedAnswer, cached: int) -> None:
        """Count one finished answer."""
        steps = answer.verify_steps
        self.drafts += len(steps)
        self.draft_tokens += sum(step.drafted or 0 for step in steps)
        self.accepted += sum(step.matched for step in steps)
        self.cache_hits += cached
        for step in steps:
            self.accepted_at += [0] * (step.matched - len(self.accepted_at))
            for position in range(step.matched):
                self.accepted_at[position] += 1


def metrics_page(dialect: str, ranks: Sequence[Totals], draft_length: int, draft_share: float = 0.0) -> str:
    """Return the page in the Prometheus exposition format; empty for an engine without counters.

    Parameters
    ----------
    draft_share
        Share of an iteration that is drafting, for an engine that has a gauge of it.
    """
    engine = ENGINES.get(dialect)
    if engine is None or engine.counters is None or not draft_length:
        return "# nothing is counted\n"
    names, lines = engine.counters, list[str]()
    for rank, totals in enumerate(ranks):
        lines += _lines(names, f'engine="{rank}"', totals)
        if names.draft_share:
            lines.append(f'{names.draft_share}{{engine="{rank}"}} {draft_share}')
    return "\n".join(lines) + "\n"


def _lines(names: CounterNames, label: str, totals: Totals) -> list[str]:
    plain = [
        (names.drafts, totals.drafts),
        (names.draft_tokens, totals.draft_tokens),
        (names.accepted, totals.accepted),
        (names.cache_hits, totals.cache_hits),
    ]
    lines = [f"{name}{{{label}}} {value}" for name, value in plain if name]
    if names.accepted_at:
        lines += [
            f'{names.accepted_at}{{{label},{names.position_label}="{position}"}} {value}'
            for position, value in enumerate(totals.accepted_at)
        ]
    return lines
