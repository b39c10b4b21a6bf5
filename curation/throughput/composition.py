"""How a passage becomes a prompt: head and tail, which stay whole, and a body of pieces, which is fitted.

The head begins with words of the target's own (its question, path, title or first line), and the instruction that all
rows of a source share stands in the tail: so two rows differ within their first tokens, and an engine's prefix cache
finds nothing to reuse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from curation.throughput.shelf import Shelf

CountTokens = Callable[[str], int]

CONTINUATION_CHARS = 2_000
"""Code points behind a cut that count as the expected continuation."""

PREFIX_RULE = (
    "Every prompt begins with words of its own record (the question, the path of the file, the first lines of the "
    "conversation or passage); the instruction that all prompts of a source share stands at the end. No two rows of a "
    "config share their first {num_tokens} tokens: a row that would is refused and another takes its place."
)
"""What the card says about prefix caches; `num_tokens` is one more than two rows may share."""


class Unfit(ValueError):
    """A target cannot become a prompt of this length: the reason in words for the ledger, and the figure at fault."""

    def __init__(self, reason: str, score: float | None = None) -> None:
        super().__init__(reason)
        self.score = score


@dataclass(frozen=True, slots=True)
class Target:
    """A record that may be the target of a row.

    Attributes
    ----------
    source, src_id
        Name of the spec, and what the published row names.
    record_id
        `source:src_id`.
    identity
        Targets of one identity never meet in a config, e.g. one question with different answers.
    preferred
        False if it is tried only after all others: it is likely to be refused at this length.
    """

    source: str
    src_id: str
    identity: str
    preferred: bool = True

    @property
    def record_id(self) -> str:
        """`source:src_id`, unique over all sources."""
        return f"{self.source}:{self.src_id}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the body, and the record it comes from."""

    text: str
    record_id: str


@dataclass(frozen=True, slots=True)
class Composition:
    """A prompt before it is fitted.

    Attributes
    ----------
    head, tail
        Kept whole.
    pieces
        The body, as many as are asked for; each can be cut.
    sub_category, template_id
        As published.
    license
        SPDX id of the record's own licence; "" where it is the source's.
    answer
        The expected answer; "" if there is none.
    continues
        True if what is expected is what follows the cut in the body's first record.
    keep_chars
        Code points of the body that must survive.
    max_body_chars
        Code points of the body that may be used, so that passages do not overlap; 0 for any number.
    """

    head: str
    pieces: Iterator[Piece]
    tail: str
    sub_category: str
    template_id: str
    license: str = ""
    answer: str = ""
    continues: bool = False
    keep_chars: int = 1
    max_body_chars: int = 0


class Composer(Protocol):
    """How one source becomes prompts. Every answer depends on its arguments alone."""

    @property
    def source(self) -> str:
        """Name of the spec."""
        ...

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield the records that may be targets at a length of `num_tokens`, in the order of their ids."""
        ...

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return the prompt of one target, before it is fitted.

        Raises
        ------
        Unfit
            If this target gives none of this length.
        """
        ...


def generator(*key: str) -> np.random.Generator:
    """Return a generator seeded by the SHA-256 of a key: the same for a row wherever and whenever it is built."""
    digest = hashlib.sha256("\x1f".join(key).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def drawn(shelf: Shelf, source: str, group: str, src_id: str) -> list[str]:
    """Return the other records of a group in the order in which a target draws them, each once."""
    record_id = f"{source}:{src_id}"
    others = [other for other in shelf.group(source, group) if other != record_id]
    return [others[i] for i in generator("context", source, src_id).permutation(len(others))]
