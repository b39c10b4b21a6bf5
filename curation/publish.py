"""`dist/` and `full/`: the same rows, with and without the texts that may not be passed on, and their card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cards.facts import CardFacts
from cards.plots import TIERS, draw_plots, plot_facts
from cards.render import render_card, render_licenses
from curation.rows import with_placeholders
from curation.schema import SPLIT_SCHEMA
from curation.store import BuildFolder, parquet_writer, write_bytes, write_checksums, write_table, write_text
from sources.base import SourceSpec

ROWS_PER_BATCH = 64
"""Rows that are held at a time when a config is streamed; a 32k row is about 150 kB."""


def write_config(folder: BuildFolder, config: str, rows: pa.Table, specs: Mapping[str, SourceSpec]) -> None:
    """Write one config, whole in memory, to `full/` and `dist/`."""
    write_table(folder.full / _path(config), rows)
    write_table(folder.dist / _path(config), with_placeholders(rows, specs))


class StreamedConfigs:
    """Writes configs to `full/` a few rows at a time, and `dist/` from it; the rows of one config come together."""

    def __init__(self, folder: BuildFolder, specs: Mapping[str, SourceSpec]) -> None:
        self.configs: list[str] = []
        self._folder, self._specs = folder, specs
        self._open = ExitStack()
        self._writer: pq.ParquetWriter | None = None

    def __call__(self, config: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows of `SPLIT_SCHEMA`, text in place, in the order in which they are published."""
        if not self.configs or self.configs[-1] != config:
            self.finish()
            self.configs.append(config)
            self._writer = self._open.enter_context(parquet_writer(self._folder.full / _path(config), SPLIT_SCHEMA))
        assert self._writer is not None
        for start in range(0, len(rows), ROWS_PER_BATCH):
            batch = list(rows[start : start + ROWS_PER_BATCH])
            self._writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=SPLIT_SCHEMA))

    def finish(self) -> None:
        """Close the config that is open, and write its published form."""
        self._open.close()
        if self._writer is not None:
            self._writer = None
            _publish_streamed(self._folder, self.configs[-1], self._specs)


def _publish_streamed(folder: BuildFolder, config: str, specs: Mapping[str, SourceSpec]) -> None:
    with (
        pq.ParquetFile(folder.full / _path(config)) as full,
        parquet_writer(folder.dist / _path(config), SPLIT_SCHEMA) as writer,
    ):
        for batch in full.iter_batches(batch_size=ROWS_PER_BATCH):
            for published in with_placeholders(pa.Table.from_batches([batch], SPLIT_SCHEMA), specs).to_batches():
                writer.write_batch(published)


def _path(config: str) -> str:
    return f"data/{config}.parquet"


def write_cards(folder: BuildFolder, facts: CardFacts) -> None:
    """Write card, licences, plots and checksums to `dist/` and `full/`."""
    pictures = draw_plots(facts)
    if facts.throughput is not None:
        pictures[TIERS] = (folder.root / "tiers.png").read_bytes()
    facts = replace(facts, plots=plot_facts(tuple(pictures)))
    for target in (folder.dist, folder.full):
        for name, picture in pictures.items():
            write_bytes(target / name, picture)
        write_text(target / "README.md", render_card(facts))
        write_text(target / "LICENSE.md", render_licenses(facts))
        write_checksums(target)
