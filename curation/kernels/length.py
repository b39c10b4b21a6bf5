"""Texts of an exact token length: head and tail whole, the body a prefix of its source."""

from __future__ import annotations

import re
from typing import Protocol


class Encoder(Protocol):
    """What the kernel needs of a tokenizer."""

    @property
    def splits(self) -> re.Pattern[str] | None:
        """Pattern of the places where the ids of both sides never depend on one another; None if nothing is known.

        A zero-width match at i promises, for every text, `encode(text) == encode(text[:i]) + encode(text[i:])`.
        """
        ...

    @property
    def max_token_chars(self) -> int:
        """Upper bound of the code points that one token covers."""
        ...

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text`; a special token's literal is ordinary text."""
        ...

    def chars_of(self, text: str, num_tokens: int) -> int:
        """Return how many code points of `text` its first `num_tokens` tokens cover."""
        ...
