"""What an embedder is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some vectors as they arrive: places in the list of texts, unit vectors of the same order, refused places.

    `refused` holds (place, reason) of texts for which there is no vector.
    """

    places: tuple[int, ...]
    vectors: Vectors
    refused: tuple[tuple[int, str], ...] = ()


class Embedder(Protocol):
    """One of the registry of `curation.embedding`."""

    @property
    def id(self) -> str:
        """All that a vector depends on beside the text, fit for a folder's name."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def usd_per_million_tokens(self) -> float | None:
        """What the service asks, as far as we know; None where nothing is paid."""
        ...

    def check(self) -> None:
        """Raise `EmbeddingError` if it cannot be used: no key, no package."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Return the tokens of each text by the embedder's tokenizer, or None where length is not counted in tokens."""
        ...

    def shorten(self, text: str) -> str:
        """Return what of a text is embedded: all of it unless it is over the limit of one input."""
        ...

    def embed(self, texts: Sequence[str], *, workers: int) -> Iterator[Batch]:
        """Yield the vectors of texts that are neither blank nor too long, in batches, in any order."""
        ...


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """Return the rows as float32 of unit norm; a row that is zero or not finite becomes NaN."""
    wide = np.asarray(vectors, np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    norms[~((norms > 0) & (norms < np.inf))] = np.nan
    out: Vectors = (wide / norms).astype(np.float32)
    return out
