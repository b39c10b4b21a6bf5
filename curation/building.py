"""The folder of a build while it is written: of one process, and whole or not there."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from curation.errors import BuildError, DistError
from curation.load import CHECKSUMS, read_manifest
from curation.store import BuildFolder

LOCK = ".build.lock"
"""Lies in every folder of a build: held while one writes there, and the sign that the folder is ours to empty."""

SCRATCH = ".build.tmp"
"""Where a build writes until it is whole; what a killed one left there goes when the next one begins."""


@contextmanager
def whole_build(root: Path) -> Generator[BuildFolder]:
    """Yield a scratch folder whose files become those of the build at `root` only if the block succeeds.

    An earlier build at `root` stays until then.

    Raises
    ------
    BuildError
        If `root` lies in a DIST, holds files that no build wrote, is being built, or cannot be written.
    """
    try:
        refuse_foreign(root)
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / LOCK, timeout=0):
            yield from _scratch(BuildFolder(root))
    except Timeout:
        raise BuildError(f"--out {root}: another build is writing there; wait for it, or name another folder") from None
    except OSError as error:
        where = error.filename2 or error.filename or f"--out {root}, or the cache"
        remedy = "free space, or name another --out or SPEEDBENCH_CACHE"
        raise BuildError(f"{where}: {error.strerror or error}; {remedy}") from error


def _scratch(target: BuildFolder) -> Generator[BuildFolder]:
    scratch = BuildFolder(target.root / SCRATCH)
    shutil.rmtree(scratch.root, ignore_errors=True)
    try:
        scratch.begin()
        yield scratch
        _put_in_place(scratch, target)
    finally:
        shutil.rmtree(scratch.root, ignore_errors=True)


def _put_in_place(scratch: BuildFolder, target: BuildFolder) -> None:
    """Empty the target of an earlier build and move the new one there, its manifest last."""
    target.begin()
    paths = sorted(scratch.root.iterdir(), key=lambda path: (path == scratch.manifest, path.name))
    for path in paths:
        path.replace(target.root / path.name)


def refuse_foreign(root: Path) -> None:
    """Refuse a folder that a build would empty of what no build wrote.

    Raises
    ------
    BuildError
        If it lies in a DIST, or holds a `dist`, `full`, `pool` or manifest but no sign of a build.
    """
    for folder in (root, *root.absolute().parents):
        if (folder / CHECKSUMS).is_file() and (folder / "data").is_dir():
            raise BuildError(f"--out {root}: lies in the DIST {folder}, which it would change; name another folder")
    build = BuildFolder(root)
    taken = [path for path in (build.dist, build.full, build.pool, build.manifest) if path.exists()]
    if taken and not (root / LOCK).is_file() and not _is_built(build):
        raise BuildError(f"{taken[0]}: no build wrote it, and one would remove it; name another --out or move it away")


def _is_built(build: BuildFolder) -> bool:
    try:
        manifest = read_manifest(build.dist)
    except DistError:
        return False
    return manifest is not None and {"recipe", "origin", "files"} <= set(manifest)
