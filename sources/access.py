"""Whether every source can be read, found out before a byte of data is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

import requests

from sources.base import SourceSpec
from sources.download import NotThere
from sources.errors import SourceError
from sources.fetch import HubOrigin
from sources.hosts import Refused, explain, file_url, hub_access, offline
from sources.http import Unreachable, send
from sources.origins import Absent, MirrorOrigin, folder_paths

PARALLEL_CHECKS = 8

_NO_HEAD = frozenset({HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})
# A server that answers no HEAD says nothing against the file.

State = Literal["ok", "cached", "incomplete", "failed"]


@dataclass(frozen=True, slots=True)
class Access:
    """Whether one source can be read; if not, why and what to do. `incomplete`: some of its files are absent."""

    source: str
    repo: str
    state: State
    reason: str = ""
    remedy: str = ""

    @property
    def is_readable(self) -> bool:
        """True if all of its files can be had."""
        return self.state in {"ok", "cached"}

    def __str__(self) -> str:
        return f"{self.source} ({self.repo}): {self.reason}; {self.remedy}"


def check_access(specs: Sequence[SourceSpec], origin: HubOrigin) -> list[Access]:
    """Return for every source whether it can be read, in the order given.

    A source whose files are all in the cache is not asked for. The Hub is asked for the right to read and for the list
    of files at the pinned revision, other hosts for the head of each file: no byte of data.
    """
    with requests.Session() as session, ThreadPoolExecutor(PARALLEL_CHECKS) as pool:
        return list(pool.map(lambda spec: _checked(session, spec, origin), specs))


def check_mirror(specs: Sequence[SourceSpec], origin: MirrorOrigin) -> list[Access]:
    """Return for every source whether its files are in a mirror, in the order given."""
    checked = []
    for spec in specs:
        folder = origin.folder(spec)
        checked.append(_state_of(spec, folder_paths(spec, folder, f"put it under {folder}")[1]))
    return checked


def require_access(accesses: Sequence[Access], *, allow_short: bool = False) -> None:
    """Refuse, with one report of all sources that cannot be read.

    Raises
    ------
    SourceError
        If a source failed, or, without `allow_short`, lacks files.
    """
    bad = [a for a in accesses if not a.is_readable and not (allow_short and a.state == "incomplete")]
    if bad:
        lines = "".join(f"\n  {a}" for a in bad)
        raise SourceError(f"{len(bad)} of {len(accesses)} sources cannot be read, nothing was fetched:{lines}")


def _checked(session: requests.Session, spec: SourceSpec, origin: HubOrigin) -> Access:
    if origin.is_cached(spec):
        return Access(spec.name, spec.repo, "cached")
    if offline():
        remedy = "unset HF_HUB_OFFLINE and pull it once, or use --mirror DIR"
        return Access(spec.name, spec.repo, "failed", "not in the cache, and HF_HUB_OFFLINE is set", remedy)
    look = _absent_on_hub if spec.host == "hub" else _absent_on_web
    try:
        with origin.cache.usable(spec):
            absent = look(session, spec, origin)
    except (Refused, NotThere) as refused:
        reason, remedy = explain(spec, refused.status, refused.code)
        return Access(spec.name, spec.repo, "failed", reason, remedy)
    except Unreachable as error:
        remedy = "check the network (and HF_ENDPOINT), or use --mirror DIR"
        return Access(spec.name, spec.repo, "failed", f"network unreachable: {error.reason}", remedy)
    except SourceError as error:
        return Access(spec.name, spec.repo, "failed", str(error), "see the message")
    return _state_of(spec, absent)


def _absent_on_hub(session: requests.Session, spec: SourceSpec, origin: HubOrigin) -> list[Absent]:
    hub_access(session, spec)
    listing = origin.listing(session, spec)
    wanted, absent = origin.plan(spec, listing)
    gone = [w.path for w in wanted if w.path not in listing.files]
    return absent + [Absent(spec.name, path, "mend the spec or its revision") for path in gone]


def _absent_on_web(session: requests.Session, spec: SourceSpec, origin: HubOrigin) -> list[Absent]:
    wanted, absent = origin.plan(spec, origin.listing_if_needed(session, spec))
    for each in wanted:
        url = file_url(spec, origin.revision(spec), each.path)
        with send(session, "HEAD", url, headers={"Accept-Encoding": "identity"}) as response:
            if response.status_code == HTTPStatus.NOT_FOUND:
                absent.append(Absent(spec.name, each.path, "mend the spec or its revision"))
            elif not response.ok and response.status_code not in _NO_HEAD:
                raise Refused(f"{spec.name}: {url}", response.status_code)
    if wanted and len(absent) >= len(wanted):
        raise Refused(f"{spec.name}: nothing of it is there", HTTPStatus.NOT_FOUND)
    return absent


def _state_of(spec: SourceSpec, absent: Sequence[Absent]) -> Access:
    if not absent:
        return Access(spec.name, spec.repo, "ok")
    paths = ", ".join(a.path for a in absent)
    return Access(spec.name, spec.repo, "incomplete", f"absent: {paths}", absent[0].remedy)
