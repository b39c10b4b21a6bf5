"""What a release would be: its files, the version step against the previous one, and the changelog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cards.stamps import with_stamps
from curation.diff import Diff, diff_dists
from curation.load import CHECKSUMS, resolve_dist
from curation.release.remote import Digest, State
from curation.store import checksums_text
from curation.verify.base import CARD, CHANGELOG, Subject
from curation.verify.files import FROM_THE_HUB, checksums_of, digest_of
from curation.versions import is_allowed_step, next_version

_HEAD = """# Changelog

Versions are X.Y.Z. X grows when ids or columns change, Y when rows or their text do, Z when neither does. A tag is
never moved.
"""

_CARD_FILES = (CARD, CHANGELOG, CHECKSUMS)


@dataclass(frozen=True)
class Plan:
    """A release that may be pushed.

    Attributes
    ----------
    repo, version
        `ORG/NAME`, and X.Y.Z.
    files
        Path in the repository to the bytes, or to where they lie.
    digests
        Path to the digest of those bytes, read when the plan was made.
    overlay
        The files of `files` that are not yet those of the DIST: card, changelog and checksums.
    previous
        The tag of the previous release; "" for the first.
    parent
        The newest commit when the plan was made; "" while there is no repository.
    entry
        The changelog entry.
    """

    repo: str
    version: str
    files: Mapping[str, bytes | Path]
    digests: Mapping[str, Digest]
    overlay: Mapping[str, bytes]
    previous: str
    parent: str
    entry: str

    @property
    def tag(self) -> str:
        """The tag of the release."""
        return f"v{self.version}"

    @property
    def title(self) -> str:
        """The title of its commit, by which it is found again."""
        return f"Release {self.tag}"

    def matches(self, tree: Mapping[str, str]) -> bool:
        """Tell whether a revision of the repository holds exactly these files."""
        own = {path: stated for path, stated in tree.items() if path not in FROM_THE_HUB}
        return own.keys() == self.digests.keys() and all(self.digests[path].is_of(own[path]) for path in own)

    def stale(self, tree: Mapping[str, str]) -> list[str]:
        """Return the files of a revision that the release has not."""
        return sorted(set(tree) - set(self.digests) - FROM_THE_HUB)

    def changes(self, tree: Mapping[str, str]) -> list[dict[str, str]]:
        """Return what a push would do to each file of a revision."""
        added = [{"file": p, "change": _change(self.digests[p], tree.get(p))} for p in sorted(self.digests)]
        return added + [{"file": path, "change": "delete"} for path in self.stale(tree)]


def is_version(text: str) -> bool:
    """Tell whether a text is a version, X.Y.Z or vX.Y.Z."""
    try:
        next_version(text, "none")
    except ValueError:
        return False
    return True


def version_key(version: str) -> tuple[int, ...]:
    """Return what versions are ordered by."""
    return tuple(map(int, version.removeprefix("v").split(".")))


def releases(state: State) -> list[str]:
    """Return the tags vX.Y.Z of a repository, the oldest first."""
    return sorted((tag for tag in state.tags if tag.startswith("v") and is_version(tag)), key=version_key)


def previous_release(state: State, version: str) -> str:
    """Return the tag of the newest release before a version; "" if there is none."""
    before = [tag for tag in releases(state) if version_key(tag) < version_key(version)]
    return before[-1] if before else ""


def version_refusals(state: State, version: str, diff: Diff | None) -> list[str]:
    """Say why a version cannot follow on what is released; its own tag, from an earlier try, is nothing against it."""
    known = releases(state)
    later = [tag for tag in known if version_key(tag) > version_key(version)]
    if later:
        return [f"version {version}: {later[-1]} is released already; a release is newer than all others"]
    previous = previous_release(state, version)
    if not previous or diff is None or is_allowed_step(previous, version, diff.step):
        return []
    least = next_version(previous.removeprefix("v"), diff.step)
    why = {"major": "ids or columns changed", "minor": "rows or their text changed"}.get(diff.step, "files changed")
    return [f"version {version}: {why} since {previous}, so it is {least} at least"]


def difference(subject: Subject, repo: str, previous: str) -> Diff | None:
    """Compare a DIST with the previous release; None if there is none. Card, changelog and checksums always differ."""
    if not previous:
        return None
    diff = diff_dists(f"{repo}@{previous}", subject.folder)
    return replace(diff, files=tuple(name for name in diff.files if name not in _CARD_FILES))


def changelog_entry(subject: Subject, version: str, diff: Diff | None) -> str:
    """Return the entry of a version: the difference, or for the first release what it holds."""
    if diff is not None:
        return diff.changelog_entry(version)
    lines = [
        f"- `{config}`: {sum(1 for _ in subject.rows(config, ['category'])):,} rows." for config in subject.schemas
    ]
    return f"## {version}\n\n- The first release.\n" + "".join(f"{line}\n" for line in lines)


def overlay_of(subject: Subject, repo: str, version: str, previous: str, entry: str) -> dict[str, bytes]:
    """Return card, changelog and checksums as they are about to be: the same, whoever stamped the DIST before."""
    card = (subject.read(CARD) or b"").decode("utf-8")
    stamped = with_stamps(card, {"release": _quick_start(repo, version, subject), "changelog": _latest(entry)})
    overlay = {CARD: stamped.encode(), CHANGELOG: changelog(repo, previous, entry).encode()}
    # What was listed stays as it was listed: a file that was changed since must not be passed for a good one.
    listed = checksums_of((subject.read(CHECKSUMS) or b"").decode("utf-8", "replace"))
    listed |= {name: digest_of(replace(subject, overlay=overlay), name) for name in overlay}
    return {**overlay, CHECKSUMS: checksums_text(listed).encode()}


def changelog(repo: str, previous: str, entry: str) -> str:
    """Return the changelog: the new entry above those of the previous release."""
    earlier = ""
    if previous:
        path = resolve_dist(f"{repo}@{previous}") / CHANGELOG
        text = path.read_text("utf-8") if path.is_file() else ""
        earlier = "".join(text.partition("\n## ")[1:])
    return f"{_HEAD}\n{entry.rstrip()}\n{earlier}"


def make_plan(subject: Subject, repo: str, version: str, state: State, diff: Diff | None) -> Plan:
    """Return the release that a DIST would be."""
    previous = previous_release(state, version)
    entry = changelog_entry(subject, version, diff)
    overlay = overlay_of(subject, repo, version, previous, entry)
    names = sorted({*subject.files, *overlay} - FROM_THE_HUB)
    files: dict[str, bytes | Path] = {name: overlay.get(name, subject.folder / name) for name in names}
    digests = {n: Digest.of(data) if isinstance(data, bytes) else Digest.of_file(data) for n, data in files.items()}
    return Plan(repo, version, files, digests, overlay, previous, state.head, entry)


def other_files(plan: Plan, revision: str) -> str:
    """Say that the tag of a release stands on other files."""
    return (
        f"{plan.repo}: {plan.tag} is on {revision[:12]} with other files, and a tag is never moved; "
        "release this under the next version"
    )


def _change(digest: Digest, stated: str | None) -> str:
    if stated is None:
        return "add"
    return "none" if digest.is_of(stated) else "replace"


def _quick_start(repo: str, version: str, subject: Subject) -> str:
    config = "qualitative" if "qualitative" in subject.configs else min(subject.configs)
    return f"""Version {version} of `{repo}`. Always name a revision: a tag is never moved.

```python
from datasets import load_dataset

rows = load_dataset("{repo}", "{config}", split="test", revision="v{version}")
```

`datasets` serves another cached version where the Hub cannot be reached. `speedbench.load("{repo}@v{version}",
"{config}")` does not: it checks revision and digests, and refuses placeholders."""


def _latest(entry: str) -> str:
    return f"{entry.replace('## ', '### ', 1).rstrip()}\n\nEarlier versions: [{CHANGELOG}]({CHANGELOG})."
