"""Files on disk: written whole or not at all, and known by their digest."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.errors import Refusal


@contextmanager
def atomic(target: Path) -> Iterator[Path]:
    """Yield a scratch path beside `target`, of this process and thread, that becomes it only if the block succeeds."""
    if target.exists() and not target.is_file():
        kind = "a folder" if target.is_dir() else "a device or pipe"
        raise Refusal(f"{target}: is {kind}, where a file is to be written; choose another path")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield scratch
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def made_once(target: Path, make: Callable[[Path], None]) -> Path:
    """Return `target`, a file or folder of a cache, which `make` writes under another name if it is not there yet.

    Raises
    ------
    Refusal
        If it cannot be written.
    """
    if target.exists():
        return target
    scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        make(scratch)
        scratch.replace(target)
    except OSError as error:
        # Another process may have made the folder meanwhile; theirs holds the same bytes.
        if not target.exists():
            raise Refusal(f"{target}: {error.strerror}; give a cache folder that can be written") from None
    finally:
        if scratch.is_dir():
            shutil.rmtree(scratch)
        elif scratch.is_file():
            scratch.unlink()
    return target


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
