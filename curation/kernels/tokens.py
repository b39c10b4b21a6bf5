"""Tokens of texts in any script, and their hashes: what shingles are made of.

A text is folded (NFKC, case) and cut into tokens:

- a run of letters, digits and underscores; a comma or point between two digits belongs to the number;
- each character of a script that is written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar);
- each operator and symbol (`x << 2` is not `x >> 2`).

A combining mark belongs to the token before it; other punctuation and white space only separate; zero-width characters
are as if they were not there.

The hashes are fixed by the constants of this module: a change to any of them can change every published split.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

SEPARATOR, WORD, SINGLE, OPERATOR, MARK, IGNORED = range(6)

_UNSPACED = (
    (0x0E01, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul jamo
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3041, 0x30FF),  # kana
    (0x3100, 0x312F),  # bopomofo
    (0x3130, 0x318F),
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xAC00, 0xD7FF),  # Hangul syllables
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x323AF),
)
# Punctuation by Unicode, operators in code and arithmetic. The signs of category S come with their category.
_ASCII_OPERATORS = "*/%&\\-"
_CLASS_OF_CATEGORY = {"Mn": MARK, "Mc": MARK, "Me": MARK, "Pc": WORD, "Co": WORD, "Cn": WORD, "Cf": IGNORED}

_BASE = 0x9E3779B97F4A7C15  # odd, hence invertible modulo 2^64


def fold(text: str) -> str:
    """Return the text in NFKC without case: what the tokens are cut from."""
    if text.isascii():
        return text.lower()
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return text.casefold()


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text. This is the definition; `shingle_sets` does the same on arrays."""
    chars = [c for c in fold(text) if _class_of(c) != IGNORED]
    tokens: list[str] = []
    previous = SEPARATOR
    for i, char in enumerate(chars):
        kind = _class_of(char)
        if char in ".," and 0 < i < len(chars) - 1 and _is_digit(chars[i - 1]) and _is_digit(chars[i + 1]):
            kind = WORD
        if (kind == WORD and previous in (WORD, MARK)) or (kind == MARK and previous in (WORD, SINGLE, MARK)):
            tokens[-1] += char
        elif kind != SEPARATOR:
            tokens.append(char)
        previous = kind
    return tokens


def token_hashes(folded: Sequence[str]) -> tuple[U64, NDArray[np.int64]]:
    """Return the hashes of all tokens of the texts in a row, and how many each text has."""
    # A line end after each text separates its last token from the next one's first.
    joined = "\n".join(chain(folded, [""]))
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = np.cumsum(np.fromiter((len(text) + 1 for text in folded), np.int64, len(folded)))
    kinds = _class_table()[codes]
    ignored = kinds == IGNORED
    if ignored.any():
        ends = ends - np.cumsum(ignored)[ends - 1]
        codes, kinds = codes[~ignored], kinds[~ignored]
    kinds = _with_number_points(codes, kinds)
    before = np.empty_like(kinds)
    before[:1], before[1:] = SEPARATOR, kinds[:-1]
    begins = (kinds == SINGLE) | (kinds == OPERATOR)
    begins |= (kinds == WORD) & (before != WORD) & (before != MARK)
    begins |= (kinds == MARK) & ((before == SEPARATOR) | (before == OPERATOR))
    breaks = np.flatnonzero(begins | (kinds == SEPARATOR))
    is_token = begins[breaks]
    starts = breaks[is_token]
    stops = breaks[1:][is_token[:-1]]
    counts = np.diff(np.searchsorted(starts, np.concatenate((np.zeros(1, np.int64), ends))))
    return _span_hashes(codes, starts, stops), counts


def _with_number_points(codes: NDArray[np.uint32], kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    digit = (codes >= ord("0")) & (codes <= ord("9"))
    point = (codes == ord(".")) | (codes == ord(","))
    point[:1] = point[-1:] = False
    inner = np.flatnonzero(point)
    inner = inner[digit[inner - 1] & digit[inner + 1]]
    kinds[inner] = WORD
    return kinds


def _span_hashes(codes: NDArray[np.uint32], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> U64:
    """Return a hash of each span [start, stop) of the codes: sum of mix(code) * BASE^place, by prefix sums."""
    power, inverse = powers(len(codes))
    prefix = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(_code_hashes()[codes] * power[: len(codes)], out=prefix[1:])
    return mix((prefix[stops] - prefix[starts]) * inverse[starts])


def mix(h: U64) -> U64:
    """Return the MurmurHash3 finaliser of 64-bit values: a fixed bijection that spreads every bit."""
    h = h ^ (h >> np.uint64(33))
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


def powers(size: int) -> tuple[U64, U64]:
    """Return BASE^i and BASE^-i modulo 2^64, for i below `size` at least."""
    return _powers(1 << max(size, 1 << 18).bit_length())


@lru_cache(maxsize=4)
def _powers(size: int) -> tuple[U64, U64]:
    both = []
    for base in (_BASE, pow(_BASE, -1, 1 << 64)):
        powers = np.full(size, base, np.uint64)
        powers[0] = 1
        both.append(np.multiply.accumulate(powers))
    return both[0], both[1]


@lru_cache(maxsize=1)
def _code_hashes() -> U64:
    return mix(np.arange(1, sys.maxunicode + 2, dtype=np.uint64) * np.uint64(_BASE))


@lru_cache(maxsize=1)
def _class_table() -> NDArray[np.uint8]:
    table = np.fromiter((_class_of(chr(code)) for code in range(0x32400)), np.uint8, 0x32400)
    # Beyond the last letters: tags and variation selectors, which nobody sees, and characters not assigned or private.
    rest = np.full(sys.maxunicode + 1 - 0x32400, WORD, np.uint8)
    rest[0xE0000 - 0x32400 : 0xE1000 - 0x32400] = IGNORED
    return np.concatenate((table, rest))


def _class_of(char: str) -> int:
    code = ord(char)
    if 0xE0000 <= code < 0xE1000 or 0xFE00 <= code <= 0xFE0F:
        return IGNORED
    category = unicodedata.category(char)
    if category[0] in "LN":
        # Digits of these scripts make runs as all digits do; Han numerals (category Nl) are characters like the others.
        unspaced = category not in ("Nd", "No") and any(low <= code <= high for low, high in _UNSPACED)
        return SINGLE if unspaced else WORD
    if category[0] == "S" or char in _ASCII_OPERATORS:
        return OPERATOR
    return _CLASS_OF_CATEGORY.get(category, SEPARATOR)


def _is_digit(char: str) -> bool:
    return "0" <= char <= "9"
