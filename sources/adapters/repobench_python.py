"""RepoBench Python v1.1: the next line of a file, given other files of its repository; see sources.repobench."""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, Rejected
from sources.passages import Passage
from sources.repobench import passages, spec

SPEC = spec("repobench_python", "RepoBench Python v1.1", "tianyang/repobench_python_v1.1")


def parse(files: Files) -> Iterator[Passage | Rejected]:
    """Yield the places to complete."""
    yield from passages(files, SPEC, "python")
