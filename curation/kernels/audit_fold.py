"""The audit's normaliser: what a text is folded to, and what its tokens are. Everything else must agree with it.

A text is folded character by character, without context: compatibility decomposition, case folding, then marks and
format characters deleted, letters and digits kept, all else a separator. Tokens are runs of letters and digits; in
scripts that write no spaces (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) every character is a token of its own.

The folded form is bytes, not text, and never longer than the UTF-8 it comes from, so that a whole batch can be folded
in place. Two rules follow. The few characters whose folding would be longer, and conjoining Hangul jamo, which have a
context, are rewritten first (`prepare`). And the folded bytes are a code of our own: 0 is a separator, a token of its
own is three bytes of which the first is at least `OWN_LEAD`, every other byte is smaller.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

VERSION = 1
"""Version of the specification: a change of folding, tokens or hash raises it, and every cached index is built anew."""

SEPARATOR = 0
FILL = 1
"""What deleted bytes hold until the buffer is compressed."""
SPECIAL = 2
"""First byte of a character that `prepare` should have rewritten."""
OWN_LEAD = 0xE3
"""Every folded byte from here on begins a token of its own; two bytes of the character follow."""

_OWN_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0xA4CF),  # CJK radicals to Yi
    (0xA9E0, 0xA9FF),  # Myanmar extended
    (0xAA60, 0xAA7F),
    (0xAC00, 0xD7FF),  # Hangul
    (0x20000, 0x3FFFF),  # Han beyond the first plane
)
_JAMO = re.compile("[\u1100-\u11ff]+")


def unicode_version() -> str:
    """Return the version of the character database, which the folding of new characters depends on."""
    return unicodedata.unidata_version


def is_own_token(character: str) -> bool:
    """Tell whether a character that is kept is a token by itself."""
    code = ord(character)
    return any(low <= code <= high for low, high in _OWN_RANGES)


def _always_own(code: int) -> bool:
    # Han and Hangul as they stand, unassigned gaps included: the scan need not look up the lead bytes E4-E9 and EB-ED.
    return 0x3400 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7FF


@lru_cache(maxsize=65_536)
def fold_character(character: str) -> str:
    """Return what one character folds to: letters and digits, with a space for each separator."""
    code = ord(character)
    if _always_own(code) or 0x3131 <= code <= 0x318E:
        return character
    if code < 0x80:
        return character.lower() if character.isalnum() else " "
    if 0xD800 <= code <= 0xDFFF:
        return " "
    spelled = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    kept = []
    for part in spelled:
        category = unicodedata.category(part)
        if category[0] in "LN":
            kept.append(part)
        elif category[0] != "M" and category != "Cf":
            kept.append(" ")
    return "".join(kept)


def encode_folded(folded: str) -> bytes:
    """Return the bytes of folded characters in the code that the scan reads."""
    return b"".join(_encode_one(part) for part in folded)


def _encode_one(part: str) -> bytes:
    code, raw = ord(part), part.encode("utf-8", "replace")
    if part == " ":
        return bytes([SEPARATOR])
    if not is_own_token(part):
        # Leads from E3 on are taken: alphabets up there move to control bytes, which no folded text holds.
        moved = {0xEA: 3, 0xEF: 4}.get(raw[0], raw[0] if raw[0] < OWN_LEAD else 5)
        return bytes([moved]) + raw[1:]
    if code >= 0x10000:
        # Three bytes must do: rare Han of eight rows share a lead. Verification reads the text itself.
        return bytes([0xF3 + ((code >> 12) & 7), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)])
    lead = raw[0] if raw[0] >= OWN_LEAD else raw[0] + 0x10
    return bytes([lead]) + raw[1:]


@lru_cache(maxsize=65_536)
def folded_bytes(character: str) -> bytes:
    """Return the folded bytes of a character of a prepared text, without fill."""
    return encode_folded(fold_character(character))


def _too_long(character: str) -> bool:
    return len(folded_bytes(character)) > len(character.encode("utf-8", "surrogatepass"))


def needs_preparation(text: str) -> bool:
    """Tell whether `prepare` would change a text."""
    return not text.isascii() and (_JAMO.search(text) is not None or any(map(_is_expanding, set(text))))


@lru_cache(maxsize=65_536)
def _is_expanding(character: str) -> bool:
    return _too_long(character)


def prepare(text: str) -> tuple[str, list[int]]:
    """Rewrite the characters that cannot be folded in place.

    Returns
    -------
    tuple of str and list of int
        The text, with jamo composed and long foldings written out, and for each of its characters the place in the
        original text of the character it comes from; one more entry than characters, the last the original's length.
    """
    out: list[str] = []
    origin: list[int] = []
    at = 0
    for run in _JAMO.finditer(text):
        _write_out(text[at : run.start()], at, out, origin)
        _compose(run.group(), run.start(), out, origin)
        at = run.end()
    _write_out(text[at:], at, out, origin)
    origin.append(len(text))
    return "".join(out), origin


def _write_out(text: str, start: int, out: list[str], origin: list[int]) -> None:
    for i, character in enumerate(text):
        parts = fold_character(character) if not character.isascii() and _is_expanding(character) else character
        out.extend(parts)
        origin.extend([start + i] * len(parts))


def _compose(jamo: str, start: int, out: list[str], origin: list[int]) -> None:
    at = start
    for character in unicodedata.normalize("NFC", jamo):
        # A jamo that composes with nothing stands alone: no word of a language is written so.
        out.append(" " if _JAMO.match(character) else character)
        origin.append(at)
        at += len(unicodedata.normalize("NFD", character))


def tokenize(text: str) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Return the tokens of a text and their character spans: the definition, one character at a time.

    Returns
    -------
    tuple of list of bytes and list of tuple of int
        Folded tokens, and for each the half-open span in `text`.
    """
    origin: list[int] | None = None
    if needs_preparation(text):
        text, origin = prepare(text)
    tokens: list[bytes] = []
    spans: list[tuple[int, int]] = []
    open_token = False
    for i, character in enumerate(text):
        code = folded_bytes(character)
        for piece in _pieces(code):
            if piece == b"\0":
                open_token = False
            elif piece[0] >= OWN_LEAD:
                tokens.append(piece)
                spans.append((i, i + 1))
                open_token = False
            elif open_token:
                tokens[-1] += piece
                spans[-1] = (spans[-1][0], i + 1)
            else:
                tokens.append(piece)
                spans.append((i, i + 1))
                open_token = True
    if origin is not None:
        spans = [(origin[a], max(origin[b], origin[b - 1] + 1)) for a, b in spans]
    return tokens, spans


def _pieces(code: bytes) -> list[bytes]:
    pieces, i = [], 0
    while i < len(code):
        step = 3 if code[i] >= OWN_LEAD else 1
        pieces.append(code[i : i + step])
        i += step
    return pieces


@cache
def two_byte_table() -> NDArray[np.uint16]:
    """Folded bytes of every character of two UTF-8 bytes, by those bytes as a little-endian number, shape (65536,)."""
    table = np.zeros(65_536, np.uint16)
    for code in range(0x80, 0x800):
        raw = chr(code).encode()
        table[int.from_bytes(raw, "little")] = int.from_bytes(_filled(chr(code), 2), "little")
    return table


def three_byte_table() -> NDArray[np.uint32]:
    """Folded bytes of every character of three UTF-8 bytes, by code point, shape (65536,)."""
    return three_byte_codes(np.arange(65_536, dtype=np.uint32))


def three_byte_codes(points: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the folded bytes of characters of three UTF-8 bytes as little-endian numbers.

    Parameters
    ----------
    points
        Code points below 0x10000, of any shape; what is encoded in fewer bytes has the code 0.
    """
    codes, is_known = _three_bytes()
    # A corpus holds few of the 60,000, and to fold them all takes a tenth of a second.
    new = points[~is_known[points]]
    for point in np.unique(new).tolist() if len(new) else ():
        codes[point] = _three_byte_code(point)
        is_known[point] = True
    return codes[points]


@cache
def _three_bytes() -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Codes of the characters met so far, and which these are."""
    codes, is_known = np.zeros(65_536, np.uint32), np.zeros(65_536, np.bool_)
    own = np.concatenate([np.arange(0x3400, 0xA000), np.arange(0xAC00, 0xD800)]).astype(np.uint32)
    codes[own] = (0xE0 | (own >> 12)) | ((0x80 | ((own >> 6) & 63)) << 8) | ((0x80 | (own & 63)) << 16)
    is_known[own] = is_known[:0x800] = True
    return codes, is_known


def _three_byte_code(code: int) -> int:
    character = chr(code)
    # Most of those that fold to a separator or to themselves can be told without folding, at a third of the cost.
    kind = unicodedata.category(character)
    if not unicodedata.decomposition(character):
        if kind[0] in "PSZ" or kind in ("Cn", "Co", "Cs"):
            return 0
        if kind == "Lo" and not 0x1100 <= code <= 0x11FF:
            return int.from_bytes(_encode_one(character), "little")
    return int.from_bytes(_filled(character, 3), "little")


def four_byte_code(code: int) -> int:
    """Return the folded bytes of one character of four UTF-8 bytes as a little-endian number."""
    return int.from_bytes(_filled(chr(code), 4) if code <= 0x10FFFF else bytes(4), "little")


def _filled(character: str, width: int) -> bytes:
    if _JAMO.match(character):
        return bytes([SPECIAL]).ljust(width, b"\0")
    folded = folded_bytes(character)
    if len(folded) > width:
        return bytes([SPECIAL]).ljust(width, b"\0")
    if not folded.strip(b"\0"):
        # Separators fill their own place; an empty folding is all fill.
        return bytes(width) if folded else bytes([FILL]) * width
    return folded.ljust(width, bytes([FILL]))
