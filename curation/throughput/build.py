"""The throughput split, built: every cell of every config, rows handed on a cell at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.errors import BuildError
from curation.kernels.prefixes import longest_shared_prefix, shared_shares
from curation.processes import one_thread_pool
from curation.recipe import Recipe
from curation.stages.base import Drop
from curation.throughput.cells import Attempt, ConfigState, fill, in_turns
from curation.throughput.composition import Target
from curation.throughput.lengths import slots
from curation.throughput.report import CellCount, SharedText, ThroughputReport, TierMeasure, shared_text, tier_measures
from curation.throughput.rows import COMPOSERS, Built, Provenance, Refused, RowBuilder
from curation.throughput.shelf import Shelf
from curation.tokenizer import Tokenizer, load_tokenizer
from sources.base import TIERS
from sources.passages import Passage

logger = logging.getLogger(__name__)

STAGE = "throughput"

Sink = Callable[[str, Sequence[Mapping[str, Any]]], None]
"""Takes the rows of one cell: config and rows of `SPLIT_SCHEMA`, real turns in place."""


def build_throughput(
    passages: Iterable[Passage],
    provenance: Mapping[str, Provenance],
    recipe: Recipe,
    sink: Sink,
    *,
    folder: Path,
    workers: int = 1,
    allow_short: bool = False,
) -> ThroughputReport:
    """Build every config of the throughput split.

    Parameters
    ----------
    passages
        The material, in any order; read once, and held on disk.
    provenance
        Tier, published source, revision and licence by the name of the spec.
    recipe
        Lengths, quotas, tokenizer.
    sink
        Called once a cell, configs in the recipe's order and tiers sorted within a config, with rows sorted by
        `question_id`: so the rows of a config come in the order in which they are published.
    folder
        An existing folder for the passages while the build runs.
    workers
        Processes; their number changes no byte.
    allow_short
        True to deliver cells that have fewer rows than are wanted.

    Returns
    -------
    ThroughputReport
        Cells, refusals, shared text and tier check.

    Raises
    ------
    BuildError
        If a cell stays short and `allow_short` is false: names the cell.
    """
    path = folder / "passages.bin"
    try:
        shelf = Shelf.write(path, passages)
        with _builders(shelf, provenance, recipe, workers) as (builder, attempts):
            run = _Run(recipe, builder, attempts, sink, allow_short=allow_short)
            run.drops += [Drop(record_id, STAGE, "another passage has the same id") for record_id in shelf.duplicates]
            for config, by_tier in slots(recipe.throughput, TIERS).items():
                run.config(config, by_tier)
        return run.report()
    finally:
        path.unlink(missing_ok=True)


def row_builder(
    shelf: Shelf, provenance: Mapping[str, Provenance], recipe: Recipe, tokenizer: Tokenizer | None = None
) -> RowBuilder:
    """Return what builds any one row of a recipe alone, e.g. to fill a placeholder (`RowBuilder.rebuild`)."""
    return RowBuilder(
        shelf,
        tokenizer or load_tokenizer(recipe.tokenizer),
        provenance,
        recipe.throughput.max_pad_tokens,
        recipe.throughput.max_shared_prefix_tokens,
    )


@dataclass
class _Run:
    """The state of a build: what the report needs of the cells that were handed on."""

    recipe: Recipe
    builder: RowBuilder
    attempts: Callable[[str], Attempt]
    sink: Sink
    allow_short: bool
    drops: list[Drop] = field(default_factory=list)
    cells: list[CellCount] = field(default_factory=list)
    shared: list[SharedText] = field(default_factory=list)
    measures: list[TierMeasure] = field(default_factory=list)

    def config(self, config: str, lengths_by_tier: Mapping[str, Sequence[int]]) -> None:
        """Build the cells of one config, and compare its rows."""
        state = ConfigState()
        ids: list[str] = []
        ngrams: list[NDArray[np.uint64]] = []
        for tier in sorted(lengths_by_tier):
            for built in self.cell(config, tier, lengths_by_tier[tier], state):
                ids.append(built.row["question_id"])
                ngrams.append(built.ngrams)
        shares = dict(zip(ids, (round(float(s), 6) for s in shared_shares(ngrams)), strict=True))
        self.shared.append(shared_text(config, longest_shared_prefix(list(state.prefixes)), shares))

    def cell(self, config: str, tier: str, lengths: Sequence[int], state: ConfigState) -> list[Built]:
        """Build one cell and hand it on; return its rows without their texts."""
        longest = max(lengths, default=0)
        provenance = self.builder.provenance
        sources = [name for name in COMPOSERS if name in provenance and provenance[name].tier == tier]
        targets = in_turns(
            [COMPOSERS[name].targets(self.builder.shelf, longest, self.builder.count) for name in sources],
            str(self.recipe.throughput.seed),
            config,
        )
        rows, refused = fill(lengths, targets, state, self.attempts(config))
        self._note(config, tier, len(lengths), rows, refused)
        rows.sort(key=lambda built: built.row["question_id"])
        self.sink(config, [built.row for built in rows])
        return [Built({"question_id": b.row["question_id"]}, (), b.ngrams, b.measures) for b in rows]

    def _note(self, config: str, tier: str, wanted: int, rows: list[Built], refused: list[Refused]) -> None:
        by_source: dict[str, int] = {}
        for built in rows:
            name = built.row["source"]
            by_source[name] = by_source.get(name, 0) + 1
        self.cells.append(CellCount(config, tier, wanted, len(rows), dict(sorted(by_source.items()))))
        self.measures += tier_measures(config, tier, [built.measures for built in rows])
        self.drops += [
            Drop(r.record_id, STAGE, r.reason, f"{config}/{r.against}" if r.against else config, r.score)
            for r in refused
        ]
        logger.info("%s/%s: %d of %d rows, %d refused", config, tier, len(rows), wanted, len(refused))
        if len(rows) < wanted and not self.allow_short:
            raise BuildError(
                f"{config}/{tier}: the pool is used up at {len(rows)} of {wanted} rows;"
                " add sources, lower throughput.rows_per_cell, or deliver short with --allow-short"
            )

    def report(self) -> ThroughputReport:
        """Return what was found."""
        return ThroughputReport(tuple(self.drops), tuple(self.cells), tuple(self.shared), tuple(self.measures))


@contextmanager
def _builders(
    shelf: Shelf, provenance: Mapping[str, Provenance], recipe: Recipe, workers: int
) -> Iterator[tuple[RowBuilder, Callable[[str], Attempt]]]:
    """Yield a builder of single rows, and what makes an `Attempt` for a config, in this process or in several."""
    builder = row_builder(shelf, provenance, recipe)
    if workers <= 1:
        yield builder, lambda config: lambda batch: (builder.build(config, target, n) for target, n in batch)
        return
    with one_thread_pool(workers, partial(_start, shelf, dict(provenance), recipe)) as pool:

        def attempt(config: str) -> Attempt:
            return lambda batch: pool.map(_build, [(config, *each) for each in batch], chunksize=4)

        yield builder, attempt


_worker: dict[str, RowBuilder] = {}


def _start(shelf: Shelf, provenance: Mapping[str, Provenance], recipe: Recipe) -> None:
    _worker["builder"] = row_builder(shelf, provenance, recipe)


def _build(job: tuple[str, Target, int]) -> Built | Refused:
    return _worker["builder"].build(*job)
