"""How a model answered noise: trivially, latched onto a topic, or otherwise. Pure.

SPEED-Bench (App. E) names the two ways in which random tokens mislead a benchmark of speculative decoding: the model
gives a generic answer that is easy to draft (a greeting, "I do not understand"), or it takes some word of the noise for
the subject and writes at length about it. Both are judged from the prompt and the output alone, by rules. They are
meant for random prompts: the answer to a real one is about its words by right.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bench.experiments.phrases import function_words, generic_phrases

Kind = Literal["trivial", "topic_latching", "other"]

OPENING, CLOSING = 320, 260
"""Characters at the two ends of an output in which a generic phrase is looked for."""
MIN_LATCHED_UNITS = 45
"""Words, or signs of a script without spaces over two, from which an output counts as written at length."""
MIN_MENTIONS = 4
MIN_DENSITY = 0.018
"""Share of the output's content that a topic's mentions must make."""
PARTS, MIN_PARTS = 6, 4
"""Equal parts of an output, and in how many of them a topic must be mentioned."""
MAX_TRIVIAL_UNITS = 70
"""Units up to which one generic phrase makes an output trivial; a longer one needs one at both ends."""
MIN_WORD = 4

_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ENDING = re.compile(r"(?<=\w{4})(?:es|[saoeiyаыиуеоя])$")
STEM = 6
_GRAM = {"HAN": 2, "HANGUL": 2, "HIRAGANA": 3, "KATAKANA": 3, "THAI": 4}
"""Letters that are compared together in scripts that do not part words by spaces, or glue particles to them."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What an output is, and the phrase or the topic that shows it; "" for neither."""

    kind: Kind
    evidence: str = ""


def detect(prompt: str, output: str) -> Detection:
    """Return how a model answered noise. An output without a letter or a digit is trivial."""
    text = unicodedata.normalize("NFKC", output).strip()
    if not re.search(r"[^\W_]", text):
        return Detection("trivial", "neither letter nor digit")
    topic = latched_topic(prompt, text)
    if topic:
        return Detection("topic_latching", topic)
    phrase = generic_phrase(text)
    return Detection("trivial", phrase) if phrase else Detection("other")


def generic_phrase(text: str) -> str:
    """Return the phrase that makes a text a generic answer, "" if it is none.

    A short text needs one in its opening or closing; a longer one in both: an offer of help at the end of an answer is
    no more than manners.
    """
    generic = generic_phrases()
    opening, closing = generic.search(text[:OPENING]), generic.search(text[-CLOSING:])
    units = _units(text)
    if units <= MAX_TRIVIAL_UNITS:
        found = opening or closing
    else:
        apart = len(text) > OPENING + CLOSING or (opening and closing and opening.end() < len(text) - CLOSING)
        found = opening if opening and closing and apart else None
    return found.group().strip() if found else ""


def latched_topic(prompt: str, text: str) -> str:
    """Return the term of a prompt that a text is about, "" if it is about none of them.

    A topic is a term of the prompt that the text mentions often, densely and in most of its parts, and oftener than the
    prompt does: what the noise itself repeats is carried on, not taken up.
    """
    if _units(text) < MIN_LATCHED_UNITS:
        return ""
    offered = Counter(stem for stem, _ in _terms(prompt))
    terms = list(_terms(text))
    counts = Counter(stem for stem, _ in terms)
    for stem, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        dense = count >= max(MIN_MENTIONS, MIN_DENSITY * len(terms))
        if dense and 0 < offered[stem] < count and _spread([s for s, _ in terms], stem) >= MIN_PARTS:
            return Counter(word for s, word in terms if s == stem).most_common(1)[0][0]
    return ""


def _spread(places: list[str], term: str) -> int:
    return len({i * PARTS // len(places) for i, place in enumerate(places) if place == term})


def _units(text: str) -> float:
    """Return the length of a text in words; two signs of a script without spaces are one."""
    return sum(1.0 if _script(word[0]) not in _GRAM else len(word) / 2 for word in _WORD.findall(text))


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """Yield stem and form of the content words of a text in order; of scripts that part no words, runs of letters."""
    ignored = function_words()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        size = _GRAM.get(_script(word[0]))
        if size is None:
            parts = [part.casefold() for part in _CAMEL.split(word)]
            yield from ((_stem(p), p) for p in parts if len(p) >= MIN_WORD and p not in ignored)
        else:
            grams = [word[start : start + size] for start in range(len(word) - size + 1)]
            yield from ((gram, gram) for gram in grams if gram not in ignored)


def _stem(term: str) -> str:
    """Return the first letters of a word without its ending, by which its inflections are alike."""
    return _ENDING.sub("", term)[:STEM]


def _script(letter: str) -> str:
    name = unicodedata.name(letter, "")
    return "HAN" if name.startswith("CJK") else name.partition(" ")[0]
