"""The folder of a build and the cache of its steps: the only reader and writer of a run."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from curation.load import CHECKSUMS
from curation.stages.base import Drop, StageResult, ledger_table
from sources.disk import atomic as atomic
from sources.disk import file_sha256

VERSIONED_PACKAGES = ("datasketch", "faiss-cpu", "langdetect", "numpy", "pyarrow", "tiktoken")
"""The libraries whose version can change a result; named in the manifest, and part of every step's key."""


def write_text(target: Path, text: str) -> None:
    """Write a text whole or not at all."""
    with atomic(target) as scratch:
        scratch.write_text(text, "utf-8", newline="\n")


def write_bytes(target: Path, data: bytes) -> None:
    """Write bytes whole or not at all."""
    with atomic(target) as scratch:
        scratch.write_bytes(data)


def write_json(target: Path, value: Any) -> None:
    """Write readable JSON with sorted keys."""
    write_text(target, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_table(target: Path, table: pa.Table) -> None:
    """Write a parquet file whose bytes depend on the rows and the pyarrow version alone."""
    with parquet_writer(target, table.schema) as writer:
        for batch in table.combine_chunks().to_batches(max_chunksize=1_024):
            writer.write_batch(batch)


@contextmanager
def parquet_writer(target: Path, schema: pa.Schema) -> Generator[pq.ParquetWriter]:
    """Yield a writer of batches; the file takes its name when the block succeeds. It has no metadata of other tools."""
    with (
        atomic(target) as scratch,
        pq.ParquetWriter(scratch, schema.remove_metadata(), compression="zstd", write_page_index=True) as writer,
    ):
        yield writer


def write_vectors(target: Path, x: NDArray[np.float32]) -> None:
    """Write an array as `.npy`, which a reader can map into memory."""
    with atomic(target) as scratch, scratch.open("wb") as stream:
        np.save(stream, x)


def write_checksums(folder: Path) -> None:
    """Write `SHA256SUMS` over every other file of a DIST folder."""
    digests = {name: digest for name, digest in file_digests(folder).items() if name != CHECKSUMS}
    write_text(folder / CHECKSUMS, checksums_text(digests))


def checksums_text(digests: Mapping[str, str]) -> str:
    """Return the text of a checksum file, as `sha256sum` writes it, in the order of the paths."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def file_digests(folder: Path) -> dict[str, str]:
    """Return path -> SHA-256 of every file below a folder, in the order of the paths."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".tmp"))
    return {p.relative_to(folder).as_posix(): file_sha256(p) for p in paths}


def rows_digest(table: pa.Table) -> str:
    """Return the SHA-256 of a table's columns and all that its rows hold, whatever its chunks."""
    digest = hashlib.sha256()
    for batch in table.combine_chunks().to_batches(max_chunksize=1_024):
        digest.update(json.dumps(batch.to_pydict(), ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()


def array_digest(x: NDArray[np.float32]) -> str:
    """Return the SHA-256 of an array's shape and values."""
    return hashlib.sha256(str(x.shape).encode() + b"\n" + np.ascontiguousarray(x).data).hexdigest()


def package_versions() -> dict[str, str]:
    """Return the versions of the libraries that a result can depend on."""
    return {name: metadata.version(name) for name in VERSIONED_PACKAGES}


@dataclass(frozen=True, slots=True)
class BuildFolder:
    """`DIR` of a build. The manifest is written last: without one there is no finished build."""

    root: Path

    @property
    def dist(self) -> Path:
        """What is uploaded, byte for byte."""
        return self.root / "dist"

    @property
    def full(self) -> Path:
        """The same with every text in place."""
        return self.root / "full"

    @property
    def pool(self) -> Path:
        """Candidates and vectors; never published."""
        return self.root / "pool"

    @property
    def manifest(self) -> Path:
        """The file that says that the build is whole."""
        return self.root / "manifest.json"

    def begin(self) -> None:
        """Empty the folder of what an earlier build wrote, and of nothing else."""
        self.manifest.unlink(missing_ok=True)
        for folder in (self.dist, self.full, self.pool):
            shutil.rmtree(folder, ignore_errors=True)
        self.root.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True)
class StepCache:
    """Results of finished steps, by the digest of all that they depend on, our own code included."""

    root: Path

    def run(self, name: str, key: Mapping[str, Any], compute: Callable[[], StageResult]) -> StageResult:
        """Return a step's result: from the cache where it is whole, else computed and kept."""
        folder = self.root / f"{name}-{step_key(name, key)}"
        if (folder / "facts.json").is_file():
            return _read_step(folder)
        result = compute()
        write_table(folder / "table.parquet", result.table)
        write_table(folder / "ledger.parquet", ledger_table(result.drops))
        write_json(folder / "facts.json", dict(result.facts or {}))  # last: it says that the step is whole
        return result


def step_key(name: str, key: Mapping[str, Any]) -> str:
    """Return 16 hex digits of a step's name, its inputs, the code and the versions of its libraries."""
    whole = {"step": name, "key": key, "code": code_digest(), "versions": package_versions()}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:16]


@cache
def code_digest() -> str:
    """Return a digest of the code that makes rows, so that no step outlives the code that made it."""
    import curation
    import sources

    digest = hashlib.sha256()
    for package in (sources, curation):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _read_step(folder: Path) -> StageResult:
    drops = tuple(Drop(**row) for row in pq.read_table(folder / "ledger.parquet").to_pylist())
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    return StageResult(pq.read_table(folder / "table.parquet"), drops, facts)
