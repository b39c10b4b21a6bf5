"""SPEED-Bench, rebuilt in the open: load a split, or run the `speedbench` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curation.load import load

__all__ = ["load"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that `speedbench --help` does not pay for pyarrow.
    if name == "load":
        from curation.load import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
