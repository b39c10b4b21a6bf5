"""Both transports against small raw servers that cut, close and stall as they please."""

import asyncio
import sys
import threading
import time
from array import array
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from bench.transport import arrivals, lean
from bench.transport.base import Reading, Target, unframe
from bench.transport.lean import LeanTransport
from bench.transport.registry import make_transport

EVENTS = [b"data: 1\n\n", b"data: 0\r\n\r\n", b": keep\n\n", b"data: [DONE]\n\n"]


def chunked(parts: list[bytes]) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


async def exchange(
    name: str, pieces: list[bytes], *, close: bool = False, times: int = 1, timeout_s: float = 20.0, pause: bool = True
) -> list[Reading]:
    """Send bodies to a server that answers each request with the pieces, a write apiece."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n") if b": " in line)
                seen.append(await reader.readexactly(int(fields[b"content-length"])))
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    if pause:
                        await asyncio.sleep(0)
                if close:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = make_transport(name, Target(f"http://127.0.0.1:{port}/x", timeout_s=timeout_s))
    await transport.connect(1)
    readings = [await transport.send(b'{"n":%d}' % n) for n in range(times)]
    await transport.close()
    server.close()
    await server.wait_closed()
    assert seen[:times] == [b'{"n":%d}' % n for n in range(len(seen[:times]))]
    return readings


def run(coroutine: object) -> list[Reading]:
    return asyncio.run(coroutine)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["lean", "aiohttp"])
def test_a_stream_is_read_whole_and_its_connection_kept(name):
    for reading in run(exchange(name, [chunked(EVENTS)], times=3)):
        status, reads = unframe(reading)
        assert (status, reads.body, reading.error) == (200, b"".join(EVENTS), "")
        assert reading.sent_ns <= reading.at_ns[0] <= reading.end_ns


def test_framing_cut_at_every_byte_gives_the_same_body():
    data = chunked(EVENTS)
    for at in range(1, len(data)):
        (reading,) = run(exchange("lean", [data[:at], data[at:]]))
        assert reading.error == "", at
        assert unframe(reading)[1].body == b"".join(EVENTS), at


def test_one_byte_at_a_time_gives_the_same_body():
    data = chunked(EVENTS)
    (reading,) = run(exchange("lean", [data[i : i + 1] for i in range(len(data))]))
    status, reads = unframe(reading)
    assert (status, reads.body, reading.error) == (200, b"".join(EVENTS), "")


def test_an_end_of_chunks_inside_the_content_is_not_the_end():
    # The read ends with the bytes of a last chunk, but they are content; more follows.
    head, rest = chunked([b"data: 0\r\n\r\n", b"data: more\n\n"]).split(b"data: 0\r\n\r\n", 1)
    (reading,) = run(exchange("lean", [head + b"data: 0\r\n\r\n", rest]))
    assert unframe(reading)[1].body == b"data: 0\r\n\r\ndata: more\n\n"


@pytest.mark.parametrize("name", ["lean", "aiohttp"])
def test_an_error_page_with_a_length_is_read(name):
    page = b'HTTP/1.1 503 Busy\r\nContent-Length: 16\r\n\r\n{"error":"busy"}'
    for reading in run(exchange(name, [page], times=2)):
        status, reads = unframe(reading)
        assert (status, reads.body, reading.error) == (503, b'{"error":"busy"}', "")


@pytest.mark.parametrize("name", ["lean", "aiohttp"])
def test_a_connection_that_closes_early_is_an_error_with_what_there_was(name):
    (reading,) = run(exchange(name, [chunked(EVENTS)[:-20]], close=True))
    assert "closed" in reading.error
    assert reading.body


def dropped(times: int) -> tuple[list[Reading], int]:
    """Send to a server that answers the first request of a connection and ends it when the second is there."""
    served, handlers = 0, []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        handlers.append(asyncio.current_task())
        await reader.readuntil(b"}")
        served += 1
        if served < 4:
            writer.write(chunked(EVENTS))
            await writer.drain()
            with suppress(asyncio.IncompleteReadError):
                await reader.readuntil(b"}")
        writer.close()

    async def send() -> list[Reading]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = LeanTransport(Target(f"http://127.0.0.1:{port}/x", timeout_s=20.0))
        readings = [await transport.send(b'{"n":%d}' % n) for n in range(times)]
        await transport.close()
        await asyncio.gather(*handlers)
        server.close()
        await server.wait_closed()
        return readings

    return asyncio.run(send()), served


def test_a_kept_connection_that_ends_unanswered_has_its_request_sent_once_more():
    readings, served = dropped(3)
    assert [r.error for r in readings] == ["", "", ""]
    assert served == 3
    # On a connection of its own a request that is not answered has failed: it may have had its effect.
    readings, served = dropped(4)
    assert [r.error != "" for r in readings] == [False, False, False, True]
    assert served == 4


@pytest.mark.parametrize("name", ["lean", "aiohttp"])
def test_a_server_that_stalls_times_out_and_the_next_request_gets_a_new_connection(name):
    readings = run(exchange(name, [chunked(EVENTS)[:60]], times=2, timeout_s=0.2))
    assert [r.error for r in readings] == ["timed out after 0.2 s"] * 2


@pytest.mark.parametrize("name", ["lean", "aiohttp"])
def test_a_server_that_is_not_there_is_an_error_not_an_exception(name):
    async def refused() -> Reading:
        transport = make_transport(name, Target("http://127.0.0.1:9/x"))
        try:
            return await transport.send(b"{}")
        finally:
            await transport.close()

    assert "cannot connect" in asyncio.run(refused()).error


def test_garbage_is_no_response():
    (reading,) = run(exchange("lean", [b"SSH-2.0-hello\r\n"], close=True))
    assert "not an HTTP response" in reading.error
    with pytest.raises(ValueError, match="not an HTTP response"):
        unframe(reading)


def test_the_lean_transport_refuses_tls_by_name():
    with pytest.raises(ValueError, match="plain HTTP only"):
        LeanTransport(Target("https://example.invalid/v1"))
    with pytest.raises(ValueError, match="lean or aiohttp"):
        make_transport("carrier-pigeon", Target("http://127.0.0.1:1/"))


def test_a_large_body_is_stamped_when_its_last_byte_is_with_the_kernel():
    async def slow_reader() -> tuple[Reading, int]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.05)
            await reader.readexactly(len(body))
            writer.write(chunked(EVENTS))
            await writer.drain()
            writer.close()

        body = b" " * (32 << 20)
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 16)
        transport = LeanTransport(Target(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
        begin = asyncio.get_running_loop().time()
        reading = await transport.send(body)
        await transport.close()
        server.close()
        await server.wait_closed()
        return reading, round(begin * 1e9)

    reading, begin_ns = asyncio.run(slow_reader())
    assert reading.error == ""
    assert reading.sent_ns - begin_ns > 40_000_000, "the server took nothing for 50 ms"
    assert reading.sent_ns < reading.at_ns[0]


def test_a_request_that_the_kernel_takes_at_once_was_sent_before_the_call_that_handed_it_over(monkeypatch):
    clock = [100]

    class Taking:
        recvmsg = None

        def send(self, data: bytes) -> int:
            clock[0] = 900  # the process lost its core in here
            return len(data)

    async def posted() -> int:
        connection = lean._Connection(Taking(), SimpleNamespace(add=print))
        connection.sent_ns = 7  # of the request before
        connection.post(b"x", asyncio.get_running_loop())
        return connection.sent_ns

    monkeypatch.setattr(lean, "time", SimpleNamespace(perf_counter_ns=lambda: clock[0]))
    assert asyncio.run(posted()) == 100


def late_reading(streams: int, held_s: float) -> tuple[list[Reading], list[int], list[int]]:
    """Send on so many streams to servers in a thread that write while the client's loop is held up.

    Returns what was read, when the servers had written, and the lags of the reads.
    """
    wrote: list[int] = []
    handlers: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.current_task())
        await reader.readuntil(b"}")
        await asyncio.sleep(held_s / 4)
        writer.write(chunked(EVENTS))
        wrote.append(time.perf_counter_ns())
        await writer.drain()
        writer.close()

    ready, port, done = threading.Event(), [0], threading.Event()

    async def serve_all() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
        port[0] = server.sockets[0].getsockname()[1]
        ready.set()
        await asyncio.to_thread(done.wait)
        await asyncio.gather(*handlers)
        server.close()
        await server.wait_closed()

    async def send() -> tuple[list[Reading], list[int]]:
        transport = LeanTransport(Target(f"http://127.0.0.1:{port[0]}/x"))
        await transport.connect(streams)
        sends = [asyncio.create_task(transport.send(b"{}")) for _ in range(streams)]
        await asyncio.sleep(0.001)
        time.sleep(held_s)  # as a client that is busy elsewhere
        readings = await asyncio.gather(*sends)
        await transport.close()
        return readings, list(transport.read_lag_ns)

    thread = threading.Thread(target=lambda: asyncio.run(serve_all()))
    thread.start()
    ready.wait()
    try:
        readings, lags = asyncio.run(send())
    finally:
        done.set()
        thread.join()
    return readings, wrote, lags


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when bytes arrived")
@pytest.mark.parametrize("streams", [1, arrivals.MANY_STREAMS])
def test_a_client_that_comes_late_still_stamps_what_arrived_when_it_did(streams):
    readings, wrote, lags = late_reading(streams, 1.0)
    assert [r.error for r in readings] == [""] * streams
    # The writes come a quarter of a second after the requests, the reads three quarters after the writes.
    assert max(r.at_ns[-1] for r in readings) < max(wrote) + 0.3e9
    assert max(lags) > 0.3e9


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        pytest.param("sys", SimpleNamespace(platform="another"), id="another system"),
        # As in a sandbox whose kernel knows no such option.
        pytest.param("_SO_TIMESTAMPNS", 0x7FFF, id="no such option"),
    ],
)
@pytest.mark.parametrize("streams", [1, arrivals.MANY_STREAMS])
def test_where_the_kernel_tells_no_arrivals_the_client_stamps_when_it_reads(monkeypatch, streams, changed, value):
    monkeypatch.setattr(arrivals, changed, value)
    monkeypatch.setattr(arrivals, "PERIOD_S", 30.0)  # reads are not put off, for their stamps would be
    readings, wrote, lags = late_reading(streams, 0.4)
    assert [r.error for r in readings] == [""] * streams
    assert max(r.at_ns[-1] for r in readings) > min(wrote) + 0.15e9
    assert lags == []


def test_a_clock_of_the_day_that_is_set_puts_no_stamp_out_of_order_or_outside_its_request():
    reading = Reading(sent_ns=100, end_ns=900, framed=True)
    data = chunked([b"<1>", b"<2>", b"<3>"])
    cuts = [0, data.index(b"<2>"), data.index(b"<3>"), len(data)]
    reading.body, reading.sizes = data, array("q", np.diff(cuts).tolist())
    reading.at_ns = array("q", [-7_000, 400, 300])
    _, reads = unframe(reading)
    assert list(reads) == [(100, b"<1>"), (400, b"<2>"), (400, b"<3>")]
    reading.at_ns = array("q", [200, 5_000, 600])
    assert [at for at, _ in unframe(reading)[1]] == [200, 900, 900]


def test_a_connection_that_answered_half_a_request_takes_no_other():
    """A server that refuses a long request before it has read it would take the rest of it for the next request."""
    handlers: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno\n")
        await writer.drain()
        with suppress(ConnectionResetError):
            while await reader.read(1 << 20):
                pass
        writer.close()

    async def send() -> list[Reading]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 12)
        transport = LeanTransport(Target(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", timeout_s=20.0))
        readings = [await transport.send(b" " * (64 << 20)) for _ in range(2)]
        await transport.close()
        await asyncio.gather(*handlers)
        server.close()
        await server.wait_closed()
        return readings

    assert [(unframe(r)[0], r.error) for r in asyncio.run(send())] == [(413, "")] * 2
    assert len(handlers) == 2
