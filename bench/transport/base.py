"""The seam between the client and the wire."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol
from urllib.parse import urlsplit

import httptools

from bench.trace import Reads


@dataclass(slots=True)
class Reading:
    """What one request brought, as it was read; nothing is parsed.

    Attributes
    ----------
    at_ns, sizes
        Clock and bytes of each read: when the last of them was in the kernel, or in hand where it does not tell.
    framed
        Whether `body` still holds the HTTP head and chunk framing.
    error
        What the transport ran into, "" if nothing.
    """

    sent_ns: int = 0
    end_ns: int = 0
    status: int | None = None
    at_ns: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    body: bytes = b""
    framed: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go, and what bounds one of them.

    Attributes
    ----------
    url
        Whole URL of the route.
    timeout_s
        A request that takes longer is cut off, whatever its budget of tokens was.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 600.0

    @property
    def host(self) -> str:
        """Host name."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """Port, also where the URL leaves it out."""
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def path(self) -> str:
        """Path with its query."""
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class Transport(Protocol):
    """Sends bodies to one target.

    Attributes
    ----------
    read_lag_ns
        From the arrival of bytes in the kernel until they were in hand, ns: the longest of each short while with reads;
        empty where stamps are the transport's own.
    """

    @property
    def read_lag_ns(self) -> array[int]:
        """Return the lags; see above."""
        ...

    async def connect(self, count: int) -> None:
        """Open `count` connections ahead of time, where the transport can."""
        ...

    async def send(self, body: bytes) -> Reading:
        """Post a body and return what was read; never raises for what the server or the network did."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class _Unframed:
    """Takes the HTTP framing off, read by read."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.parser = httptools.HttpResponseParser(self)

    def on_body(self, body: bytes) -> None:
        self.bodies.append(body)


def unframe(reading: Reading) -> tuple[int | None, Reads]:
    """Return the status and the body's reads; a read that held only framing is none.

    The kernel stamps by the clock of the day: whatever somebody did to that between an arrival and its read, the stamps
    of a request are in order, from when it was sent until its end.

    Raises
    ------
    ValueError
        If the bytes are not an HTTP/1.1 response.
    """
    within = (min(max(at_ns, reading.sent_ns), reading.end_ns) for at_ns in reading.at_ns)
    pieces = list(Reads(tuple(accumulate(within, max)), tuple(reading.sizes), reading.body))
    if not reading.framed:
        return reading.status, Reads.of(pieces)
    if not pieces:
        return None, Reads()
    unframed, bodies = _Unframed(), list[tuple[int, bytes]]()
    try:
        for at_ns, piece in pieces:
            unframed.parser.feed_data(piece)
            bodies.append((at_ns, b"".join(unframed.bodies)))
            unframed.bodies.clear()
    except httptools.HttpParserError as error:
        raise ValueError(f"not an HTTP response: {error}") from None
    return unframed.parser.get_status_code(), Reads.of(bodies)
