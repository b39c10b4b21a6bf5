"""What a check is given and what it returns: a DIST with its build, and faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.load import config_files, read_manifest, resolve_dist
from curation.recipe import Recipe
from curation.schema import SPLIT_SCHEMA
from sources.base import SourceSpec
from sources.lock import Lock, load_lock

CARD = "README.md"
CHANGELOG = "CHANGELOG.md"
LICENSES = "LICENSE.md"

Columns = Sequence[str]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: the file, the row or place in it ("" for the file as a whole), what, and the remedy."""

    check: str
    file: str
    row: str
    message: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}: {self.row}" if self.row else self.file
        return f"{self.check}: {place}: {self.message}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Row:
    """One published row, the asked columns of it, and where it stands; places count from 0."""

    file: str
    place: int
    values: Mapping[str, Any]

    def __getitem__(self, column: str) -> Any:
        return self.values[column]

    @property
    def name(self) -> str:
        """How a fault names the row."""
        return f"row {self.place} ({self.values.get('question_id', '')})"


@dataclass(frozen=True)
class Subject:
    """A DIST, and the build that it lies in where there is one.

    Attributes
    ----------
    folder
        The DIST.
    overlay
        Files as they are about to be, path to bytes: they stand for those of the folder.
    is_local
        True if a build of a mirror or of samples may pass.
    specs
        The registered sources by name.
    lock
        The pins of the sources.
    """

    folder: Path
    overlay: Mapping[str, bytes] = field(default_factory=dict)
    is_local: bool = False
    specs: Mapping[str, SourceSpec] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    @cached_property
    def manifest(self) -> dict[str, Any] | None:
        """The manifest of the build; None for a DIST that lies alone, e.g. one from the Hub."""
        return read_manifest(self.folder)

    @cached_property
    def recipe(self) -> Recipe | None:
        """The recipe of the build; None without a manifest, or where the manifest's does not validate."""
        try:
            return None if self.manifest is None else Recipe.model_validate(self.manifest["recipe"])
        except (KeyError, ValueError):
            return None

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All files of the DIST by their paths, hidden ones too."""
        on_disk = (p.relative_to(self.folder).as_posix() for p in self.folder.rglob("*") if p.is_file())
        return tuple(sorted({*on_disk, *self.overlay}))

    @cached_property
    def full(self) -> Path | None:
        """The folder with every text in place, beside `dist/`."""
        folder = self.folder.parent / "full"
        return folder if self.manifest is not None and self.folder.name == "dist" and folder.is_dir() else None

    @cached_property
    def schemas(self) -> dict[str, pa.Schema]:
        """The schema of each readable config, by its first file."""
        return {name: schema for name in self.configs if (schema := self._schema(name)) is not None}

    @property
    def configs(self) -> dict[str, list[Path]]:
        """The parquet files of each config."""
        return config_files(self.folder)

    @property
    def sound(self) -> tuple[str, ...]:
        """The configs whose columns are ours, so that their rows can be checked."""
        return tuple(name for name, schema in self.schemas.items() if _is_readable_as_ours(schema))

    @cached_property
    def is_ours(self) -> bool:
        """True if any config has our columns; NVIDIA's set has eight of them."""
        return any("turns_sha256" in schema.names for schema in self.schemas.values())

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file as it is about to be; None where there is none."""
        if name in self.overlay:
            return self.overlay[name]
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None

    def rows(self, config: str, columns: Columns, folder: Path | None = None) -> Iterator[Row]:
        """Yield the rows of a config in the order of its files, a few hundred in memory at a time.

        A row with a null in one of these columns is left out: the check `parquet` names it.
        """
        folder = folder or self.folder
        for path in config_files(folder).get(config, []):
            name = path.relative_to(folder).as_posix()
            for place, values in enumerate(_values(path, columns)):
                if not any(value is None or (isinstance(value, list) and None in value) for value in values.values()):
                    yield Row(name, place, values)

    def _schema(self, config: str) -> pa.Schema | None:
        try:
            schema = pq.read_schema(self.configs[config][0])
        except (pa.ArrowException, OSError):
            return None  # the check `parquet` says so
        return schema


def _values(path: Path, columns: Columns) -> Iterator[dict[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256, columns=list(columns)):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError):
        return  # the check `parquet` says so


def _is_readable_as_ours(schema: pa.Schema) -> bool:
    """Tell whether rows have our columns, with types that come out as the same Python values."""
    if not set(SPLIT_SCHEMA.names) <= set(schema.names):
        return False
    return all(_python_type(schema.field(own.name).type) == _python_type(own.type) for own in SPLIT_SCHEMA)


def _python_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list of {_python_type(kind.value_type)}"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "str"
    return "int" if pa.types.is_integer(kind) else str(kind)


Find = Callable[[Subject], Iterable[Fault]]


@dataclass(frozen=True, slots=True)
class Check:
    """A named check: `find` yields its faults, `unless` says why it cannot be made of a subject ("" if it can)."""

    name: str
    find: Find
    unless: Callable[[Subject], str] = lambda _: ""


def open_subject(dist: str | Path, *, is_local: bool, overlay: Mapping[str, bytes] | None = None) -> Subject:
    """Return what is to be checked: a folder, or a revision of the Hub.

    Raises
    ------
    DistError
        If there is no such DIST, or it holds no config.
    """
    from sources.registry import SOURCES

    folder = resolve_dist(dist)
    specs = {name: source.spec for name, source in SOURCES.items()}
    return Subject(folder, overlay or {}, is_local, specs, load_lock())


def our_rows_only(subject: Subject) -> str:
    """Say why rows are not checked as ours."""
    return "" if subject.is_ours else "the rows have not our columns"


def whole_build_only(subject: Subject) -> str:
    """Say why the build is not checked."""
    return "" if subject.manifest is not None else "there is no manifest.json beside it"
