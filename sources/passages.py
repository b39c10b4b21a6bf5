"""What the throughput split is made of: long texts with their question, answer and parts.

A record of the qualitative split is a prompt; a passage is material that is fitted to a length. Like `sources.base`,
this module imports the standard library and its own package only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sources.base import TIERS, Files, Rejected, SourceSpec


@dataclass(frozen=True, slots=True)
class Part:
    """A named piece of a passage: a file of a repository, a candidate answer, a segment of a book."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of throughput material.

    Attributes
    ----------
    source
        Name of its spec.
    native_id
        The source's own id, or 16 hex digits of its canonical digest.
    task
        What the published `sub_category` holds: the source's task, programming language or subject.
    group
        Passages of one source and group may stand as context of one another; "" for all of the source.
    title
        Name of the work, path of the file, or the question; "" if none.
    text
        The text that a prompt shortens or goes on with; "" where `parts` hold it.
    before, after
        Text that stands around it and is never cut; "" if none.
    answer
        The expected answer or continuation; "" if the source has none.
    parts
        Named pieces, in the source's order.
    lines
        Candidate lines of `text`, from 0, for completion at a line.
    license
        SPDX id where the source's records differ in licence (code, by repository); "" for the source's own.
    """

    source: str
    native_id: str
    task: str
    text: str = ""
    group: str = ""
    title: str = ""
    before: str = ""
    after: str = ""
    answer: str = ""
    parts: tuple[Part, ...] = ()
    lines: tuple[int, ...] = ()
    license: str = ""

    def __post_init__(self) -> None:
        if not self.native_id:
            raise ValueError(f"{self.source}: a passage needs a native id")
        if not (self.text or self.parts):
            raise ValueError(f"{self.record_id}: a passage needs text or parts")

    @property
    def record_id(self) -> str:
        """`source:native_id`, unique over all sources."""
        return f"{self.source}:{self.native_id}"

    @property
    def num_chars(self) -> int:
        """Code points of its text and parts."""
        return len(self.text) + sum(len(part.text) for part in self.parts)


ReadPassages = Callable[[Files], Iterator["Passage | Rejected"]]


@dataclass(frozen=True, slots=True)
class PassageSource:
    """A registered source of the throughput split: its facts, its tier, and how to read it."""

    spec: SourceSpec
    tier: str
    parse: ReadPassages

    def __post_init__(self) -> None:
        if self.tier not in TIERS:
            raise ValueError(f"{self.spec.name}: tier must be one of {', '.join(TIERS)}, got {self.tier!r}")
