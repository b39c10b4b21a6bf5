"""Rows of JSONL files and of JSON arrays, one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from curation.audit.long_rows import LONG_LINE, load_long_row
from curation.audit.plan import CorpusFile, Unit, open_binary
from curation.audit.row_counts import RowCounts

_BLOCK = 1 << 20


@contextmanager
def open_stream(file: CorpusFile) -> Iterator[IO[bytes]]:
    """Open a file, decompressed on the way."""
    with open_binary(file.path) as stream:
        if not file.compression:
            yield stream
        elif file.compression == "gzip":
            import gzip

            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            with pa.CompressedInputStream(pa.PythonFile(stream, "r"), file.compression) as unpacked:
                yield unpacked


def json_rows(file: CorpusFile, unit: Unit, counts: RowCounts) -> Iterator[tuple[int, Any]]:
    """Yield row number and value of each line, or each element of a JSON array."""
    with open_stream(file) as stream:
        sign = _first_sign(stream) if file.format == "json" else b""
        if sign == b"[":
            yield from _array_rows(stream, counts)
            return
        loads = _loads()
        for line in _lines(stream, unit, sign):
            counts.rows += 1
            if not line.strip():
                counts.skip("blank line", counts.rows)
                continue
            try:
                value = loads(line) if len(line) < LONG_LINE else load_long_row(line, loads)
            except ValueError:
                counts.skip("not JSON", counts.rows)
                continue
            del line  # a line may be most of the memory there is: it is not kept while its value is scanned
            yield counts.rows, value
            del value


def starts_array(file: CorpusFile) -> bool:
    """Tell whether a file is one JSON array."""
    if file.format != "json":
        return False
    with open_stream(file) as stream:
        return _first_sign(stream) == b"["


def lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream, each with its line feed."""
    held: list[bytes] = []
    while block := stream.read(_BLOCK):
        parts = block.split(b"\n")
        for part in parts[:-1]:
            yield b"".join([*held, part, b"\n"])
            held.clear()
        if parts[-1]:
            held.append(parts[-1])
    if held:
        yield b"".join(held)


def _loads() -> Callable[[bytes], Any]:
    try:
        from orjson import loads as fast
    except ImportError:
        return json.loads

    def loads(line: bytes) -> Any:
        try:
            return fast(line)
        except ValueError:
            return json.loads(line)  # which reads lone surrogates and NaN

    return loads


def _first_sign(stream: IO[bytes]) -> bytes:
    sign = b" "
    while sign and sign.isspace():
        sign = stream.read(1)
    return sign


def _lines(stream: IO[bytes], unit: Unit, head: bytes) -> Iterator[bytes]:
    """Yield the lines that begin within the unit's bytes; the last one ends where it ends. `head` was read before."""
    limit = unit.end
    if unit.begin:
        # A line belongs to the range that holds its first byte: the newline before it tells where that is.
        stream.seek(unit.begin - 1)
        position = unit.begin - 1 + len(stream.readline())
    else:
        position = 0
    held = [head] if head else []
    while limit < 0 or position < limit or held:
        block = stream.read(_BLOCK)
        if not block:
            break
        parts = block.split(b"\n")
        for part in parts[:-1]:
            position += sum(map(len, held)) + len(part) + 1
            yield _taken(held, part)
            if 0 <= limit <= position:
                return
        if parts[-1]:
            held.append(parts[-1])
    if held:
        yield _taken(held, b"")


def _taken(held: list[bytes], part: bytes) -> bytes:
    line = b"".join([*held, part]) if held else part
    held.clear()
    return line


def _array_rows(stream: IO[bytes], counts: RowCounts) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON array, holding one at a time."""
    decoder, decode = json.JSONDecoder(), _Utf8()
    text, done, step = "", False, _BLOCK
    while True:
        text = text.lstrip(" \t\r\n,")
        if text.startswith("]"):
            return
        try:
            value, end = decoder.raw_decode(text)
            if end == len(text) and not done:
                raise ValueError  # a number may go on in the next block
        except ValueError:
            if done:
                counts.rows += 1
                counts.skip("not JSON", counts.rows)
                return
            # Doubling keeps a large element from being parsed again for every block.
            block = stream.read(step)
            step, done = max(step, len(text)), not block
            text += decode(block, done)
            continue
        counts.rows += 1
        yield counts.rows, value
        text = text[end:]


class _Utf8:
    def __init__(self) -> None:
        import codecs

        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __call__(self, block: bytes, final: bool) -> str:
        return self._decoder.decode(block, final)
