"""`speedbench sources` and `speedbench pull`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sources.errors import SourceError
from sources.tables import json_option, print_rows

if TYPE_CHECKING:
    from sources.access import Access
    from sources.base import SourceSpec
    from sources.lock import Lock

logger = logging.getLogger(__name__)

names_argument = click.argument("names", nargs=-1, metavar="[NAME]...")
mirror_option = click.option(
    "--mirror",
    type=click.Path(path_type=Path),
    help="Look in a folder laid out as <org>/<name>/<path> instead of on the network.",
)
_settings = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=_settings)
def sources() -> None:
    """List the sources, check access to them, pin what is not pinned yet."""


@sources.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List every source: where it is, what is pinned, its licence, and what it feeds."""
    from sources.lock import load_lock

    lock = load_lock()
    facts = _all_facts if as_json else _short_facts
    print_rows([facts(spec, lock) for spec in _specs(())], as_json=as_json)


@sources.command("check")
@names_argument
@mirror_option
@json_option
def check_command(names: tuple[str, ...], mirror: Path | None, as_json: bool) -> None:
    """Check access to all sources, or to those named, before a byte of data is fetched."""
    accesses = _accesses(_specs(names), mirror)
    print_rows([asdict(a) for a in accesses], as_json=as_json)
    num_bad = sum(not a.is_readable for a in accesses)
    if num_bad:
        raise SourceError(f"{num_bad} of {len(accesses)} sources cannot be read; the table says why and what to do")


@sources.command("lock")
@names_argument
@click.option("--check", "only_check", is_flag=True, help="Only say what is not pinned; no network.")
@click.option("--update", is_flag=True, help="Take the newest revision also of a source that is pinned.")
@json_option
def lock_command(names: tuple[str, ...], only_check: bool, update: bool, as_json: bool) -> None:
    """Pin the revision, the exact names and the SHA-256 of every file that is not pinned yet."""
    from sources.lock import load_lock, missing_pins

    specs = _specs(names)
    failures = [] if only_check else _pin(specs, update=update)
    lock = load_lock()
    missing = {spec.name: missing_pins(spec, lock) for spec in specs}
    rows = [{"source": name, "locked": _yes(not pins), "missing": ", ".join(pins)} for name, pins in missing.items()]
    print_rows(rows, as_json=as_json)
    if failures:
        lines = "".join(f"\n  {failure}" for failure in failures)
        raise SourceError(f"{len(failures)} of {len(specs)} sources cannot be pinned:{lines}")
    if any(missing.values()):
        num_missing = sum(map(bool, missing.values()))
        raise SourceError(f"{num_missing} of {len(specs)} sources are not locked; run: speedbench sources lock")


@click.command(context_settings=_settings)
@names_argument
@mirror_option
@json_option
def pull(names: tuple[str, ...], mirror: Path | None, as_json: bool) -> None:
    """Fetch the pinned files of all sources, or of those named, into the cache, verified and resumable.

    Access to all of them is checked first. A mirror is read in place: its files are only looked for and digested.

    Environment: HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE as for the Hub's own tools; GITHUB_TOKEN; SPEEDBENCH_CACHE,
    the folder of the cache; SPEEDBENCH_LOCK, another lock than the package's; SPEEDBENCH_GITHUB_RAW,
    SPEEDBENCH_GITHUB_API and SPEEDBENCH_WEB_PROXY, mirrors of hosts that cannot be reached.
    """
    from sources.access import require_access
    from sources.fetch import HubOrigin
    from sources.origins import MirrorOrigin, resolve
    from sources.progress import download_bars

    specs = _specs(names)
    require_access(_accesses(specs, mirror))
    with download_bars() as bars:
        origin = HubOrigin(progress=bars) if mirror is None else MirrorOrigin(mirror)
        resolved = []
        for spec in specs:
            resolved.append(resolve(origin, spec))
            logger.info("%s: %d files", spec.name, len(resolved[-1].files))
    files = [(r.source, f) for r in resolved for f in r.files]
    rows = [{"source": s, "path": f.path, "bytes": f.size, "sha256": f.sha256, "file": str(f.local)} for s, f in files]
    print_rows(rows, as_json=as_json)


def _specs(names: Sequence[str]) -> list[SourceSpec]:
    from sources.registry import SOURCES

    for name in names:
        if name not in SOURCES:
            near = get_close_matches(name, SOURCES, n=1)
            hint = f"did you mean {near[0]}?" if near else "see: speedbench sources list"
            raise SourceError(f"{name}: no such source; {hint}")
    return [SOURCES[name].spec for name in (names or SOURCES)]


def _accesses(specs: Sequence[SourceSpec], mirror: Path | None) -> list[Access]:
    from sources.access import check_access, check_mirror
    from sources.fetch import HubOrigin
    from sources.origins import MirrorOrigin

    return check_access(specs, HubOrigin()) if mirror is None else check_mirror(specs, MirrorOrigin(mirror))


def _pin(specs: Sequence[SourceSpec], *, update: bool) -> list[str]:
    from sources.fetch import HubOrigin
    from sources.lock import lock_path, write_lock
    from sources.pinning import pin_all
    from sources.progress import download_bars

    with download_bars() as bars:
        lock, failures = pin_all(specs, HubOrigin(progress=bars), update=update)
    write_lock(lock, lock_path())
    return failures


def _short_facts(spec: SourceSpec, lock: Lock) -> dict[str, Any]:
    from sources.lock import is_locked, source_revision

    return {
        "name": spec.name,
        "id": spec.source,
        "revision": source_revision(spec, lock)[:12] or "unlocked",
        "locked": _yes(is_locked(spec, lock)),
        "licence": spec.license.id,
        "text": "published" if spec.may_publish else "by reference",
        "feeds": ", ".join(spec.feeds),
    }


def _all_facts(spec: SourceSpec, lock: Lock) -> dict[str, Any]:
    from sources.lock import is_locked, missing_pins, source_revision

    return {
        "name": spec.name,
        "title": spec.title,
        "id": spec.source,
        "host": spec.host,
        "revision": source_revision(spec, lock),
        "locked": is_locked(spec, lock),
        "missing_pins": missing_pins(spec, lock),
        "license": asdict(spec.license),
        "gated": spec.gated,
        "may_publish": spec.may_publish,
        "publish_reason": spec.publish_reason,
        "feeds": spec.feeds,
        "priority": spec.priority,
        "files": {
            key: {"path": f.path, "format": f.format, "columns": dict(f.columns)} for key, f in spec.files.items()
        },
        "citation": spec.citation,
    }


def _yes(claim: bool) -> str:
    return "yes" if claim else "no"
