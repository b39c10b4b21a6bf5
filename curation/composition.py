"""What a set of prompts is made of: languages, programming languages, turns, difficulty and input lengths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

SPEC_BENCH_CATEGORY = {
    "coding": "coding",
    "humanities": "humanities",
    "math": "math",
    "multilingual": "translation",
    "qa": "qa",
    "rag": "rag",
    "reasoning": "reasoning",
    "roleplay": "roleplay",
    "stem": "stem",
    "summarization": "summarization",
    "writing": "writing",
}
"""Our category -> the category of Spec-Bench that it stands beside (math: its MT-Bench math, without GSM8K)."""

_PROGRAMMING_LANGUAGES = {
    "Python": r"python",
    "C++": r"c\+\+|cpp",
    "Java": r"java",
    "Go": r"golang|go(?=\s+(?:program|function|code|language))",
    "JavaScript": r"javascript|js",
    "Rust": r"rust",
    "HTML": r"html",
    "CSS": r"css",
}
_NAMED = {
    name: re.compile(rf"(?<![\w+#])(?:{pattern})(?![\w+#])", re.IGNORECASE)
    for name, pattern in _PROGRAMMING_LANGUAGES.items()
}
_SUB_CATEGORIES = {
    "python": "Python",
    "cpp": "C++",
    "c++": "C++",
    "java": "Java",
    "go": "Go",
    "js": "JavaScript",
    "javascript": "JavaScript",
    "rust": "Rust",
}


@dataclass(frozen=True, slots=True)
class InputLength:
    """Input sequence length of a category: mean and median tokens of all turns of a row, without a chat template."""

    rows: int
    mean_isl: float
    median_isl: float


@dataclass(frozen=True, slots=True)
class Composition:
    """Counts of rows; `languages` are those of the multilingual category (Spec-Bench: translation)."""

    rows: int
    multiturn_rows: int
    turns: Mapping[int, int]
    difficulty: Mapping[str, int]
    programming_languages: Mapping[str, int]
    languages: Mapping[str, int]
    input_lengths: Mapping[str, InputLength]


def composition(rows: Sequence[Mapping[str, Any]], languages: Sequence[str]) -> Composition:
    """Return the composition of published rows.

    Parameters
    ----------
    rows
        Published rows, their text in place.
    languages
        BCP 47 language of each row's text, "" where its source declares none.
    """
    return Composition(
        rows=len(rows),
        multiturn_rows=sum(len(row["turns"]) > 1 for row in rows),
        turns=_counts(len(row["turns"]) for row in rows),
        difficulty=_counts(row["difficulty"] for row in rows if row["difficulty"]),
        programming_languages=_counts(
            name for row in rows if row["category"] == "coding" for name in programming_languages(row)
        ),
        languages=_counts(
            language
            for row, language in zip(rows, languages, strict=True)
            if row["category"] in ("multilingual", "translation")
        ),
        input_lengths=input_lengths(rows),
    )


def programming_languages(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a coding prompt's programming languages: its sub_category if that is one, else those its text names."""
    known = _SUB_CATEGORIES.get(row["sub_category"].lower())
    if known is not None:
        return (known,)
    text = "\n".join(row["turns"])
    return tuple(name for name, pattern in _NAMED.items() if pattern.search(text))


def input_lengths(rows: Iterable[Mapping[str, Any]]) -> dict[str, InputLength]:
    """Return the input lengths of each category.

    The definition is that of the paper's Table 3: o200k_base tokens of the raw text of all turns together; it
    reproduces its whole Spec-Bench column.
    """
    by_category: dict[str, list[int]] = {}
    for row in rows:
        by_category.setdefault(row["category"], []).append(row["num_tokens"])
    return {name: InputLength(len(n), fmean(n), median(n)) for name, n in sorted(by_category.items())}


def _counts(values: Iterable[Any]) -> dict[Any, int]:
    return dict(sorted(Counter(values).items(), key=lambda pair: (-pair[1], str(pair[0]))))
