"""`lock.toml`: the revision of every source, and the SHA-256 and size of each of its files.

Only `sources lock` writes digests here, from what the Hub or the web gives: never from a mirror.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sources.base import FileSpec, SourceSpec
from sources.disk import atomic
from sources.errors import SourceError

LOCK_VARIABLE = "SPEEDBENCH_LOCK"
"""Environment variable that names another lock than the one in the package."""


class LockedFile(BaseModel):
    """One file: its path in the repository, SHA-256 and bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(min_length=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)


class LockedSource(BaseModel):
    """The revision of a source ("" for plain web files, which have none) and its files in the order of their paths."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    files: tuple[LockedFile, ...] = ()

    def by_path(self) -> dict[str, LockedFile]:
        """Return the files by their paths."""
        return {f.path: f for f in self.files}


class Lock(BaseModel):
    """What is pinned, by the name of the source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: Mapping[str, LockedSource] = {}

    def of(self, spec: SourceSpec) -> LockedSource:
        """Return what is pinned of a source; empty where nothing is, or where the spec has moved to another revision.

        A spec's own revision wins: digests of another revision say nothing about its files.
        """
        locked = self.sources.get(spec.name, LockedSource())
        if spec.revision and locked.revision and locked.revision != spec.revision:
            return LockedSource()
        return locked


def lock_path() -> Path:
    """Return where the lock is: `$SPEEDBENCH_LOCK`, else in the package."""
    named = os.environ.get(LOCK_VARIABLE, "")
    return Path(named) if named else Path(str(resources.files("sources"))) / "lock.toml"


def load_lock(path: Path | None = None) -> Lock:
    """Return the lock; an empty one where there is no file yet.

    Raises
    ------
    SourceError
        If the file is not TOML, or an entry is not a revision, digest or size.
    """
    path = path or lock_path()
    try:
        return Lock.model_validate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return Lock()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: not TOML: {error}; take it from the repository again") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SourceError(f"{path}: {where}: {first['msg']}; take it from the repository again") from None


def write_lock(lock: Lock, path: Path) -> None:
    """Write the lock, whole or not at all; the same pins give the same bytes."""
    try:
        with atomic(path) as scratch:
            scratch.write_text(lock_text(lock), "utf-8")
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({error.strerror}); name another with {LOCK_VARIABLE}") from error


def lock_text(lock: Lock) -> str:
    """Return the TOML of a lock, sources by name and files by path."""
    lines = ["# Written by `speedbench sources lock`. Digests are of the files at their origin, never of a mirror's."]
    for name in sorted(lock.sources):
        source = lock.sources[name]
        lines += ["", f"[sources.{_quoted(name)}]", f"revision = {_quoted(source.revision)}"]
        for file in sorted(source.files, key=lambda f: f.path):
            lines += ["", f"[[sources.{_quoted(name)}.files]]", f"path = {_quoted(file.path)}"]
            lines += [f"sha256 = {_quoted(file.sha256)}", f"size = {file.size}"]
    return "\n".join(lines) + "\n"


def missing_pins(spec: SourceSpec, lock: Lock) -> tuple[str, ...]:
    """Return what `sources lock` has yet to pin of a source: `revision`, and the paths or patterns without a digest."""
    locked = lock.of(spec)
    lacks_revision = spec.host != "web" and not (locked.revision or spec.revision)
    missing = ["revision"] if lacks_revision else []
    return (*missing, *(f.path for f in spec.files.values() if not _pinned(f, locked)))


def is_locked(spec: SourceSpec, lock: Lock) -> bool:
    """Tell whether revision and digest of every file are pinned: what a release needs."""
    return not missing_pins(spec, lock)


def effective_revision(spec: SourceSpec, lock: Lock) -> str:
    """Return the revision to fetch: the spec's, else the lock's; "" where neither has one, and for web files."""
    return spec.revision or lock.of(spec).revision


def source_revision(spec: SourceSpec, lock: Lock | None = None) -> str:
    """Return what the published column `source_revision` holds.

    Returns
    -------
    str
        The 40 hex digits of the revision. For a web source the SHA-256 of its locked file; of several, the SHA-256 of
        the lines `<sha256>  <path>` in the order of the paths, as `sha256sum` prints them. "" while it is not locked.
        Never computed from a file that was read.
    """
    lock = load_lock() if lock is None else lock
    if spec.host != "web":
        return effective_revision(spec, lock)
    if not is_locked(spec, lock):
        return ""
    files = [f for f in lock.of(spec).files if any(s.matches(f.path) for s in spec.files.values())]
    if len(files) == 1:
        return files[0].sha256
    lines = "".join(f"{f.sha256}  {f.path}\n" for f in sorted(files, key=lambda f: f.path))
    return hashlib.sha256(lines.encode()).hexdigest()


def _pinned(file_spec: FileSpec, locked: LockedSource) -> bool:
    if file_spec.urls:
        return file_spec.urls.keys() <= locked.by_path().keys()
    if file_spec.is_pattern:
        return any(file_spec.matches(f.path) for f in locked.files)
    return file_spec.path in locked.by_path()


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, save for U+007F, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
