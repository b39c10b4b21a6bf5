"""Where the cache is. Apart from `sources.cache`, whose HTTP clients take a quarter of a second to load."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the cache folder: `$SPEEDBENCH_CACHE`, else `~/.cache/speedbench`."""
    root = os.environ.get("SPEEDBENCH_CACHE", "")
    return Path(root) if root else Path.home() / ".cache" / "speedbench"
