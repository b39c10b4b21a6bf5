"""What a shared stretch of text is called, and from which coverage on it counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONTAMINATED = ("exact", "format", "near")
"""The classes that mean: the prompt is in the corpus."""

CLASSES = (*CONTAMINATED, "number_variant", "partial", "common_text", "ngram", "semantic")
"""All classes, strongest first.

`exact`: the same characters but for white space. `format`: the same letters, digits and meaningful symbols; case,
punctuation, width, normal form and wrapping may differ. `near`: an edited copy, by aligned tokens. `number_variant`:
equal but for numbers. `partial`: a long stretch of the prompt. `common_text`: a phrase that many documents hold.
`ngram`: what a published n-gram rule flags. `semantic`: alike by an embedding, a candidate for a person to judge.
"""

MIN_NEAR_TOKENS = 8
COMMON_DOCUMENTS = 5
"""A prompt that fires without full coverage, or with fewer than `MIN_NEAR_TOKENS` words, in more documents than this is
common text."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How pairs are judged.

    Attributes
    ----------
    name
        `adaptive`, or the preset.
    ngram
        Flag any shared run of so many tokens, as a published rule does; 0 for our own classes.
    max_prompts
        Shingles of more records than this carry no weight.
    source
        Where the rule was published.
    """

    name: str
    ngram: int
    max_prompts: int
    source: str


_ALL = 2**31 - 1  # the published rules know no template text

ADAPTIVE = Rule("adaptive", 0, 8, "docs/audit.md")
RULES = {
    "adaptive": ADAPTIVE,
    "open-r1": Rule("open-r1", 8, _ALL, "huggingface/open-r1, scripts/decontaminate.py: any shared 8-gram"),
    "datatrove": Rule("datatrove", 12, _ALL, "huggingface/datatrove, NGramsDecontFilter: any shared 12-gram"),
    "lm-eval": Rule("lm-eval", 13, _ALL, "EleutherAI/lm-evaluation-harness, janitor.py: any shared 13-gram"),
}
"""Rules by name. A preset applies the published rule to our tokens; the tool's own tokenizer may split otherwise."""


def near_coverage(num_weighted: ArrayLike, words: ArrayLike, num_tokens: ArrayLike) -> NDArray[np.float64]:
    """Return the share of a prompt's weighted tokens that an edited copy must keep, in order; of many prompts, of each.

    Infinite for fewer than 8 tokens, of which a copy must have all; then 0.82 up to 20 tokens, falling to 0.7 at 50;
    0.05 more for scripts in which a token is one character, since fewer characters than words are chosen freely.
    """
    weight = np.asarray(num_weighted)
    share = np.clip(0.82 - 0.12 * (weight - 20) / 30, 0.70, 0.82)
    share = share + np.where(_is_by_character(words, num_tokens), 0.05, 0.0)
    return np.where(weight < MIN_NEAR_TOKENS, math.inf, share)


def _is_by_character(words: ArrayLike, num_tokens: ArrayLike) -> NDArray[np.bool_]:
    tokens = np.asarray(num_tokens)
    by_character: NDArray[np.bool_] = (tokens > 0) & (np.asarray(words) / np.maximum(tokens, 1) < 0.75)
    return by_character


def partial_run(num_weighted: ArrayLike, words: ArrayLike, num_tokens: ArrayLike) -> NDArray[np.int64]:
    """Return how many tokens in a row make a part worth reporting: 13 to 50, a quarter of the prompt between.

    Doubled for scripts in which a token is one character.
    """
    run = np.clip(0.25 * np.asarray(num_weighted), 13.0, 50.0)
    return np.rint(run * np.where(_is_by_character(words, num_tokens), 2, 1)).astype(np.int64)
