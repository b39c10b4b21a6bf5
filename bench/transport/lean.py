"""The lean transport: an asyncio protocol that stamps and keeps each read, for thousands of streams over plain HTTP.

The hot path is a clock reading, two appends and a look at the last five bytes. HTTP is parsed (httptools) only for
the head and when a read ends like the end of a chunked body; the framing is taken off elsewhere, after the request.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from typing import cast

import httptools

from bench.transport.base import Reading, Target

_LAST_CHUNK = b"0\r\n\r\n"


class _Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self.done: asyncio.Future[str] | None = None
        self.at_ns: array[int] = array("q")
        self.parts: list[bytes] = []
        self.sent_ns = 0
        self.alive = True
        self.unanswered = False
        self._deferred = False
        self._chunked = False
        self._fed = 0
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # A limit of 0: `resume_writing` then tells when the last byte went to the kernel.
        self._transport.set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        self.at_ns.append(time.perf_counter_ns())
        self.parts.append(data)
        if not self._deferred or data.endswith(_LAST_CHUNK) or len(data) < len(_LAST_CHUNK):
            self._parse()

    def resume_writing(self) -> None:
        self.sent_ns = time.perf_counter_ns()

    def connection_lost(self, exc: Exception | None) -> None:
        self.alive = False
        self.unanswered = not self.parts
        self._end(f"connection closed: {exc}" if exc else "connection closed before the end of the response")

    def on_headers_complete(self) -> None:
        # Only a chunked body has an end that its own bytes show; any other is parsed as it comes.
        self._deferred = self._chunked

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"transfer-encoding" and b"chunked" in value.lower():
            self._chunked = True

    def on_message_complete(self) -> None:
        self.alive = self.alive and self._parser.should_keep_alive()
        self._end("")

    def _parse(self) -> None:
        try:
            unread = b"".join(self.parts[self._fed :])
            self._fed = len(self.parts)
            self._parser.feed_data(unread)
        except httptools.HttpParserError as error:
            self.alive = False
            self._end(f"not an HTTP response: {error}")

    def _end(self, error: str) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_result(error)

    def post(self, request: bytes, loop: asyncio.AbstractEventLoop) -> asyncio.Future[str]:
        """Write a request; the future ends with "" or with what went wrong."""
        self.done = loop.create_future()
        self.at_ns, self.parts = array("q"), []
        self.sent_ns, self._deferred, self._chunked, self._fed = 0, False, False, 0
        self._parser = httptools.HttpResponseParser(self)
        transport = self._transport
        if transport is None or transport.is_closing():
            self.alive, self.unanswered = False, True
            self._end("connection closed")
            return self.done
        begun_ns = time.perf_counter_ns()
        transport.write(request)
        if not transport.get_write_buffer_size():
            # The kernel took all of it at once. A stamp from after the call would be late by as long as this process
            # then waited for a core, with the server at work already: its answer would seem quicker than it was.
            self.sent_ns = begun_ns
        return self.done

    def abort(self) -> None:
        """Drop the connection."""
        self.alive = False
        if self._transport is not None:
            self._transport.abort()


class LeanTransport:
    """Keep-alive connections to one host over plain HTTP."""

    def __init__(self, target: Target) -> None:
        if not target.url.startswith("http://"):
            raise ValueError(f"the lean transport speaks plain HTTP only, got {target.url}; use transport = 'aiohttp'")
        self._target = target
        self._free: list[_Connection] = []
        lines = [
            f"POST {target.path} HTTP/1.1",
            f"Host: {target.host}:{target.port}",
            "Content-Type: application/json",
            *(f"{name}: {value}" for name, value in target.headers),
        ]
        self._head = "\r\n".join(lines).encode()

    async def _open(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._target.host, self._target.port)
        return connection

    async def connect(self, count: int) -> None:
        """Open `count` connections, some at a time, so that the backlog of the server holds."""
        while len(self._free) < count:
            room = min(128, count - len(self._free))
            self._free += await asyncio.gather(*(self._open() for _ in range(room)))

    async def send(self, body: bytes) -> Reading:
        """Post a body and return what was read, framing and all."""
        reading = Reading(framed=True)
        request = b"%s\r\nContent-Length: %d\r\n\r\n%s" % (self._head, len(body), body)
        try:
            reused = bool(self._free) and self._free[-1].alive
            connection = await self._take()
            reading.error = await self._finished(connection, request)
            if reused and connection.unanswered:
                # A server may end a connection that it kept while the next request is under way, as llama.cpp's does.
                # Nothing of it was answered, so the request goes out once more (RFC 9112, section 9.3.1).
                connection = await self._open()
                reading.error = await self._finished(connection, request)
        except OSError as error:
            reading.sent_ns = reading.end_ns = time.perf_counter_ns()
            reading.error = f"cannot connect: {error}"
            return reading
        reading.end_ns = time.perf_counter_ns()
        reading.sent_ns = connection.sent_ns or reading.end_ns
        reading.at_ns = connection.at_ns
        reading.sizes = array("q", map(len, connection.parts))
        reading.body = b"".join(connection.parts)
        connection.parts = []
        if connection.alive:
            self._free.append(connection)
        else:
            connection.abort()
        return reading

    async def _take(self) -> _Connection:
        connection = self._free.pop() if self._free else await self._open()
        return connection if connection.alive else await self._open()

    async def _finished(self, connection: _Connection, request: bytes) -> str:
        loop = asyncio.get_running_loop()
        done = connection.post(request, loop)
        timeout = loop.call_later(self._target.timeout_s, _expire, connection, done, self._target.timeout_s)
        try:
            return await done
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            timeout.cancel()

    async def close(self) -> None:
        """Close the free connections."""
        for connection in self._free:
            connection.abort()
        self._free.clear()


def _expire(connection: _Connection, done: asyncio.Future[str], timeout_s: float) -> None:
    if not done.done():
        connection.alive = False
        done.set_result(f"timed out after {timeout_s:g} s")
