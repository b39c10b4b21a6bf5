"""The cache of fetched files: `<cache>/raw/<host>/<repository>/<revision>/<path>`.

Beside the revisions of a repository lie what was found out about it: `.<revision>.listing.json`, its files at a
revision, and `.revision`, the revision that the first pull of an unpinned source found. All of it can be rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from filelock import FileLock

from sources.base import SourceSpec
from sources.cache_root import cache_root
from sources.disk import atomic
from sources.errors import SourceError
from sources.hosts import ListedFile, Listing

UNVERSIONED = "unversioned"
"""Stands for the revision of plain web files, which have none."""


@dataclass(frozen=True, slots=True)
class SourceCache:
    """Where the files of sources lie, and what is remembered of their repositories."""

    root: Path = field(default_factory=cache_root)

    def path(self, spec: SourceSpec, revision: str, path: str) -> Path:
        """Return where a file of a source belongs.

        Raises
        ------
        SourceError
            If the path leads out of the folder of its source.
        """
        parts = PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts or "\\" in path or not parts.parts:
            raise SourceError(f"{spec.name}: {path!r} leads out of its repository; it is not fetched")
        return self._repository(spec) / (revision or UNVERSIONED) / parts

    def listing(self, spec: SourceSpec, revision: str) -> Listing | None:
        """Return the files of a repository at a revision, if they were listed before."""
        path = self._listing_path(spec, revision)
        if not revision or not path.is_file():
            return None
        files = json.loads(path.read_text("utf-8"))
        return Listing(revision, {name: ListedFile(**facts) for name, facts in files.items()})

    def remember(self, spec: SourceSpec, listing: Listing, *, as_found: bool) -> None:
        """Keep a listing; `as_found` also keeps its revision as the one of an unpinned source."""
        files = {name: asdict(facts) for name, facts in sorted(listing.files.items())}
        _write(self._listing_path(spec, listing.revision), json.dumps(files, ensure_ascii=False))
        if as_found:
            _write(self._found_path(spec), listing.revision)

    def found_revision(self, spec: SourceSpec) -> str:
        """Return the revision that the first pull of an unpinned source found; "" if there was none."""
        path = self._found_path(spec)
        return path.read_text("utf-8").strip() if path.is_file() else ""

    @contextmanager
    def hold(self, spec: SourceSpec) -> Iterator[None]:
        """Keep other threads and processes from finding out about the same repository at the same time."""
        folder = self._repository(spec)
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".listing.lock"):
            yield

    @contextmanager
    def usable(self, spec: SourceSpec) -> Iterator[None]:
        """Turn what the disk refuses inside the block into a `SourceError`."""
        try:
            yield
        except OSError as error:
            remedy = "free some space, or name another folder with SPEEDBENCH_CACHE"
            raise SourceError(
                f"{spec.name}: the cache {self.root} fails ({error.strerror or error}); {remedy}"
            ) from error

    def _repository(self, spec: SourceSpec) -> Path:
        return self.root / "raw" / spec.host / spec.repo.split("://")[-1].strip("/").replace(":", "_")

    def _listing_path(self, spec: SourceSpec, revision: str) -> Path:
        return self._repository(spec) / f".{revision}.listing.json"

    def _found_path(self, spec: SourceSpec) -> Path:
        return self._repository(spec) / ".revision"


def _write(path: Path, text: str) -> None:
    with atomic(path) as scratch:
        scratch.write_text(text, "utf-8")
