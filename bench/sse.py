"""Server-sent events out of stamped reads, whatever way the bytes were cut."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from bench.trace import Reads

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream.

    Attributes
    ----------
    at_ns
        Clock at the read that completed the event's data.
    read
        Index of that read: two events with one index were merged on the way.
    name
        The `event:` field, "" if there is none.
    data
        The `data:` lines, joined by a newline.
    """

    at_ns: int
    read: int
    name: str
    data: bytes


def parse_events(reads: Reads) -> Iterator[Event]:
    r"""Yield the events of a stream; comment lines (keep-alives) are no events.

    The whole body is parsed at once and each event is traced back to the read that held the end of its last
    line, so that a cut inside a line, a character or a CRLF changes nothing but that stamp. An event that
    the stream did not close with an empty line counts if its last line was whole.
    """
    ends = list(accumulate(reads.sizes))
    name, data, last = "", list[bytes](), 0
    for line, end in _lines(reads.body):
        if not line:
            if data:
                yield _event(reads, ends, last, name, data)
            name, data = "", []
            continue
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if key == b"data":
            data.append(value)
            last = end
        elif key == b"event":
            name = value.decode("utf-8", "replace")
    if data:
        yield _event(reads, ends, last, name, data)


def _lines(body: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each whole line, and the offset of the first byte of its end."""
    start = 0
    for match in _LINE_END.finditer(body):
        yield body[start : match.start()], match.start()
        start = match.end()


def _event(reads: Reads, ends: list[int], end: int, name: str, data: list[bytes]) -> Event:
    # The byte at `end` terminates the line: the event is whole with the read that holds it.
    read = bisect_left(ends, end + 1)
    return Event(reads.at_ns[read], read, name, b"\n".join(data))
