"""The index of a benchmark on disk: built once for a benchmark and a version of the normaliser, then mapped."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from curation.audit.benchmark import Benchmark, benchmark_digest, benchmark_files, read_benchmark
from curation.kernels import audit_fold, audit_hash
from curation.kernels.audit_index import OverlapIndex, build_index
from curation.kernels.audit_rules import Rule
from curation.kernels.audit_shingles import ShingleTable

logger = logging.getLogger(__name__)

_TABLES = ("five", "three")
_DONE = "index.json"
_IN_MEMORY = 64 << 20
"""Arrays up to this size are read, larger ones mapped: look-ups in large pages of memory are twice as fast."""


class _Texts(Sequence[str]):
    """A memory-mapped string column: a prompt is in memory only while it is compared."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[str]: ...
    def __getitem__(self, i: int | slice) -> str | Sequence[str]:
        if isinstance(i, slice):
            texts: list[str] = self._column.to_pylist()[i]
            return texts
        text: str = self._column[i].as_py()
        return text


@dataclass(frozen=True, slots=True)
class BenchmarkIndex:
    """A benchmark ready to be looked for.

    Attributes
    ----------
    overlap
        The index of the kernels.
    owners
        Table of `benchmark.OWNER_SCHEMA`.
    digest
        SHA-256 of the benchmark's files.
    key
        Digest that also covers the versions of normaliser, hash and Unicode, and the rule's limit.
    """

    overlap: OverlapIndex
    owners: pa.Table
    digest: str
    key: str


def load_index(dist: str | Path, rule: Rule, cache: Path) -> BenchmarkIndex:
    """Return the index of a DIST from the cache, building it first if it is not there.

    Parameters
    ----------
    dist
        A folder, or ORG/NAME@REV on the Hub.
    rule
        Its limit decides which shingles carry weight.
    cache
        Folder of the cache; the index lies under `audit/`.
    """
    files = benchmark_files(dist)
    digest = benchmark_digest(files)
    key = index_key(digest, rule)
    folder = cache / "audit" / key[:32]
    if not (folder / _DONE).is_file():
        benchmark = read_benchmark(files)
        save_index(folder, build_index_of(benchmark, rule), benchmark.owners)
        logger.info("audit: index of %d prompts built", len(benchmark.texts))
    return BenchmarkIndex(*open_index(folder), digest, key)


def index_key(digest: str, rule: Rule) -> str:
    """Return the digest by which an index is cached."""
    parts = (digest, audit_fold.VERSION, audit_hash.VERSION, audit_fold.unicode_version(), rule.max_prompts, "layout 6")
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


def build_index_of(benchmark: Benchmark, rule: Rule) -> OverlapIndex:
    """Index the prompts of a benchmark."""
    return build_index(
        benchmark.texts, benchmark.groups, placeholders=benchmark.placeholders, max_prompts=rule.max_prompts
    )


def save_index(folder: Path, index: OverlapIndex, owners: pa.Table) -> None:
    """Write an index as arrays that can be mapped; the folder appears whole or not at all."""
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    scratch.mkdir(parents=True)
    try:
        for name, array in _arrays(index):
            np.save(scratch / f"{name}.npy", array)
        _write_arrow(scratch / "prompts.arrow", pa.table({"text": pa.array(list(index.texts), pa.large_string())}))
        _write_arrow(scratch / "owners.arrow", owners)
        (scratch / _DONE).write_text(json.dumps({"max_prompts": index.max_prompts}), "utf-8")
        try:
            scratch.replace(folder)
        except OSError:
            # Another process was first, or a build of the same index was cut short.
            if not (folder / _DONE).is_file():
                shutil.rmtree(folder)
                scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def open_index(folder: Path) -> tuple[OverlapIndex, pa.Table]:
    """Map an index that was saved."""

    def array(name: str) -> NDArray[Any]:
        path = folder / f"{name}.npy"
        if path.stat().st_size < _IN_MEMORY:
            return np.asarray(np.load(path))
        # The plain view: indexing through numpy's memmap class costs more than the look-up itself.
        return np.asarray(np.load(path, mmap_mode="r"))

    parts: dict[str, Any] = {name: array(name) for name in _plain_fields()}
    for table in _TABLES:
        parts[table] = ShingleTable(**{f.name: array(f"{table}.{f.name}") for f in fields(ShingleTable)})
    prompts, owners = _map_arrow(folder / "prompts.arrow"), _map_arrow(folder / "owners.arrow")
    limit = json.loads((folder / _DONE).read_text("utf-8"))["max_prompts"]
    return OverlapIndex(texts=_Texts(prompts.column("text")), max_prompts=limit, **parts), owners


def _plain_fields() -> list[str]:
    return [f.name for f in fields(OverlapIndex) if f.name not in (*_TABLES, "texts", "max_prompts")]


def _arrays(index: OverlapIndex) -> list[tuple[str, NDArray[Any]]]:
    plain = [(name, getattr(index, name)) for name in _plain_fields()]
    tables = [
        (f"{table}.{f.name}", getattr(getattr(index, table), f.name)) for table in _TABLES for f in fields(ShingleTable)
    ]
    return plain + tables


def _write_arrow(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _map_arrow(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
