"""Words that the detectors know, in sixteen languages; they stand in two text files beside this module."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources


@lru_cache(maxsize=1)
def generic_phrases() -> re.Pattern[str]:
    """Return what finds a way to say that a request was not understood, to ask back, to greet, to offer help."""
    return re.compile("|".join(f"(?:{line})" for line in _lines("generic_phrases.txt")), re.IGNORECASE)


@lru_cache(maxsize=1)
def function_words() -> frozenset[str]:
    """Return the words that are no topic: function words, and those that any explanation or program is full of."""
    return frozenset(word for line in _lines("function_words.txt") for word in line.split())


def _lines(name: str) -> list[str]:
    text = (resources.files("bench.experiments") / "words" / name).read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
