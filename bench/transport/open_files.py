"""Room for thousands of sockets in one process."""

from __future__ import annotations

import resource
from contextlib import suppress


def raise_open_files() -> None:
    """Raise the soft limit on open files to the hard one; where that is not allowed, connections will say so."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
