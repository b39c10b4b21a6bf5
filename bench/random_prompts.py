"""Prompts of random tokens, as benchmarks of throughput send them; reads a tokenizer where one is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from bench.config import DataConfig
from bench.errors import BenchError
from bench.tokenizer_folder import tokenizer_folder

EXCESS = 1.5
"""Tokens drawn for each that is kept, since a text of random tokens is encoded to fewer or more than it was made of."""

_PRINTABLE = (32, 127)


class Vocabulary(Protocol):
    """What is used of a tokenizer here."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, no special token added."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids, special tokens left out."""
        ...

    def size(self) -> int:
        """Return how many ids there are."""
        ...


def random_prompts(data: DataConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield text and ids of each prompt of `data.random_isl` tokens.

    Without a tokenizer, ids are drawn from the printable bytes, which every vocabulary starts with or maps; the text is
    then empty.

    Raises
    ------
    BenchError
        If `data.random_tokenizer` names no folder with a tokenizer.
    """
    rng = np.random.default_rng(data.seed)
    vocabulary = _load(data.random_tokenizer) if data.random_tokenizer else None
    for row in range(data.random_rows):
        if vocabulary is None:
            yield "", tuple(int(i) for i in rng.integers(*_PRINTABLE, data.random_isl))
        else:
            offset = int(rng.integers(vocabulary.size()))
            yield consecutive_prompt(vocabulary, offset + row, data.random_isl)


def consecutive_prompt(vocabulary: Vocabulary, start: int, isl: int) -> tuple[str, tuple[int, ...]]:
    """Return text and ids of a prompt of consecutive ids from `start`, modulo the vocabulary.

    Notes
    -----
    This is what vLLM's random data set did when SPEED-Bench measured it: the ids become a text, and the text is encoded
    anew, so that the prompt is one that a tokenizer can make. Special tokens are left out of the text.
    """
    size, drawn = vocabulary.size(), int(isl * EXCESS)
    while True:
        text = vocabulary.decode([(start + i) % size for i in range(drawn)])
        ids = vocabulary.encode(text)[:isl]
        if len(ids) == isl or drawn > 16 * isl:
            return vocabulary.decode(ids), tuple(ids)
        drawn *= 2


class _Loaded:
    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))

    def size(self) -> int:
        return int(self._tokenizer.get_vocab_size())


def _load(folder: str) -> Vocabulary:
    path = tokenizer_folder(folder) / "tokenizer.json"
    if not path.is_file():
        raise BenchError(f"{folder}: no tokenizer.json; data.random_tokenizer must name the folder of the served model")
    return _Loaded(path)
