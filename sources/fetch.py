"""The origin that fetches: pinned files of the Hub or the web in a cache, verified against the lock, resumable.

A file is in the cache whole or not at all, and what is there is used without a network.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import requests

from sources.base import FileSpec, SourceSpec
from sources.cache import SourceCache
from sources.download import NotThere, Progress, download, no_progress
from sources.errors import SourceError
from sources.hosts import Listing, explain, file_token, file_url, list_files, offline
from sources.lock import Lock, LockedSource, effective_revision, load_lock, missing_pins
from sources.origins import Absent, ResolvedFile, ResolvedFiles, resolved_file

logger = logging.getLogger(__name__)

PARALLEL_FILES = 4
"""Files of one source fetched at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to have: its key and path, where it belongs in the cache, and the digest that it must have ("": any)."""

    key: str
    path: str
    local: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class HubOrigin:
    """The Hub, GitHub and plain web servers, each source at its pinned revision, behind a cache."""

    cache: SourceCache = field(default_factory=SourceCache)
    lock: Lock = field(default_factory=load_lock)
    progress: Progress = no_progress
    name: str = "hub"

    def files(self, spec: SourceSpec) -> ResolvedFiles:
        """Return the files of a source, fetching those that the cache lacks.

        Raises
        ------
        SourceError
            If the host refuses or cannot be reached, or a file is not what the lock says.
        """
        if pins := missing_pins(spec, self.lock):
            logger.warning(
                "%s is not locked (no pin of %s): it builds, but cannot be released; run: speedbench sources lock",
                spec.name,
                ", ".join(pins),
            )
        with requests.Session() as session, self.cache.usable(spec):
            wanted, absent = self.plan(spec, self.listing_if_needed(session, spec))
            outcomes = self.fetch_all(session, spec, wanted)
        absent += [o for o in outcomes if isinstance(o, Absent)]
        return ResolvedFiles(spec.name, tuple(o for o in outcomes if isinstance(o, ResolvedFile)), tuple(absent))

    def is_cached(self, spec: SourceSpec) -> bool:
        """Tell whether all files of a source are in the cache, so that it needs no network."""
        if not self._revision_is_known(spec):
            return False
        wanted, absent = self.plan(spec, self.cache.listing(spec, self.revision(spec)))
        return not absent and all(w.local.is_file() for w in wanted)

    def revision(self, spec: SourceSpec) -> str:
        """Return the revision to fetch: the pinned one, else the one that the first pull found, else ""."""
        return effective_revision(spec, self.lock) or self.cache.found_revision(spec)

    def listing(self, session: requests.Session, spec: SourceSpec) -> Listing:
        """Return the files of a source's repository at the revision to fetch, from the cache or the host."""
        if (known := self.cache.listing(spec, self.revision(spec))) is not None:
            return known
        _refuse_offline(spec, "the list of its files")
        with self.cache.hold(spec):
            revision = self.revision(spec)
            listing = self.cache.listing(spec, revision)  # of a source that shares the repository, by now
            if listing is None:
                listing = list_files(session, spec, revision)
                self.cache.remember(spec, listing, as_found=not revision)
        return listing

    def plan(self, spec: SourceSpec, listing: Listing | None) -> tuple[list[Wanted], list[Absent]]:
        """Return the files to have, and the patterns that no known file matches."""
        locked = self.lock.of(spec)
        wanted: list[Wanted] = []
        absent: list[Absent] = []
        for key, file_spec in spec.files.items():
            before = len(wanted)
            for path, sha256 in _names(file_spec, locked, listing):
                wanted.append(Wanted(key, path, self.cache.path(spec, self.revision(spec), path), sha256))
            if len(wanted) == before:
                absent.append(Absent(spec.name, file_spec.path, "no file of its repository matches; mend the spec"))
        return wanted, absent

    def listing_if_needed(self, session: requests.Session, spec: SourceSpec) -> Listing | None:
        """Return the list of files where the lock names no file of a pattern, or no revision is known; else None."""
        locked = self.lock.of(spec)
        open_pattern = any(f.is_pattern and not any(_names(f, locked, None)) for f in spec.files.values())
        return self.listing(session, spec) if open_pattern or not self._revision_is_known(spec) else None

    def _revision_is_known(self, spec: SourceSpec) -> bool:
        return spec.host == "web" or bool(self.revision(spec))

    def fetch_all(
        self, session: requests.Session, spec: SourceSpec, wanted: list[Wanted]
    ) -> list[ResolvedFile | Absent]:
        """Return the files in the order wanted, fetching a few at once; where one fails the others stop early."""
        stopped = threading.Event()

        def note(file: str, done_bytes: int, total_bytes: int | None) -> None:
            if stopped.is_set():
                raise SourceError(f"{file}: stopped; a later pull goes on from here")
            self.progress(file, done_bytes, total_bytes)

        with ThreadPoolExecutor(PARALLEL_FILES) as pool:
            try:
                return list(pool.map(lambda w: self._fetch(session, spec, w, note), wanted))
            except BaseException:  # an interrupt too: the other downloads must not hold it up
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _fetch(
        self, session: requests.Session, spec: SourceSpec, wanted: Wanted, progress: Progress
    ) -> ResolvedFile | Absent:
        label = f"{spec.name}: {wanted.path}"
        if wanted.local.is_file():
            file = resolved_file(wanted.key, wanted.path, wanted.local)
            if wanted.sha256 in {"", file.sha256}:
                return file
            logger.warning("%s in the cache is not what the lock says; it is fetched again", label)
            wanted.local.unlink(missing_ok=True)
        _refuse_offline(spec, wanted.path)
        url = file_url(spec, self.revision(spec), wanted.path)
        try:
            download(
                session,
                url,
                wanted.local,
                token=file_token(spec),
                sha256=wanted.sha256,
                label=label,
                progress=progress,
            )
        except NotThere as error:
            if error.status == HTTPStatus.NOT_FOUND and error.code in {"", "EntryNotFound"}:
                return Absent(spec.name, wanted.path, f"not found at {url}; mend the spec")
            reason, remedy = explain(spec, error.status, error.code)
            raise SourceError(f"{label}: {reason}; {remedy}") from error
        return resolved_file(wanted.key, wanted.path, wanted.local)


def _names(file_spec: FileSpec, locked: LockedSource, listing: Listing | None) -> Iterator[tuple[str, str]]:
    """Yield path and digest of the files of one entry: named by the spec, else by the lock, else by the listing."""
    digests = {f.path: f.sha256 for f in locked.files}
    listed = {path: file.sha256 for path, file in listing.files.items()} if listing else {}
    if file_spec.urls or not file_spec.is_pattern:
        paths = sorted(file_spec.urls) or [file_spec.path]
    else:
        paths = sorted(filter(file_spec.matches, digests)) or sorted(filter(file_spec.matches, listed))
    for path in paths:
        yield path, digests.get(path) or listed.get(path, "")


def _refuse_offline(spec: SourceSpec, what: str) -> None:
    if offline():
        raise SourceError(
            f"{spec.name}: {what} is not in the cache and HF_HUB_OFFLINE forbids the network; "
            "pull it with a network first, or use --mirror DIR"
        )
