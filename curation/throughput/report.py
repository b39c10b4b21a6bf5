"""What a throughput build found: cells, what rows share, and whether the tiers are what their names say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from curation.stages.base import Drop
from curation.throughput.rows import Measures
from sources.disk import atomic

MEASURES = {
    "bits_per_byte": "bits a byte of the continuation, given the prompt",
    "ngram_overlap": "8-grams in the prompt",
}
"""Measures of predictability, and how a plot names them."""

_ORDER = ("low_entropy", "mixed", "high_entropy")  # most predictable first


@dataclass(frozen=True, slots=True)
class CellCount:
    """Rows wanted and found in one cell; `by_source` counts the found ones by published source."""

    config: str
    tier: str
    wanted: int
    found: int
    by_source: dict[str, int]


@dataclass(frozen=True, slots=True)
class SharedText:
    """What the rows of a config have in common.

    `longest_prefix` in tokens; shares of a row's distinct 8-grams that another row has too, in [0, 1], over all rows
    and by `question_id`. None and empty for a config of fewer than two rows.
    """

    config: str
    longest_prefix: int | None
    mean_share: float | None
    median_share: float | None
    max_share: float | None
    share_by_row: dict[str, float]


@dataclass(frozen=True, slots=True)
class TierMeasure:
    """Mean of one measure over the rows of a cell that have it, and how many do; None if none does."""

    config: str
    tier: str
    measure: str
    mean: float | None
    rows: int


@dataclass(frozen=True, slots=True)
class TierOrder:
    """Whether one tier is more predictable than the next by one measure; None where either has no figure."""

    config: str
    measure: str
    more: str
    less: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class ThroughputReport:
    """Everything that a build of the throughput split reports."""

    drops: tuple[Drop, ...]
    cells: tuple[CellCount, ...]
    shared: tuple[SharedText, ...]
    measures: tuple[TierMeasure, ...]

    @property
    def orders(self) -> tuple[TierOrder, ...]:
        """Whether low entropy is more predictable than mixed, and mixed than high, in each config by each measure."""
        means = {(m.config, m.tier, m.measure): m.mean for m in self.measures}
        configs = dict.fromkeys(m.config for m in self.measures)
        return tuple(
            TierOrder(
                config, name, more, less, _holds(name, means.get((config, more, name)), means.get((config, less, name)))
            )
            for config in configs
            for name in MEASURES
            for more, less in pairwise(_ORDER)
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence an order that fails or cannot be judged; empty if all hold."""
        words = {False: "does not come out more predictable than", None: "cannot be compared with"}
        return tuple(
            f"{o.config}: {o.more} {words[o.holds]} {o.less} by {MEASURES[o.measure]}."
            for o in self.orders
            if o.holds is not True
        )

    def as_document(self) -> dict[str, Any]:
        """Return the report as JSON values, drops aside: they are in the ledger."""
        return {
            "cells": [asdict(cell) for cell in self.cells],
            "shared": [asdict(shared) for shared in self.shared],
            "measures": [asdict(measure) for measure in self.measures],
            "orders": [asdict(order) for order in self.orders],
            "sentences": list(self.sentences),
        }


def _holds(measure: str, more: float | None, less: float | None) -> bool | None:
    if more is None or less is None:
        return None
    return more < less if measure == "bits_per_byte" else more > less


def tier_measures(config: str, tier: str, measured: Sequence[Measures]) -> list[TierMeasure]:
    """Return the means of a cell."""
    found = []
    for name in MEASURES:
        values = [value for m in measured if (value := getattr(m, name)) is not None]
        found.append(TierMeasure(config, tier, name, fmean(values) if values else None, len(values)))
    return found


def shared_text(config: str, longest_prefix: int, share_by_row: dict[str, float]) -> SharedText:
    """Return what the rows of a config share."""
    shares = list(share_by_row.values())
    if len(shares) < 2:
        return SharedText(config, None, None, None, None, {})
    return SharedText(config, longest_prefix, fmean(shares), median(shares), max(shares), share_by_row)


def write_tier_plot(report: ThroughputReport, path: Path) -> None:
    """Draw each measure over the configs, a line a tier, as a PNG of the same bytes for the same figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    configs = list(dict.fromkeys(m.config for m in report.measures))
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, label) in zip(figure.subplots(1, len(MEASURES)), MEASURES.items(), strict=True):
        for tier, marker in zip(_ORDER, "osD", strict=True):
            means = {m.config: m.mean for m in report.measures if (m.tier, m.measure) == (tier, name)}
            points = [(i, means[c]) for i, c in enumerate(configs) if means.get(c) is not None]
            axes.plot([i for i, _ in points], [mean for _, mean in points], marker=marker, label=tier)
        axes.set_xticks(range(len(configs)), [c.removeprefix("throughput_") for c in configs])
        axes.set_xlabel("config")
        axes.set_ylabel(label)
        axes.legend()
    figure.suptitle("Predictability of what is expected after a prompt")
    with atomic(path) as scratch:
        figure.savefig(scratch, format="png", dpi=120, metadata={"Software": None})
