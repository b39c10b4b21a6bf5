"""The lean transport: stamps and keeps each read, for thousands of streams over plain HTTP.

`arrivals` reads and stamps. HTTP is parsed (httptools) only for the head and when a read ends like the end of a chunked
body; the framing is taken off elsewhere, after the request.
"""

from __future__ import annotations

import asyncio
import socket
import time
from array import array
from typing import Any

import httptools

from bench.transport.arrivals import Arrivals
from bench.transport.base import Reading, Target

_NOTHING = memoryview(b"")


class _Connection:
    """One keep-alive connection, one request at a time: a `Receiver`."""

    def __init__(self, connected: socket.socket, arrivals: Arrivals) -> None:
        self.socket = connected
        self.receive = connected.recvmsg
        self.done: asyncio.Future[str] | None = None
        self.at_ns: array[int] = array("q")
        self.parts: list[bytes] = []
        self.sent_ns = 0
        self.alive = True
        self.unanswered = False
        self._arrivals = arrivals
        self.deferred = False
        self._unsent = _NOTHING
        self._chunked = False
        self._fed = 0
        self._parser = httptools.HttpResponseParser(self)
        arrivals.add(self)

    def look(self) -> None:
        """Parse what was read, or end with the connection."""
        if self.parts[-1]:
            self._parse()
            return
        self.at_ns.pop()
        self.parts.pop()
        self._drop("connection closed before the end of the response")

    def failed(self, error: OSError) -> None:
        """End with the connection."""
        self._drop(f"connection closed: {error}")

    def _drop(self, error: str) -> None:
        self.unanswered = not self.parts
        self.abort()
        self._end(error)

    def on_headers_complete(self) -> None:
        # Only a chunked body has an end that its own bytes show; any other is parsed as it comes.
        self.deferred = self._chunked

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"transfer-encoding" and b"chunked" in value.lower():
            self._chunked = True

    def on_message_complete(self) -> None:
        # An answer to half a request, a refusal mostly: the other half must not go before the next request.
        self.alive = self.alive and self._parser.should_keep_alive() and not self._unsent
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
        self.sent_ns, self.deferred, self._chunked, self._fed = 0, False, False, 0
        self._parser = httptools.HttpResponseParser(self)
        if not self.alive:
            self._drop("connection closed")
            return self.done
        # If the kernel takes all of it at once, this is when it was sent. A stamp from after the call would be late by
        # as long as this process then waited for a core, with the server at work already: its answer would seem
        # quicker than it was.
        begun_ns = time.perf_counter_ns()
        self._unsent = memoryview(request)
        self._write()
        if not self._unsent:
            self.sent_ns = begun_ns
        elif self.alive:
            loop.add_writer(self.socket.fileno(), self._write_on, loop)
        return self.done

    def _write(self) -> None:
        try:
            sent = self.socket.send(self._unsent)
            # An empty view of the request would keep all of it in memory.
            self._unsent = self._unsent[sent:] if sent < len(self._unsent) else _NOTHING
        except BlockingIOError:
            pass
        except OSError as error:
            self.failed(error)

    def _write_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._write()
        if not self._unsent:
            self.sent_ns = time.perf_counter_ns()
            loop.remove_writer(self.socket.fileno())

    def abort(self) -> None:
        """Close the connection, if it is open."""
        self.alive = False
        if self.socket.fileno() >= 0:
            asyncio.get_running_loop().remove_writer(self.socket.fileno())
            self._arrivals.remove(self)
            self.socket.close()


class LeanTransport:
    """Keep-alive connections to one host over plain HTTP."""

    def __init__(self, target: Target) -> None:
        if not target.url.startswith("http://"):
            raise ValueError(f"the lean transport speaks plain HTTP only, got {target.url}; use transport = 'aiohttp'")
        if not hasattr(socket.socket, "recvmsg"):
            raise ValueError("this system's sockets have no recvmsg; use transport = 'aiohttp'")
        self._target = target
        self.read_lag_ns = array("q")
        self._arrivals: Arrivals | None = None
        self._addresses: list[tuple[Any, ...]] = []
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
        self._arrivals = self._arrivals or Arrivals(self.read_lag_ns)
        if not self._addresses:
            self._addresses = await loop.getaddrinfo(self._target.host, self._target.port, type=socket.SOCK_STREAM)
        refused = OSError("no address")
        for family, kind, protocol, _, address in self._addresses:
            connecting = socket.socket(family, kind, protocol)
            try:
                connecting.setblocking(False)
                connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(connecting, address)
                return _Connection(connecting, self._arrivals)
            except OSError as error:
                refused = error
                connecting.close()
            except BaseException:
                connecting.close()
                raise
        raise refused

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
        if self._arrivals is not None:
            self._arrivals.close()


def _expire(connection: _Connection, done: asyncio.Future[str], timeout_s: float) -> None:
    if not done.done():
        connection.alive = False
        done.set_result(f"timed out after {timeout_s:g} s")
