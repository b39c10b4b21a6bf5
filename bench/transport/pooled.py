"""The aiohttp transport: TLS and proxies, the framing taken off by the library."""

from __future__ import annotations

import asyncio
import time
from array import array
from types import SimpleNamespace
from typing import Any

import aiohttp

from bench.transport.base import Reading, Target

_READ_BYTES = 1 << 20


class AiohttpTransport:
    """One session without a limit on connections; bodies are bytes already and each read is only stamped."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._session: aiohttp.ClientSession | None = None
        self.read_lag_ns = array("q")

    async def connect(self, count: int) -> None:
        """Open the session; its connections open as they are needed."""
        trace = aiohttp.TraceConfig()
        trace.on_request_chunk_sent.append(_stamp_sent)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=3600),
            timeout=aiohttp.ClientTimeout(total=self._target.timeout_s),
            read_bufsize=_READ_BYTES,
            auto_decompress=False,
            trust_env=True,
            trace_configs=[trace],
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity", **dict(self._target.headers)},
        )

    async def send(self, body: bytes) -> Reading:
        """Post a body and return what was read."""
        if self._session is None:
            await self.connect(0)
        reading, parts = Reading(), list[bytes]()
        try:
            await self._read(reading, parts, body)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            reading.error = _worded(error, self._target.timeout_s)
        reading.end_ns = time.perf_counter_ns()
        reading.sent_ns = reading.sent_ns or reading.end_ns
        reading.sizes.extend(map(len, parts))
        reading.body = b"".join(parts)
        return reading

    async def _read(self, reading: Reading, parts: list[bytes], body: bytes) -> None:
        assert self._session is not None
        sent = SimpleNamespace(at_ns=0)
        async with self._session.post(self._target.url, data=body, trace_request_ctx=sent) as response:
            reading.status, reading.sent_ns = response.status, sent.at_ns
            content, clock, stamps = response.content, time.perf_counter_ns, reading.at_ns
            while data := await content.readany():
                stamps.append(clock())
                parts.append(data)

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)


async def _stamp_sent(_session: Any, context: Any, _params: Any) -> None:
    context.trace_request_ctx.at_ns = time.perf_counter_ns()


def _worded(error: BaseException, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"timed out after {timeout_s:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {error}"
    return f"connection closed: {error}"
