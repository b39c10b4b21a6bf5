"""The files of a source at the revision that a row names; nothing is ever asked for without one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from sources.base import Rejected, Row, SourceSpec
from sources.fetch import HubOrigin
from sources.lock import effective_revision, is_locked
from sources.origins import Origin, ResolvedFiles, open_source, resolve
from sources.registry import SOURCES

_REVISION = re.compile(r"[0-9a-f]{40}")


class Unpinned(Exception):
    """No revision of a source is known: says what to do."""


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """The rows of a source's files, and the paths that its origin lacks."""

    spec: SourceSpec
    resolved: ResolvedFiles

    def rows(self, key: str) -> Iterator[Row]:
        """Yield the good rows of all files of a key; see `sources.base.Files`."""
        rejected: list[Rejected] = []
        return open_source(self.spec, self.resolved, rejected.append).rows(key)

    def placed_rows(self, key: str) -> list[tuple[Row, int]]:
        """Return the good rows of a key, each with its place from 0 in its file: blank lines are none, bad rows are."""
        rejected: list[Rejected] = []
        rows = list(open_source(self.spec, self.resolved, rejected.append).rows(key))
        lines: defaultdict[str, list[int]] = defaultdict(list)
        for file, line in [(r.file, r.line) for r in rows] + [(r.file, r.line) for r in rejected]:
            lines[file].append(line)
        places = {(file, line): i for file in lines for i, line in enumerate(sorted(set(lines[file])))}
        return [(row, places[row.file, row.line]) for row in rows]

    @property
    def absent(self) -> str:
        """A remark on the files that the origin lacks; "" if it has all."""
        return "".join(f"; {absent.path} is absent" for absent in self.resolved.absent)


def open_at(origin: Origin, spec: SourceSpec, revision: str) -> OpenFiles:
    """Return the files of a source at a revision.

    A mirror cannot tell its revision: it is read as it is, and the digest of each row decides.

    Parameters
    ----------
    origin
        The Hub, a mirror or the samples.
    spec
        The source.
    revision
        What the row names: 40 hex digits are asked for. Anything else (of a web file the digest, or nothing) stands for
        what the spec or the lock pins.

    Raises
    ------
    Unpinned
        If the Hub is the origin, and neither the row nor the lock names a revision.
    SourceError
        If the source cannot be read.
    """
    at = pinned(origin, spec, revision)
    # An absent file is not fatal here: each row that can be had is checked alone.
    return OpenFiles(at, resolve(origin, at, allow_short=True))


def pinned(origin: Origin, spec: SourceSpec, revision: str) -> SourceSpec:
    """Return the spec at the revision to ask for; see `open_at`."""
    if not isinstance(origin, HubOrigin):
        return spec
    if spec.host == "web":
        if not is_locked(spec, origin.lock):
            raise Unpinned("its files are not locked; run `speedbench sources lock`, or use --mirror DIR")
        return spec
    wanted = revision if _REVISION.fullmatch(revision) else effective_revision(spec, origin.lock)
    if not wanted:
        raise Unpinned("neither row nor lock names a revision; run `speedbench sources lock`, or use --mirror DIR")
    return replace(spec, revision=wanted)


def pinned_specs(wanted: Iterable[tuple[str, str]], origin: Origin) -> list[SourceSpec]:
    """Return the specs of (name, revision) at the revision to ask for, each once; those without one are left out."""
    found: dict[tuple[str, str], SourceSpec] = {}
    for name, revision in wanted:
        with suppress(Unpinned):
            spec = pinned(origin, SOURCES[name].spec, revision)
            found.setdefault((name, spec.revision), spec)
    return list(found.values())
