"""A folder that is written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from curation.errors import DistError


def refuse_existing(target: Path) -> None:
    """Refuse a target that something lies at; an empty folder is as good as none.

    Raises
    ------
    DistError
        If there is a file, or a folder that holds anything.
    """
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise DistError(f"{target}: exists already and is never written over; name another folder or remove it")


@contextmanager
def new_folder(target: Path) -> Generator[Path]:
    """Yield a scratch folder beside `target`, which becomes `target` only if the block succeeds.

    Raises
    ------
    DistError
        If something lies at `target`, or the disk refuses.
    """
    refuse_existing(target)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        scratch.mkdir(parents=True)
        yield scratch
        scratch.replace(target)  # over an empty folder too
    except OSError as error:
        where = error.filename2 or error.filename or target  # of a copy, the second is what was written
        raise DistError(f"{where}: cannot be written ({error.strerror or error}); nothing is left of it") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
