"""Texts to vectors: the registry of embedders, what is sent to them, and what comes of it.

A text that is empty or blank is never sent and gets no vector. Every other text has one, from the cache or from the
embedder; each batch goes into the cache when it arrives, so a build that is killed goes on where it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curation.embedders.base import Embedder
from curation.embedders.openai_api import OpenAIEmbedder
from curation.embedders.use import UseEmbedder
from curation.errors import EmbeddingError
from curation.recipe import EmbedderConfig
from curation.vectors import VectorCache, text_key
from sources.cache_root import cache_root
from sources.progress import work_bar

logger = logging.getLogger(__name__)

_BAD_VECTOR = "its vector is zero or not finite"

Vectors = NDArray[np.float32]

EMBEDDERS: dict[str, Callable[[EmbedderConfig], Embedder]] = {
    "openai": OpenAIEmbedder,
    "use": UseEmbedder,
}


@dataclass(frozen=True, slots=True)
class EmbeddingReport:
    """What became of the texts, by their places in the list.

    Attributes
    ----------
    blank
        Empty or only white space: not sent, no vector.
    cut
        Over the embedder's limit: only the beginning is embedded.
    refused
        (place, reason): the service refused the text alone; no vector.
    cached, embedded
        How many different texts came from the cache, and how many from the embedder.
    """

    blank: tuple[int, ...]
    cut: tuple[int, ...]
    refused: tuple[tuple[int, str], ...]
    cached: int
    embedded: int


@dataclass(frozen=True, slots=True)
class Embedding:
    """Vectors, shape ``(n, dimensions)``, float32 of unit norm, all NaN where there is none; and the report."""

    vectors: Vectors
    report: EmbeddingReport


@dataclass(frozen=True, slots=True)
class Estimate:
    """What embedding would cost; `tokens` and `cost_usd` are None where the embedder counts none and asks nothing."""

    candidates: int
    cached: int
    to_embed: int
    tokens: int | None
    usd_per_million_tokens: float | None
    cost_usd: float | None


def load_embedder(config: EmbedderConfig) -> Embedder:
    """Return the embedder that a recipe names. It is not asked for a key or a model until it must embed."""
    return EMBEDDERS[config.name](config)


def has_vectors(embedder: Embedder, *, root: Path | None = None) -> bool:
    """Tell whether the cache holds any vector of this embedder: without one it must be asked."""
    return ((root or cache_root() / "vectors") / embedder.id).is_dir()


def embed_texts(texts: Sequence[str], embedder: Embedder, *, workers: int = 1, root: Path | None = None) -> Vectors:
    """Return one vector a text, shape ``(n, dimensions)``, float32 of unit norm; all NaN for a text that has none."""
    return embed(texts, embedder, workers=workers, root=root).vectors


def embed(texts: Sequence[str], embedder: Embedder, *, workers: int = 1, root: Path | None = None) -> Embedding:
    """Return the vectors of texts, from the cache where they are there, and a report of what had none.

    Parameters
    ----------
    texts
        In any order; a text that comes twice is embedded once.
    embedder
        Of `load_embedder`.
    workers
        Processes, where the embedder runs on this machine.
    root
        The cache of vectors; by default under `sources.cache_root.cache_root`.

    Raises
    ------
    EmbeddingError
        If something must be embedded and the embedder has no key or package, or the service fails for good.
    """
    cache = VectorCache((root or cache_root() / "vectors"), embedder.id, embedder.dimensions)
    vectors = np.full((len(texts), embedder.dimensions), np.nan, np.float32)
    places = _places_of_keys(texts)
    num_texts = len(places)
    missing = cache.fill(places, vectors)
    refused = _embed_missing(texts, list(missing.items()), vectors, embedder, cache, workers) if missing else []
    report = EmbeddingReport(
        blank=tuple(i for i, text in enumerate(texts) if not text.strip()),
        cut=tuple(i for i, text in enumerate(texts) if len(embedder.shorten(text)) < len(text)),
        refused=tuple(sorted(refused)),
        cached=num_texts - len(missing),
        embedded=len(missing) - len({texts[i] for i, _ in refused}),
    )
    _say(report, embedder)
    return Embedding(vectors, report)


def estimate(texts: Sequence[str], embedder: Embedder, *, root: Path | None = None) -> Estimate:
    """Return what embedding these texts would cost beyond what the cache holds; nothing is sent."""
    cache = VectorCache((root or cache_root() / "vectors"), embedder.id, embedder.dimensions)
    places = _places_of_keys(texts)
    missing = [texts[at[0]] for at in cache.missing(places).values()]
    lengths = embedder.count_tokens([embedder.shorten(text) for text in missing])
    tokens = None if lengths is None else sum(lengths)
    price = embedder.usd_per_million_tokens
    cost = None if tokens is None or price is None else tokens * price / 1e6
    return Estimate(len(texts), len(places) - len(missing), len(missing), tokens, price, cost)


def _places_of_keys(texts: Sequence[str]) -> dict[bytes, list[int]]:
    places: dict[bytes, list[int]] = {}
    for place, text in enumerate(texts):
        if text.strip():
            places.setdefault(text_key(text), []).append(place)
    return places


def _embed_missing(
    texts: Sequence[str],
    missing: Sequence[tuple[bytes, Sequence[int]]],
    vectors: Vectors,
    embedder: Embedder,
    cache: VectorCache,
    workers: int,
) -> list[tuple[int, str]]:
    """Embed what the cache does not hold, keep each batch as it arrives, and return the places that were refused."""
    embedder.check()
    logger.info("embed: %d texts with %s", len(missing), embedder.id)
    to_send = [embedder.shorten(texts[at[0]]) for _, at in missing]
    refused: list[tuple[int, str]] = []
    arrived = 0
    with work_bar("embed", len(missing)) as advance:
        for batch in embedder.embed(to_send, workers=workers):
            good = [bool(np.isfinite(vector).all()) for vector in batch.vectors]
            cache.add([missing[row][0] for row, ok in zip(batch.places, good, strict=True) if ok], batch.vectors[good])
            bad = [(row, _BAD_VECTOR) for row, ok in zip(batch.places, good, strict=True) if not ok]
            for row, reason in (*batch.refused, *bad):
                refused += [(place, reason) for place in missing[row][1]]
            for row, vector in zip(batch.places, batch.vectors, strict=True):
                vectors[np.array(missing[row][1])] = vector  # all NaN where it is not good
            arrived += len(batch.places) + len(batch.refused)
            advance(len(batch.places) + len(batch.refused))
    if arrived != len(missing):
        raise EmbeddingError(f"embedder {embedder.id}: {len(missing) - arrived} texts got no answer; run again")
    return refused


def _say(report: EmbeddingReport, embedder: Embedder) -> None:
    logger.info("embed: %d from the cache, %d with %s", report.cached, report.embedded, embedder.id)
    if report.blank:
        logger.warning("embed: %d blank texts have no vector", len(report.blank))
    if report.cut:
        logger.warning("embed: of %d texts only the beginning is embedded", len(report.cut))
    for place, reason in report.refused:
        logger.warning("embed: text %d was refused: %s", place, reason)
