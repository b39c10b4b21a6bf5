"""Server counters before and after a run: differences, summed over ranks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from bench.acceptance import ratio

Series: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""Name of a sample and its sorted labels: one series of one rank."""

Snapshot: TypeAlias = Mapping[Series, float]


@dataclass(frozen=True, slots=True)
class CounterNames:
    """What an engine calls its counters on the metrics page; "" where it has none.

    Attributes
    ----------
    drafts, draft_tokens, accepted
        Verify steps, drafted tokens and matched drafts.
    accepted_at, drafted_at
        The same by position; `position_label` holds the position.
    cache_hits
        Prompt tokens that came from a prefix cache.
    draft_share
        A gauge, not a counter: share of the last iteration that was drafting, in [0, 1].
    """

    drafts: str
    draft_tokens: str
    accepted: str
    accepted_at: str = ""
    drafted_at: str = ""
    position_label: str = "position"
    cache_hits: str = ""
    draft_share: str = ""


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """What the counters of a server grew by. None where a counter is absent; `restarted` names a series that fell.

    `draft_share` is no growth: it is the gauge after the run, mean over ranks.

    The numbers are the engine's own: unclipped, and other traffic would be in them.
    """

    drafts: float | None
    draft_tokens: float | None
    accepted: float | None
    accepted_at: tuple[float, ...] | None = None
    drafted_at: tuple[float, ...] | None = None
    cache_hits: float | None = None
    restarted: str = ""
    draft_share: float | None = None

    def engine_acceptance_length(self) -> float | None:
        """Return ``1 + accepted / drafts``; None where a counter is absent, none was drafted, or one fell."""
        if self.restarted or self.drafts is None or self.accepted is None:
            return None
        per_step = ratio(self.accepted, self.drafts)
        return None if per_step is None else 1.0 + per_step

    def engine_acceptance_rate(self) -> float | None:
        """Return accepted over drafted tokens, unclipped."""
        if self.restarted or self.draft_tokens is None or self.accepted is None:
            return None
        return ratio(self.accepted, self.draft_tokens)


def parse_snapshot(text: str) -> dict[Series, float]:
    """Return the samples of a metrics page by name and labels.

    Raises
    ------
    ValueError
        If the text is not in the Prometheus exposition format.
    """
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): float(sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def difference(before: Snapshot, after: Snapshot, names: CounterNames) -> CounterDelta:
    """Return what grew between two snapshots, summed over every rank.

    A series that was absent before started at 0; one that fell or vanished means that its rank restarted, and
    then no number is given.
    """
    wanted = [names.drafts, names.draft_tokens, names.accepted, names.accepted_at, names.drafted_at, names.cache_hits]
    for series in sorted(before):
        if series[0] in wanted and after.get(series, -1.0) < before[series]:
            return CounterDelta(None, None, None, restarted=_shown(series))
    return CounterDelta(
        _grown(before, after, names.drafts),
        _grown(before, after, names.draft_tokens),
        _grown(before, after, names.accepted),
        _grown_at(before, after, names.accepted_at, names.position_label),
        _grown_at(before, after, names.drafted_at, names.position_label),
        _grown(before, after, names.cache_hits),
        draft_share=_mean(after, names.draft_share),
    )


def _shown(series: Series) -> str:
    labels = ",".join(f'{key}="{value}"' for key, value in series[1])
    return f"{series[0]}{{{labels}}}" if labels else series[0]


def _grown(before: Snapshot, after: Snapshot, name: str) -> float | None:
    grown = [value - before.get(series, 0.0) for series, value in after.items() if name and series[0] == name]
    return sum(grown) if grown else None


def _mean(after: Snapshot, name: str) -> float | None:
    told = [value for series, value in after.items() if name and series[0] == name]
    return sum(told) / len(told) if told else None


def _grown_at(before: Snapshot, after: Snapshot, name: str, label: str) -> tuple[float, ...] | None:
    sums = dict[int, float]()
    for series, value in after.items():
        position = dict(series[1]).get(label)
        if name and series[0] == name and position is not None:
            sums[int(position)] = sums.get(int(position), 0.0) + value - before.get(series, 0.0)
    return tuple(sums.get(i, 0.0) for i in range(max(sums) + 1)) if sums else None
