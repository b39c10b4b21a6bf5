"""Where the files of a source come from: the Hub or the web at a pinned revision, a mirror, or our own samples.

One seam: an `Origin` says which files of a source lie where, with their digests; `open_source` turns them into the rows
that an adapter parses. Nothing behind the seam knows where a file came from.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Protocol

from sources.base import Files, Row, SourceSpec
from sources.disk import file_sha256
from sources.errors import SourceError
from sources.reading import OnReject, read_rows

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResolvedFile:
    """One file of a source: the key it belongs to, its path in the repository, where it lies, SHA-256 and bytes."""

    key: str
    path: str
    local: Path
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Absent:
    """A file, or a pattern that no file matches, that an origin does not have; and what to do about it."""

    source: str
    path: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.source}: {self.path} is absent; {self.remedy}"


@dataclass(frozen=True, slots=True)
class ResolvedFiles:
    """The files of a source in the order of its keys and then of their paths, and those that are absent."""

    source: str
    files: tuple[ResolvedFile, ...]
    absent: tuple[Absent, ...] = ()

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 by path in the repository, for the manifest."""
        return {f.path: f.sha256 for f in sorted(self.files, key=lambda f: f.path)}


class Origin(Protocol):
    """Something that has the files of sources."""

    @property
    def name(self) -> str:
        """`hub`, `mirror` or `samples`: what the manifest calls it."""
        ...

    def files(self, spec: SourceSpec) -> ResolvedFiles:
        """Return the files of a source, fetched where needed; an absent one is named, not raised."""
        ...


def resolve(origin: Origin, spec: SourceSpec, *, allow_short: bool = False) -> ResolvedFiles:
    """Return the files of a source.

    Raises
    ------
    SourceError
        If a file is absent. With `allow_short` that is one warning instead, and each stands in `absent` for the ledger.
    """
    resolved = origin.files(spec)
    if resolved.absent:
        others = f" (and {len(resolved.absent) - 1} more of its files)" if len(resolved.absent) > 1 else ""
        if not allow_short:
            raise SourceError(f"{resolved.absent[0]}{others}, or go on without with --allow-short")
        logger.warning("%s%s", resolved.absent[0], others)
    return resolved


def open_source(spec: SourceSpec, resolved: ResolvedFiles, on_reject: OnReject) -> Files:
    """Return the rows of a source's files by key, as `parse` asks for them; bad rows go to `on_reject`."""
    return _OpenFiles(spec, resolved, on_reject)


@dataclass(frozen=True, slots=True)
class _OpenFiles:
    spec: SourceSpec
    resolved: ResolvedFiles
    on_reject: OnReject

    def rows(self, key: str) -> Iterator[Row]:
        """Yield the good rows of all files of this key, in the order of path and line."""
        file_spec = self.spec.files[key]
        for file in self.resolved.files:
            if file.key != key:
                continue
            try:
                yield from read_rows(file.local, file_spec, file.path, self.on_reject)
            except SourceError as error:
                raise SourceError(f"{self.spec.name}: {error}") from error


@dataclass(frozen=True, slots=True)
class MirrorOrigin:
    """A folder laid out as `<org>/<name>/<path in the repository>`, with sources off the Hub under `_web/`."""

    root: Path
    name: str = "mirror"

    def files(self, spec: SourceSpec) -> ResolvedFiles:
        """Return the files that the mirror has, identified by their digests."""
        folder = self.folder(spec)
        return folder_files(spec, folder, f"put it under {folder}")

    def folder(self, spec: SourceSpec) -> Path:
        """Return the folder of a source.

        Raises
        ------
        SourceError
            If there is no mirror.
        """
        if not self.root.is_dir():
            raise SourceError(f"--mirror {self.root}: no such folder")
        return self.root / spec.mirror_folder


@dataclass(frozen=True, slots=True)
class SamplesOrigin:
    """The records in the package, written by the project in each source's own schema."""

    name: str = "samples"

    def files(self, spec: SourceSpec) -> ResolvedFiles:
        """Return the samples of a source."""
        folder = samples_root() / (spec.samples or spec.name)
        return folder_files(spec, folder, f"write some under sources/samples/{folder.name}")


def samples_root() -> Path:
    """Return the folder of the samples in the installed package."""
    return Path(str(resources.files("sources"))) / "samples"


def folder_files(spec: SourceSpec, folder: Path, remedy: str) -> ResolvedFiles:
    """Return the files of a source that lie in a folder at their paths in the repository, with their digests."""
    paths, absent = folder_paths(spec, folder, remedy)
    return ResolvedFiles(spec.name, tuple(resolved_file(key, p, folder / p) for key, p in paths), tuple(absent))


def folder_paths(spec: SourceSpec, folder: Path, remedy: str) -> tuple[list[tuple[str, str]], list[Absent]]:
    """Return key and path of the files of a source that lie in a folder, and the entries that have none.

    Names that begin with a dot are passed over, so that what another program keeps there never matches a pattern.
    """
    needs_walk = any(f.is_pattern for f in spec.files.values())
    present = sorted(_paths_below(folder)) if needs_walk else []
    found: list[tuple[str, str]] = []
    absent: list[Absent] = []
    for key, file_spec in spec.files.items():
        paths = [p for p in present if file_spec.matches(p)] if file_spec.is_pattern else [file_spec.path]
        there = [(key, p) for p in paths if (folder / p).is_file()]
        found += there
        if not there:
            absent.append(Absent(spec.name, file_spec.path, remedy))
    return found, absent


def _paths_below(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            yield relative.as_posix()


def resolved_file(key: str, path: str, local: Path) -> ResolvedFile:
    """Return a file with its digest, read from the bytes that lie there."""
    try:
        return ResolvedFile(key, path, local, file_sha256(local), local.stat().st_size)
    except OSError as error:
        raise SourceError(f"{local}: cannot be read ({error.strerror}); mend its permissions") from error
