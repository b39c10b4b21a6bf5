"""Which files a DIST holds, and whether they are the ones that were built."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from cards.stamps import without_stamps
from curation.load import CHECKSUMS
from curation.store import file_digests
from curation.verify.base import CARD, CHANGELOG, Fault, Subject
from sources.disk import file_sha256

FROM_THE_HUB = frozenset({".gitattributes"})
"""What the Hub itself puts into a repository."""

_UNPORTABLE = re.compile(r'[\\:*?"<>|\x00-\x1f]')
_REBUILD = "build it again"


def check_layout(subject: Subject) -> Iterator[Fault]:
    """Find files that no build wrote, names that some systems cannot hold, and scripts that `datasets` would take."""
    expected = _expected(subject)
    for name in subject.files:
        if PurePosixPath(name).suffix == ".py":
            message = "a Python file: datasets takes one named like its repository for a loading script and refuses"
            yield Fault("files", name, "", message, "delete it")
        elif _UNPORTABLE.search(name):
            yield Fault("files", name, "", "a name that not every file system can hold", "rename it")
        elif expected is not None and name not in expected:
            yield Fault("files", name, "", "a leftover file: no part of the build", "delete it")
    for name in sorted((expected or frozenset()) - set(subject.files) - FROM_THE_HUB - {CHANGELOG, CHECKSUMS}):
        yield Fault("files", name, "", "absent", _REBUILD)


def check_digests(subject: Subject) -> Iterator[Fault]:
    """Find files that differ from `SHA256SUMS`, and files of the build that differ from its manifest."""
    yield from _against_checksums(subject)
    manifest = subject.manifest
    if manifest is None:
        return
    recorded = {str(k): str(v) for k, v in manifest.get("files", {}).items()}
    found = file_digests(subject.folder.parent)
    for name in sorted(recorded):
        if name.startswith("dist/"):
            yield from _against_manifest(subject, name, recorded[name])
        elif name not in found:
            yield Fault("digests", f"../{name}", "", "absent, though manifest.json lists it", _REBUILD)
        elif found[name] != recorded[name]:
            yield Fault("digests", f"../{name}", "", "its SHA-256 differs from manifest.json", _REBUILD)


def checksums_of(text: str) -> dict[str, str]:
    """Return path -> SHA-256 of the text of a checksum file."""
    pairs = (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    return {name: digest for digest, name in pairs}


def digest_of(subject: Subject, name: str) -> str:
    """Return the SHA-256 of a file as it is about to be."""
    if name in subject.overlay:
        return hashlib.sha256(subject.overlay[name]).hexdigest()
    return file_sha256(subject.folder / name)


def _expected(subject: Subject) -> frozenset[str] | None:
    """Return the files that belong to the DIST; None where nothing says which do."""
    if subject.manifest is not None:
        built = (str(name) for name in subject.manifest.get("files", {}))
        own = {name.removeprefix("dist/") for name in built if name.startswith("dist/")}
        return frozenset({*own, CHANGELOG, CHECKSUMS, *FROM_THE_HUB})
    sums = subject.read(CHECKSUMS)
    if sums is None:
        return None
    return frozenset({*checksums_of(sums.decode("utf-8", "replace")), CHECKSUMS, *FROM_THE_HUB})


def _against_checksums(subject: Subject) -> Iterator[Fault]:
    sums = subject.read(CHECKSUMS)
    if sums is None:
        if subject.is_ours:
            yield Fault("digests", CHECKSUMS, "", "absent", _REBUILD)
        return
    listed = checksums_of(sums.decode("utf-8", "replace"))
    present = set(subject.files) - FROM_THE_HUB - {CHECKSUMS}
    for name in sorted(present - set(listed)):
        yield Fault("digests", name, "", f"not listed in {CHECKSUMS}", "delete it, or build again")
    for name in sorted(set(listed) - present):
        yield Fault("digests", name, "", f"absent, though {CHECKSUMS} lists it", _REBUILD)
    for name in sorted(present & set(listed)):
        if digest_of(subject, name) != listed[name]:
            yield Fault("digests", name, "", f"its SHA-256 differs from {CHECKSUMS}", _REBUILD)


def _against_manifest(subject: Subject, name: str, recorded: str) -> Iterator[Fault]:
    own = name.removeprefix("dist/")
    if own == CHECKSUMS or own not in subject.files:
        return  # the one changes with the card's stamps, the other is a fault of `files`
    found = digest_of(subject, own)
    if own == CARD:
        # A release writes into marked places of the card, and nowhere else.
        found = hashlib.sha256(
            without_stamps((subject.read(own) or b"").decode("utf-8", "replace")).encode()
        ).hexdigest()
    if found != recorded:
        yield Fault("digests", own, "", "its SHA-256 differs from manifest.json", _REBUILD)
