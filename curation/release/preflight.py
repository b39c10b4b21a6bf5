"""Everything that stands in the way of a release, found in one pass before a byte is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from curation.errors import DistError, ReleaseError
from curation.recipe import Recipe, load_recipe
from curation.release.plan import (
    Plan,
    difference,
    is_version,
    make_plan,
    other_files,
    previous_release,
    version_refusals,
)
from curation.release.remote import Remote, State
from curation.verify.base import Fault, Subject, open_subject
from curation.verify.build import LOCK
from curation.verify.registry import verify_subject
from sources.base import SourceSpec
from sources.errors import Refusal
from sources.lock import Lock, load_lock, missing_pins

MAX_NAMED_FAULTS = 20
"""Faults of one check that a preflight prints; of more it gives the number, and `speedbench verify` prints all."""


@dataclass(slots=True)
class Preflight:
    """What stands in the way, and the plan where one could be made; `notes` are no refusals."""

    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plan: Plan | None = None
    tree: dict[str, str] = field(default_factory=dict)


def preflight(dist: str, remote: Remote, version: str) -> Preflight:
    """Check that a DIST can be pushed: token and its right, repository, version, build, pins and every fault of it."""
    found = Preflight()
    state = _check_remote(found, remote, version)
    try:
        subject = open_subject(dist, is_local=False)
    except DistError as error:
        found.refusals.append(str(error))
        return found
    # One of a mirror has to be built again, so what a build needs is in the way too.
    to_build = None if (subject.manifest or {}).get("origin") == "hub" else subject.recipe
    if to_build is not None:
        found.refusals += build_refusals(to_build, subject.lock)
    if state is not None:
        _make_plan(found, subject, remote, version, state)
    overlay = found.plan.overlay if found.plan else {}
    verification = verify_subject(Subject(subject.folder, overlay, False, subject.specs, subject.lock))
    faults = [fault for fault in verification.faults if to_build is None or fault.file != LOCK]  # pins: said above
    found.refusals += fault_lines(faults)
    return found


def preflight_build(recipe_name: str, remote: Remote, version: str) -> Preflight:
    """Check, before a build, what it and its push will need: token, right, version, terms, pins, key; and its cost."""
    found = Preflight()
    state = _check_remote(found, remote, version)
    if state is not None:
        found.refusals += version_refusals(state, version, None)
    recipe = load_recipe(recipe_name)
    found.refusals += build_refusals(recipe)
    if recipe.embedder.name == "openai":
        found.notes.append(cost_note(recipe))
    return found


def build_refusals(recipe: Recipe, lock: Lock | None = None) -> list[str]:
    """Say what keeps a recipe from being built from its sources: open pins, closed sources, no key."""
    from sources.access import check_access
    from sources.fetch import HubOrigin

    lock = load_lock() if lock is None else lock
    specs = recipe_specs(recipe)
    unpinned = [spec.name for spec in specs if missing_pins(spec, lock)]
    refusals = []
    if unpinned:
        refusals.append(f"{len(unpinned)} sources are not pinned: {', '.join(unpinned)}; run: speedbench sources lock")
    closed = [a for a in check_access(specs, HubOrigin(lock=lock)) if not a.is_readable]
    for (reason, remedy), group in groupby(
        sorted(closed, key=lambda a: (a.reason, a.remedy)), lambda a: (a.reason, a.remedy)
    ):
        refusals.append(f"{', '.join(f'{a.source} ({a.repo})' for a in group)}: {reason}; {remedy}")
    if recipe.embedder.name == "openai" and not os.environ.get("OPENAI_API_KEY"):
        refusals.append(
            f"recipe {recipe.name}: OPENAI_API_KEY is not set, and {recipe.embedder.model} needs it; "
            "set it, or build v1-offline"
        )
    return refusals


def cost_note(recipe: Recipe) -> str:
    """Say what embedding a recipe's candidates will cost; without its sources in the cache nobody can know."""
    from curation.options import Options
    from curation.qualitative import estimate_qualitative
    from curation.reading import chosen_sources
    from sources.fetch import HubOrigin
    from sources.registry import QUALITATIVE

    origin = HubOrigin()
    what = f"cost of embedding with {recipe.embedder.model}"
    if not all(origin.is_cached(source.spec) for source in chosen_sources(recipe, QUALITATIVE)):
        return f"{what}: known once the sources are here, so run this again after: speedbench pull"
    found = estimate_qualitative(recipe, Options(origin, ("qualitative",)))
    cost = "unknown" if found.cost_usd is None else f"about {found.cost_usd:.2f} USD"
    return f"{what}: {cost}, {found.to_embed:,} of {found.candidates:,} texts, {found.tokens or 0:,} tokens"


def recipe_specs(recipe: Recipe) -> list[SourceSpec]:
    """Return the specs of all sources that a recipe reads, in the order of the registry."""
    from sources.registry import REFERENCE, SOURCES

    always = {source.spec.name for source in REFERENCE}
    wanted = set(recipe.sources) | always if recipe.sources else set(SOURCES)
    return [source.spec for name, source in SOURCES.items() if name in wanted]


def fault_lines(faults: Sequence[Fault]) -> list[str]:
    """Return a line for each fault, the first of each check where there are many."""
    lines: list[str] = []
    for check, group in groupby(faults, lambda fault: fault.check):
        listed = list(group)
        lines += [str(fault) for fault in listed[:MAX_NAMED_FAULTS]]
        if len(listed) > MAX_NAMED_FAULTS:
            lines.append(f"{check}: {len(listed) - MAX_NAMED_FAULTS:,} more faults; speedbench verify prints all")
    return lines


def _check_remote(found: Preflight, remote: Remote, version: str) -> State | None:
    found.refusals += list(_name_refusals(remote.repo, version))
    if found.refusals:
        return None
    try:
        who = remote.identity()
        if not who.may_write(remote.repo):
            found.refusals.append(
                f"{remote.repo}: the token of {who.name} (role {who.role}) may not write there; "
                f"make one that may at {remote.api.endpoint}/settings/tokens"
            )
    except ReleaseError as error:
        found.refusals.append(str(error))
    try:
        return remote.state()
    except ReleaseError as error:
        found.refusals.append(str(error))
        return None


def _name_refusals(repo: str, version: str) -> Iterator[str]:
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo)
    except ValueError as error:
        yield f"--repo {repo}: {str(error).splitlines()[0]}; name it ORG/NAME"
    else:
        if "/" not in repo:
            yield f"--repo {repo}: no owner; name it ORG/NAME"
    if not is_version(version) or version.startswith("v"):
        yield f"--version {version}: not X.Y.Z; e.g. 1.0.0"


def _make_plan(found: Preflight, subject: Subject, remote: Remote, version: str, state: State) -> None:
    try:
        diff = difference(subject, remote.repo, previous_release(state, version))
        found.refusals += version_refusals(state, version, diff)
        if found.refusals:
            return
        found.plan = make_plan(subject, remote.repo, version, state, diff)
        found.tree = remote.tree(state.head) if state.head else {}
        tagged = state.tags.get(found.plan.tag, "")
        if tagged and not found.plan.matches(remote.tree(tagged)):
            found.refusals.append(other_files(found.plan, tagged))
    except Refusal as error:
        found.refusals.append(str(error))


def write_overlay(dist: Path, plan: Plan) -> None:
    """Make the DIST what is uploaded, byte for byte."""
    from sources.disk import atomic

    for name, data in plan.overlay.items():
        with atomic(dist / name) as scratch:
            scratch.write_bytes(data)
