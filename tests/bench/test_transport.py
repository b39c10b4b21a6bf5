"""Both transports against small raw servers that cut, close and stall as they please."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace

import pytest

from bench.transport import lean
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
        def set_write_buffer_limits(self, high: int) -> None:
            pass

        def write(self, data: bytes) -> None:
            clock[0] = 900  # the process lost its core in here

        def get_write_buffer_size(self) -> int:
            return 0

        def is_closing(self) -> bool:
            return False

    async def posted() -> int:
        connection = lean._Connection()
        connection.connection_made(Taking())
        connection.sent_ns = 7  # of the request before
        connection.post(b"x", asyncio.get_running_loop())
        return connection.sent_ns

    monkeypatch.setattr(lean, "time", SimpleNamespace(perf_counter_ns=lambda: clock[0]))
    assert asyncio.run(posted()) == 100
