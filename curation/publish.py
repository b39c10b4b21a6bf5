"""`dist/` and `full/`: the same rows, with and without the texts that may not be passed on, and their card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cards.facts import ConfigFacts, SourceFacts
from curation.rows import source_names, with_placeholders
from curation.schema import SPLIT_SCHEMA
from curation.store import BuildFolder, parquet_writer, write_table
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


_CARD_TYPES = {pa.string(): "string", pa.bool_(): "bool", pa.int32(): "int32"}


def config_facts(dist: Path, configs: Sequence[str]) -> tuple[ConfigFacts, ...]:
    """Return the facts of each config, read back from the files of `dist/`."""
    return tuple(_config_facts(dist, config) for config in configs)


def _config_facts(dist: Path, config: str) -> ConfigFacts:
    path = dist / _path(config)
    num_rows = num_bytes = placeholders = 0
    categories: Counter[str] = Counter()
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=1_024):
            num_rows += batch.num_rows
            num_bytes += batch.nbytes
            placeholders += pc.sum(pc.equal(batch.column("text_status"), "placeholder")).as_py() or 0
            categories.update(batch.column("category").to_pylist())
    columns = tuple(
        (f.name, f"list:{_CARD_TYPES[f.type.value_type]}" if pa.types.is_list(f.type) else _CARD_TYPES[f.type])
        for f in SPLIT_SCHEMA
    )
    return ConfigFacts(
        name=config,
        path=_path(config),
        num_rows=num_rows,
        num_placeholders=placeholders,
        num_bytes=num_bytes,
        download_bytes=path.stat().st_size,
        columns=columns,
        categories=tuple(sorted(categories.items())),
    )


def source_facts(
    dist: Path, configs: Sequence[str], specs: Mapping[str, SourceSpec], revisions: Mapping[str, str]
) -> tuple[SourceFacts, ...]:
    """Return the facts of each source that made a row of any config, by its name."""
    rows: Counter[str] = Counter()
    for config in configs:
        for record_ids in pq.read_table(dist / _path(config), columns=["record_ids"]).column(0).to_pylist():
            rows.update(source_names(record_ids))
    return tuple(_source_facts(specs[name], revisions[name], num_rows) for name, num_rows in sorted(rows.items()))


def _source_facts(spec: SourceSpec, revision: str, num_rows: int) -> SourceFacts:
    return SourceFacts(
        name=spec.name,
        title=spec.title,
        source=spec.source,
        hub_id=spec.repo if spec.host == "hub" else "",
        revision=revision,
        license=spec.license.id,
        license_title=spec.license.title,
        license_url=spec.license.url,
        published=spec.may_publish,
        publish_reason=spec.publish_reason,
        num_rows=num_rows,
        citation=spec.citation,
    )
