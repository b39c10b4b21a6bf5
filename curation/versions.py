"""Versions of a release, X.Y.Z, and the steps between them."""

from __future__ import annotations

import re
from typing import Literal, get_args

Step = Literal["none", "patch", "minor", "major"]
"""What of a version X.Y.Z has to grow, from nothing to X."""

STEPS: tuple[Step, ...] = get_args(Step)

_VERSION = re.compile(r"v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def next_version(version: str, step: Step) -> str:
    """Return the version that follows on `version` by a step.

    >>> next_version("1.2.3", "minor")
    '1.3.0'

    Raises
    ------
    ValueError
        If `version` is not X.Y.Z.
    """
    major, minor, patch = _parts(version)
    following = {
        "none": (major, minor, patch),
        "patch": (major, minor, patch + 1),
        "minor": (major, minor + 1, 0),
        "major": (major + 1, 0, 0),
    }[step]
    return ".".join(map(str, following))


def is_allowed_step(old: str, new: str, step: Step) -> bool:
    """Tell whether going from version `old` to `new` is at least a step; a larger one than is needed is allowed."""
    return _parts(new) >= _parts(next_version(old, step))


def _parts(version: str) -> tuple[int, int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"version must be X.Y.Z, got {version!r}")
    return int(match[1]), int(match[2]), int(match[3])
