"""The push: from whatever state an earlier try left, to one commit with one tag."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from curation.errors import ReleaseError
from curation.release.plan import Plan, other_files
from curation.release.remote import Remote, State, Unsettled

logger = logging.getLogger(__name__)

ATTEMPTS = 5
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0

Wait = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Pushed:
    """A release that is there: its tag, its commit, and whether this push made the commit."""

    tag: str
    revision: str
    is_new: bool


def push(remote: Remote, plan: Plan, *, wait: Wait = time.sleep) -> Pushed:
    """Bring the repository to the release, and return it.

    Every try begins with what the repository holds, so that work that was done though its answer was lost is not done
    again: a commit with these very files is taken as the commit of this release, and its tag as the tag.

    Parameters
    ----------
    wait
        Called with seconds before another try.

    Raises
    ------
    ReleaseError
        If somebody else changed the repository, the tag is on other files, or the Hub fails for good. Running it again
        goes on from there.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _advance(remote, plan)
        except Unsettled as trouble:
            wait_s = max(trouble.wait_s, FIRST_WAIT_S * 2 ** (attempt - 1))
            if attempt == ATTEMPTS or wait_s > LONGEST_WAIT_S:
                raise ReleaseError(f"{trouble}; nothing is half done, the same command goes on from here") from None
            logger.info("%s, trying again in %.0f s", trouble, wait_s)
            wait(wait_s)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _advance(remote: Remote, plan: Plan) -> Pushed:
    state = remote.state()
    if not state.head:
        remote.create()
        state = remote.state()
    if plan.tag in state.tags:
        return _tagged(remote, plan, state)
    revision = _committed(remote, plan, state)
    is_new = not revision
    if not revision:
        revision = _commit(remote, plan, state)
    remote.tag(plan.tag, revision)
    after = remote.state()
    if after.tags.get(plan.tag) != revision:
        raise Unsettled(f"{plan.repo}: the Hub does not list {plan.tag} yet; run again in a while")
    return Pushed(plan.tag, revision, is_new)


def _tagged(remote: Remote, plan: Plan, state: State) -> Pushed:
    revision = state.tags[plan.tag]
    if not plan.matches(remote.tree(revision)):
        raise ReleaseError(other_files(plan, revision))
    return Pushed(plan.tag, revision, is_new=False)


def _committed(remote: Remote, plan: Plan, state: State) -> str:
    """Return the commit that holds this release, from an earlier try; "" if there is none."""
    if plan.matches(remote.tree(state.head)):
        return state.head
    earlier = (sha for sha in remote.commits(plan.title) if sha != state.head)
    return next((sha for sha in earlier if plan.matches(remote.tree(sha))), "")


def _commit(remote: Remote, plan: Plan, state: State) -> str:
    if plan.parent and state.head != plan.parent:
        raise ReleaseError(
            f"{plan.repo}: {state.head[:12]} was committed since the preflight saw {plan.parent[:12]}; "
            f"look at {remote.url}/commits/main and run again"
        )
    remote.commit(plan.files, plan.stale(remote.tree(state.head)), state.head, plan.title)
    after = remote.state()
    if plan.matches(remote.tree(after.head)):
        return after.head
    revision = _committed(remote, plan, after)
    if not revision:
        raise ReleaseError(f"{plan.repo}: {after.head[:12]} holds other files than were sent, so it got no tag")
    return revision
