"""The simulator's server: one process, one loop, every stream of a batch written at each step."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import httptools

from bench.simulator.dialects import DIALECTS
from bench.simulator.metrics import Totals, metrics_page
from bench.simulator.process import Process, simulate_answer
from bench.simulator.stream import SimStream
from bench.transport.open_files import raise_open_files

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Simulation:
    """What is simulated: the process of acceptance, the clock of the engine, and its faults.

    Attributes
    ----------
    step_s, step_s_per_stream
        Duration of a step: ``step_s + step_s_per_stream * streams``, s.
    prefill_s
        Time from a request to its first token, s.
    keep_alive
        Whether a comment line is sent before the first token.
    split
        Whether each write is cut in two inside the event.
    ranks
        Data-parallel ranks, each with counters of its own.
    restart_after
        Requests after which the counters of one rank start anew; 0: never.
    fail_after
        Requests after which every one is refused; 0: never.
    warm_cache
        Whether prompts count as cached unless the request keeps the cache out.
    draft_share
        Share of a step that is drafting, in [0, 1], as the gauge of an engine that has one tells it.
    stamped
        Whether each chunk carries the server's clock just before the write, for calibration.
    """

    dialect: str = "vllm"
    process: Process = field(default_factory=Process)
    step_s: float = 0.0
    step_s_per_stream: float = 0.0
    prefill_s: float = 0.0
    keep_alive: bool = False
    split: bool = False
    ranks: int = 1
    restart_after: int = 0
    fail_after: int = 0
    warm_cache: bool = False
    draft_share: float = 0.0
    stamped: bool = False


class SimulatorServer:
    """Serves a `Simulation` on a loopback port until it is closed."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.dialect = DIALECTS[simulation.dialect]
        self.totals = [Totals() for _ in range(max(simulation.ranks, 1))]
        self.num_requests = 0
        self.log: list[dict[str, Any]] = []
        self._active: dict[_Connection, SimStream] = {}
        self._wake = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._ticks: asyncio.Task[None] | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen, and return the address as a URL."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port, backlog=8192)
        self._ticks = loop.create_task(self._run())
        chosen = self._server.sockets[0].getsockname()[1]
        return f"http://{host}:{chosen}"

    async def close(self) -> None:
        """Stop listening and drop what is under way."""
        if self._ticks is not None:
            self._ticks.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._active):
            connection.abort()

    def begin(self, connection: _Connection, stream: SimStream) -> None:
        """Give a stream its place in the batch."""
        stream.ready = self.dialect.step(stream)
        self._active[connection] = stream
        self._wake.set()

    def drop(self, connection: _Connection) -> None:
        """Take a stream out of the batch."""
        self._active.pop(connection, None)

    async def _run(self) -> None:
        due = time.perf_counter()
        while True:
            if not self._active:
                self._wake.clear()
                await self._wake.wait()
                due = time.perf_counter()
            step_s = self.simulation.step_s + self.simulation.step_s_per_stream * len(self._active)
            due = max(due + step_s, time.perf_counter()) if step_s else 0.0
            await asyncio.sleep(max(due - time.perf_counter(), 0.0) if step_s else 0.0)
            batch = list(self._active.items())
            for connection, stream in batch:
                self._write(connection, stream)
            for connection, stream in batch:
                if self._advance(connection, stream):
                    self._active.pop(connection, None)

    def _write(self, connection: _Connection, stream: SimStream) -> None:
        """Write the chunk that was made ready, so that a batch leaves as fast as an engine's does."""
        data = stream.ready
        if self.simulation.stamped:
            data = b'%s,"sim_at_ns":%d}\n\n' % (data[:-3], time.perf_counter_ns())
        connection.write(data)

    def _advance(self, connection: _Connection, stream: SimStream) -> bool:
        """Make the next chunk of a stream ready; True if there is none."""
        if stream.answer.fate in ("broken", "cut") and stream.chunk >= len(stream.answer.chunks) // 2:
            connection.break_off(stream.answer.fate)
            return True
        if stream.chunk < len(stream.answer.chunks):
            stream.ready = self.dialect.step(stream)
            return False
        self._count(stream)
        connection.finish(self.dialect.closing(stream))
        return True

    def _count(self, stream: SimStream) -> None:
        rank = stream.request.prompt_ids[-1] + len(stream.request.prompt_ids)
        self.totals[rank % len(self.totals)].add(stream.answer, stream.cached)

    def answer(self, connection: _Connection, path: str, method: str, body: bytes) -> None:
        """Answer one request: a page, a refusal, or a stream."""
        if method == "GET":
            connection.page(self._page(path))
            return
        if path in ("/reset_prefix_cache", "/flush_cache"):
            connection.page("{}")
            return
        self.num_requests += 1
        sim = self.simulation
        if sim.restart_after and self.num_requests == sim.restart_after:
            self.totals[-1] = Totals()
        if sim.fail_after and self.num_requests > sim.fail_after:
            connection.refuse(503, "the engine is gone")
            return
        self._open(connection, path, body)

    def _open(self, connection: _Connection, path: str, body: bytes) -> None:
        sim = self.simulation
        try:
            if path not in self.dialect.paths:
                raise LookupError(path)
            request = self.dialect.request(path, json.loads(body))
        except LookupError:
            connection.refuse(404, f"no route {path}")
            return
        except (ValueError, KeyError, TypeError) as error:
            connection.refuse(400, str(error))
            return
        answer = simulate_answer(sim.process, request.prompt_ids, request.max_tokens, ignore_eos=request.ignore_eos)
        self.log.append({"path": path, "prompt_ids": request.prompt_ids, "at_ns": time.perf_counter_ns()})
        if answer.fate == "failed":
            connection.refuse(500, "simulated failure")
            return
        cached = len(request.prompt_ids) - 1 if sim.warm_cache and not request.salted else 0
        connection.head(sim.keep_alive)
        stream = SimStream(request, answer, sim.process.draft_length, cached=cached)
        loop = asyncio.get_running_loop()
        loop.call_later(sim.prefill_s, self.begin, connection, stream) if sim.prefill_s else self.begin(
            connection, stream
        )

    def _page(self, path: str) -> str:
        if path.endswith("/metrics"):
            sim = self.simulation
            return metrics_page(sim.dialect, self.totals, sim.process.draft_length, sim.draft_share)
        return json.dumps({"version": "simulated", "dialect": self.simulation.dialect})


class _Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection."""

    def __init__(self, server: SimulatorServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._url = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.drop(self)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        path, body = self._url.decode(), b"".join(self._body)
        self._url, self._body = b"", []
        method = self._parser.get_method().decode()
        self._server.answer(self, path.partition("?")[0], method, body)

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def page(self, text: str, status: int = 200) -> None:
        """Answer with a whole body."""
        body = text.encode()
        kind = b"application/json" if text.startswith("{") else b"text/plain"
        self._send(
            b"HTTP/1.1 %d -\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s" % (status, kind, len(body), body)
        )

    def refuse(self, status: int, message: str) -> None:
        """Answer with an error."""
        self.page(json.dumps({"error": {"message": message, "code": status}}), status)

    def head(self, keep_alive: bool) -> None:
        """Begin a stream."""
        self._send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        if keep_alive:
            self._frame(b": keep-alive\n\n")

    def _frame(self, data: bytes) -> None:
        self._send(b"%x\r\n%s\r\n" % (len(data), data))

    def write(self, data: bytes) -> None:
        """Write events, in one HTTP chunk or cut in two."""
        if self._server.simulation.split and len(data) > 1:
            at = len(data) // 2
            self._frame(data[:at])
            self._frame(data[at:])
        else:
            self._frame(data)

    def finish(self, data: bytes) -> None:
        """Write the last events and end the response."""
        self._frame(data)
        self._send(b"0\r\n\r\n")

    def break_off(self, fate: str) -> None:
        """End a stream by an error inside it, or by closing the connection."""
        if fate == "broken":
            self.finish(b'data: {"error":{"message":"simulated break","code":500}}\n\ndata: [DONE]\n\n')
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()


def run_loop() -> Callable[..., Any]:
    """Return what runs a coroutine: uvloop where it is installed, else asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return cast(Callable[..., Any], uvloop.run)


async def serve(simulation: Simulation, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until cancelled; `ready` is told the URL."""
    raise_open_files()
    server = SimulatorServer(simulation)
    ready(await server.start(host, port))
    try:
        await asyncio.Event().wait()
    finally:
        await server.close()
