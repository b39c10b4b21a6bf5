"""A release from end to end: preflight, then push; or the preflight alone."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from curation.errors import ReleaseError
from curation.release.plan import Plan
from curation.release.preflight import Preflight, preflight, preflight_build, write_overlay
from curation.release.push import Pushed, Wait, push
from curation.release.remote import Remote

logger = logging.getLogger(__name__)


def release_dist(dist: str, repo: str, version: str, *, wait: Wait = time.sleep) -> Pushed:
    """Push a DIST as a release: verified, its card and changelog written, as one commit with one tag.

    Raises
    ------
    ReleaseError
        With everything that stands in the way, before a byte is sent; or if the push fails for good.
    """
    remote = Remote(repo)
    plan = _plan_of(preflight(dist, remote, version), dist, repo, version)
    write_overlay(Path(dist), plan)
    pushed = push(remote, plan, wait=wait)
    logger.info("%s/tree/%s", remote.url, pushed.tag)
    return pushed


def dry_run_rows(dist: str, repo: str, version: str) -> list[dict[str, str]]:
    """Return what a release would do to each file of the repository, and log the changelog entry; nothing is changed.

    Raises
    ------
    ReleaseError
        With everything that stands in the way.
    """
    found = preflight(dist, Remote(repo), version)
    plan = _plan_of(found, dist, repo, version)
    logger.info("%s after %s, tag %s\n\n%s", repo, plan.previous or "no release", plan.tag, plan.entry)
    return plan.changes(found.tree)


def check_before_build(recipe: str, repo: str, version: str) -> None:
    """Refuse, with one report, what a build and its push will need and do not have.

    Raises
    ------
    ReleaseError
        With everything that stands in the way.
    """
    found = preflight_build(recipe, Remote(repo), version)
    for note in found.notes:
        logger.info("%s", note)
    _refuse(found, f"a build of {recipe}", repo, version)
    logger.info("nothing stands in the way of %s as %s v%s", recipe, repo, version)


def _plan_of(found: Preflight, dist: str, repo: str, version: str) -> Plan:
    _refuse(found, dist, repo, version)
    if found.plan is None:
        raise ReleaseError(f"{dist}: no plan could be made; run again with -v -v")
    return found.plan


def _refuse(found: Preflight, what: str, repo: str, version: str) -> None:
    if found.refusals:
        lines = "".join(f"\n  {line}" for line in found.refusals)
        count = len(found.refusals)
        raise ReleaseError(
            f"{what} cannot be released as {repo} v{version}, nothing was sent; {count} refusals:{lines}"
        )
