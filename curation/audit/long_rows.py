"""Rows so long that Python's strings, up to four bytes a character, would not fit: their long texts stay UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONG_LINE = 16 << 20
"""JSON lines of more bytes are read this way."""

_LONG_TEXT = 1 << 10
_BLOCK = 1 << 20
_STEP = 1 << 16
_BACKSLASH, _U = ord("\\"), ord("u")
_ESCAPE, _SHORT_ESCAPE = 6, 2  # bytes of \u00e9 and of \n
_MARK = "\ufdd0long text "  # a code point that is for a program's own use
_SURROGATES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..", re.DOTALL)
Loads = Callable[[bytes], Any]


@dataclass(frozen=True)
class LongText:
    """A text as UTF-8 bytes, its length and slices in characters; `is_repaired` if a lone surrogate was replaced."""

    raw: bytes | bytearray | memoryview
    is_repaired: bool = False

    def __len__(self) -> int:
        return int(self._characters[-1])

    def __str__(self) -> str:
        return bytes(self.raw).decode()

    def __getitem__(self, part: slice) -> str:
        begin, end, _ = part.indices(len(self))
        return bytes(self.raw[self._place(begin) : self._place(end)]).decode()

    @cached_property
    def _characters(self) -> NDArray[np.int64]:
        """How many characters begin before each block of bytes, and in all."""
        raw = np.frombuffer(self.raw, np.uint8)
        counts = [np.count_nonzero(_begins(raw[a : a + _STEP])) for a in range(0, len(raw), _STEP)]
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

    def _place(self, character: int) -> int:
        """Return the byte at which a character begins."""
        block = int(np.searchsorted(self._characters, character, "right")) - 1
        begins = np.flatnonzero(_begins(np.frombuffer(self.raw, np.uint8)[block * _STEP : (block + 1) * _STEP]))
        within = character - int(self._characters[block])
        return block * _STEP + int(begins[within]) if within < len(begins) else len(self.raw)


def _begins(raw: NDArray[np.uint8]) -> NDArray[np.bool_]:
    begins: NDArray[np.bool_] = (raw & 0xC0) != 0x80
    return begins


def encode_text(text: str) -> tuple[bytes, bool]:
    """Return a text as UTF-8, and whether a lone surrogate in it had to be replaced."""
    try:
        return text.encode(), False
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode(), True


def load_long_row(line: bytes, loads: Loads) -> Any:
    """Return the value of a JSON line, its long strings as `LongText`.

    Parameters
    ----------
    line
        UTF-8 bytes.
    loads
        Reads JSON that is short.

    Raises
    ------
    ValueError
        If the line is not JSON.
    """
    spans = list(_long_literals(line))
    edges = [0, *(edge for span in spans for edge in span), len(line)]
    rest = [line[a:b] for a, b in zip(edges[0::2], edges[1::2], strict=True)]
    marks = [f"{_MARK}{i}" for i in range(len(spans))]
    short = b"".join(part + mark.encode() for part, mark in zip(rest, [*marks, ""], strict=True))
    value = loads(short)
    texts = {mark: _unescaped(line, *span, loads) for mark, span in zip(marks, spans, strict=True)}
    return _filled(value, texts)


def _filled(value: Any, texts: dict[str, LongText]) -> Any:
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, list):
        return [_filled(item, texts) for item in value]
    if isinstance(value, dict):
        return {str(texts.get(key, key)): _filled(item, texts) for key, item in value.items()}
    return value


def _long_literals(line: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the insides of long string literals begin and end."""
    begin = line.find(b'"') + 1
    while begin:
        end = line.find(b'"', begin)
        while end >= 0 and not _stands_free(line, begin, end):
            end = line.find(b'"', end + 1)
        if end < 0:
            return  # no JSON, which reading the rest will tell
        if end - begin > _LONG_TEXT:
            yield begin, end
        begin = line.find(b'"', end + 1) + 1


def _stands_free(line: bytes, begin: int, at: int) -> bool:
    """Tell whether an even number of backslashes stands before a place: these escape nothing there."""
    first = at
    while first > begin and line[first - 1] == _BACKSLASH:
        first -= 1
    return (at - first) % 2 == 0


def _unescaped(line: bytes, begin: int, end: int, loads: Loads) -> LongText:
    out, is_repaired = bytearray(), False
    while begin < end:
        cut = _cut(line, begin, begin + _BLOCK) if end - begin > _BLOCK else end
        raw, replaced = encode_text(loads(b'"%b"' % line[begin:cut]))
        out += raw
        is_repaired |= replaced
        begin = cut
    return LongText(out, is_repaired)


def _cut(line: bytes, begin: int, at: int) -> int:
    """Return the last place up to `at` where neither a character nor an escape nor a pair of surrogates is cut."""
    while line[at] & 0xC0 == 0x80:
        at -= 1
    at = _before_escape(line, begin, at)
    pair = line[at - _ESCAPE : at + _ESCAPE]
    is_pair = _SURROGATES.fullmatch(pair) is not None and _stands_free(line, begin, at - _ESCAPE)
    return at - _ESCAPE if is_pair else at


def _before_escape(line: bytes, begin: int, at: int) -> int:
    for place in range(at - 1, max(begin, at - _ESCAPE), -1):
        if line[place] == _BACKSLASH and _stands_free(line, begin, place):
            length = _ESCAPE if line[place + 1] == _U else _SHORT_ESCAPE
            return place if place + length > at else at
    return at
