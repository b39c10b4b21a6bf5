"""What the tests of sources share: rows from memory, our samples and the mirror."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from sources import http
from sources.base import Files, Record, Rejected, Row, Source, SourceSpec
from sources.columns import conform
from sources.origins import MirrorOrigin, Origin, SamplesOrigin, open_source, resolve
from tests.hub.fakehub import FakeHub, running


@dataclass(frozen=True)
class MemoryFiles:
    """Rows by key, as a reader would hand them over."""

    by_key: Mapping[str, Sequence[Row]]

    def rows(self, key: str) -> Iterator[Row]:
        yield from self.by_key[key]

    def shuffled(self, seed: int) -> MemoryFiles:
        return MemoryFiles({k: random.Random(f"{seed} {k}").sample(rows, len(rows)) for k, rows in self.by_key.items()})

    def replaced(self, key: str, index: int, values: Mapping[str, Any]) -> MemoryFiles:
        rows = list(self.by_key[key])
        rows[index] = Row({**rows[index].values, **values}, rows[index].file, rows[index].line)
        return MemoryFiles({**self.by_key, key: rows})


@pytest.fixture(scope="session")
def memory_files() -> Callable[[SourceSpec, Mapping[str, Sequence[Mapping[str, Any]]]], MemoryFiles]:
    """Rows that satisfy the columns of a spec: what a reader would not let through raises here."""

    def build(spec: SourceSpec, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> MemoryFiles:
        return MemoryFiles(
            {
                key: [
                    Row(conform(values, file.columns), file.path, line)
                    for line, values in enumerate(rows.get(key, ()), start=1)
                ]
                for key, file in spec.files.items()
            }
        )

    return build


@pytest.fixture(scope="session")
def parsed() -> Callable[[Source, Files], tuple[list[Record], list[Rejected]]]:
    """What an adapter makes of its files: the records and the rejected rows."""

    def run(source: Source, files: Files) -> tuple[list[Record], list[Rejected]]:
        records: list[Record] = []
        rejected: list[Rejected] = []
        for item in source.parse(files):
            if isinstance(item, Rejected):
                rejected.append(item)
            else:
                records.append(item)
        return records, rejected

    return run


@pytest.fixture(scope="session")
def loaded() -> Callable[[Origin, SourceSpec], tuple[MemoryFiles, list[Rejected]]]:
    """All rows of a source at an origin, read once, and what the reader rejected."""

    def load(origin: Origin, spec: SourceSpec) -> tuple[MemoryFiles, list[Rejected]]:
        rejected: list[Rejected] = []
        files = open_source(spec, resolve(origin, spec, allow_short=True), rejected.append)
        return MemoryFiles({key: list(files.rows(key)) for key in spec.files}), rejected

    return load


@pytest.fixture(scope="session")
def sample_files(loaded: Any) -> Callable[[SourceSpec], tuple[MemoryFiles, list[Rejected]]]:
    """The rows of our samples of a source, and what the reader rejected."""
    return lambda spec: loaded(SamplesOrigin(), spec)


@pytest.fixture(scope="session")
def mirror_files(loaded: Any, mirror: Path) -> Callable[[SourceSpec], tuple[MemoryFiles, list[Rejected]]]:
    """The rows of a source in the mirror; skips where there is no mirror, or it lacks this source."""

    def load(spec: SourceSpec) -> tuple[MemoryFiles, list[Rejected]]:
        if not (mirror / spec.mirror_folder).is_dir():
            pytest.skip(f"the mirror at {mirror} has no {spec.mirror_folder}")
        files: tuple[MemoryFiles, list[Rejected]] = loaded(MirrorOrigin(mirror), spec)
        return files

    return load


@pytest.fixture(scope="session")
def server() -> Iterator[FakeHub]:
    """One loopback stand-in for the hosts of sources."""
    with running() as hub:
        yield hub


@pytest.fixture
def hub(server: FakeHub, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """The stand-in, empty, and this process sent there; retries wait for nothing."""
    server.reset()
    monkeypatch.setattr(http, "FIRST_WAIT_S", 0.0)
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
    return server
