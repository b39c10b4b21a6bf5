"""`sources lock`: revisions, exact names and digests found out at the origin, for what the lock does not pin yet."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import requests

from sources.base import SourceSpec
from sources.errors import SourceError
from sources.fetch import HubOrigin, Wanted
from sources.hosts import Listing, Refused, explain, list_files
from sources.lock import Lock, LockedFile, LockedSource, is_locked
from sources.origins import Absent, ResolvedFile

logger = logging.getLogger(__name__)


def pin_all(specs: Sequence[SourceSpec], origin: HubOrigin, *, update: bool = False) -> tuple[Lock, list[str]]:
    """Return the lock with what could be pinned, and a line for each source that could not.

    Parameters
    ----------
    specs
        The sources to pin; all others keep their pins.
    origin
        Where to look, with the lock so far.
    update
        Take the newest revision also of a source that is pinned, where its spec names none.
    """
    sources = dict(origin.lock.sources)
    failures: list[str] = []
    for spec in specs:
        if is_locked(spec, origin.lock) and not update:
            continue
        try:
            sources[spec.name] = pin(spec, origin, update=update)
        except SourceError as error:
            failures.append(str(error))
        else:
            logger.info("%s: %d files pinned", spec.name, len(sources[spec.name].files))
    return Lock(sources=sources), failures


def pin(spec: SourceSpec, origin: HubOrigin, *, update: bool = False) -> LockedSource:
    """Return the pins of a source.

    Digests come from the host's list where it tells them (the Hub, of large files); the other files are fetched into
    the cache and digested. What is pinned already at the same revision must still be so.

    Raises
    ------
    SourceError
        If the host refuses or cannot be reached, a file is absent, or one has another digest than the lock says.
    """
    before = LockedSource() if update else origin.lock.of(spec)
    try:
        with requests.Session() as session:
            listing = _listing(session, spec, origin, spec.revision or before.revision)
            # Planned by the list alone: a pattern may match more files than an incomplete lock names.
            bare = replace(origin, lock=Lock(sources={spec.name: LockedSource(revision=listing.revision)}))
            wanted, absent = bare.plan(spec, listing)
            if update and spec.host == "web":
                _forget(wanted)
            outcomes = bare.fetch_all(session, spec, [w for w in wanted if not w.sha256])
    except Refused as refused:
        raise SourceError(f"{spec.name}: " + "; ".join(explain(spec, refused.status, refused.code))) from refused
    absent += [o for o in outcomes if isinstance(o, Absent)]
    if absent:
        raise SourceError(str(absent[0]))
    listed = [LockedFile(path=w.path, sha256=w.sha256, size=listing.files[w.path].size) for w in wanted if w.sha256]
    fetched = [LockedFile(path=o.path, sha256=o.sha256, size=o.size) for o in outcomes if isinstance(o, ResolvedFile)]
    files = {f.path: f for f in (*listed, *fetched)}
    _refuse_changed(spec, before, files)
    return LockedSource(revision=listing.revision, files=tuple(files[path] for path in sorted(files)))


def _listing(session: requests.Session, spec: SourceSpec, origin: HubOrigin, revision: str) -> Listing:
    if spec.host == "web":
        return Listing("", {})
    listing = list_files(session, spec, revision)
    origin.cache.remember(spec, listing, as_found=not revision)
    return listing


def _forget(wanted: Sequence[Wanted]) -> None:
    # A web file has no revision, so only the newest bytes can tell the newest digest.
    for each in wanted:
        each.local.unlink(missing_ok=True)


def _refuse_changed(spec: SourceSpec, before: LockedSource, files: dict[str, LockedFile]) -> None:
    for locked in before.files:
        now = files.get(locked.path)
        if now is not None and now.sha256 != locked.sha256:
            raise SourceError(
                f"{spec.name}: {locked.path} is locked as {locked.sha256[:12]}… and is now {now.sha256[:12]}…; "
                "find out who changed it, then: speedbench sources lock --update"
            )
