"""Our client, aiohttp used naively and httpx against one stamping simulator, at 64 to 4,096 streams.

    python tests/perf/client.py [--streams 64,512,2048,4096] [--clients lean,floor,aiohttp,naive,httpx] [--repeats 3]

The simulator runs on the first core, clients on the others. Lag is the client's stamp of a chunk less the server's
clock just before it wrote it (one CLOCK_MONOTONIC), over the time in which every stream ran. Our lean transport stamps
with the arrival in the kernel; "read_lag_p99_ms" is how much later its bytes were in hand, the longest of each 20 ms.
Of CPU time the kernel's own share differs between machines: "lean_over_floor_cpu" is what the machine has no part in.
"merged" is the share of chunks that came less than 0.05 ms after the one before on their stream, though the server
wrote them a step apart. Of several repeats the least lag is shown, for other load on the machine only adds. Prints one
JSON object, last.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import re
import select
import socket
import sys
import time
from array import array
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from bench.calibrate import STAGGER_S, calibration_row, max_tokens, simulator, step_s, stream_all
from bench.engines.registry import ENGINES
from bench.measured import measure
from bench.self_audit import audit_client
from bench.transport.open_files import raise_open_files

MERGED_NS = 50_000
PATH = "/v1/completions"

Stamps = list[list[tuple[int, int]]]


def body(n: int, tokens: int) -> dict[str, Any]:
    """The request of stream n, as a Python object: naive clients encode it themselves."""
    prompt = [65 + n % 26, 32, *map(int, str(n))]
    return {"model": "sim", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": True}


def take(line: bytes | str, stamps: list[tuple[int, int]]) -> bool:
    """Parse one line as the engines' own benchmark scripts do, then stamp it; False at the end."""
    text = line.decode() if isinstance(line, bytes) else line
    text = text.strip()
    if not text.startswith("data:"):
        return True
    if text == "data: [DONE]":
        return False
    value = json.loads(text.removeprefix("data:"))
    if "sim_at_ns" in value:
        stamps.append((value["sim_at_ns"], time.perf_counter_ns()))
    return True


async def naive_aiohttp(url: str, streams: int, tokens: int) -> Stamps:
    """aiohttp as serving benchmarks commonly use it: json=, iter_any, split, json.loads, then the clock."""
    import aiohttp

    async def one(session: aiohttp.ClientSession, n: int) -> list[tuple[int, int]]:
        stamps: list[tuple[int, int]] = []
        await asyncio.sleep(STAGGER_S * n / streams)
        async with session.post(url + PATH, json=body(n, tokens)) as response:
            rest = b""
            async for data in response.content.iter_any():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    take(line, stamps)
        return stamps

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        return await asyncio.gather(*(one(session, n) for n in range(streams)))


async def naive_httpx(url: str, streams: int, tokens: int) -> Stamps:
    """httpx's own line iterator."""
    try:
        import httpx
    except ImportError:
        import httpx2 as httpx

    async def one(client: Any, n: int) -> list[tuple[int, int]]:
        stamps: list[tuple[int, int]] = []
        await asyncio.sleep(STAGGER_S * n / streams)
        async with client.stream("POST", url + PATH, json=body(n, tokens)) as response:
            async for line in response.aiter_lines():
                take(line, stamps)
        return stamps

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        return await asyncio.gather(*(one(client, n) for n in range(streams)))


async def floor(url: str, streams: int, tokens: int) -> Stamps:
    """The least that a Python client can do: wait, read, stamp, keep, on blocking-free sockets and one epoll."""
    host, port = urlsplit(url).hostname or "", urlsplit(url).port or 80
    poll, readers, kept = select.epoll(), {}, []
    begin, order = time.perf_counter() + 0.2, []
    for n in range(streams):
        connection = socket.create_connection((host, port))
        connection.setblocking(False)
        poll.register(connection.fileno(), select.EPOLLIN)
        data = json.dumps(body(n, tokens)).encode()
        head = f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        order.append((connection, head + data))
        kept.append((array("q"), []))
        readers[connection.fileno()] = (connection.recv, kept[-1][0].append, kept[-1][1].append)
    started = ended = 0
    while ended < streams:
        while started < streams and time.perf_counter() >= begin + STAGGER_S * started / streams:
            order[started][0].send(order[started][1])
            started += 1
        for fd, _ in poll.poll(-1 if started == streams else STAGGER_S / streams, streams):
            recv, stamp, keep = readers[fd]
            data = recv(65536)
            stamp(time.perf_counter_ns())
            keep(data)
            ended += data.endswith(b"0\r\n\r\n")
    return [_floor_stamps(at_ns, parts) for at_ns, parts in kept]


def _floor_stamps(at_ns: array[int], parts: list[bytes]) -> list[tuple[int, int]]:
    pairs = zip(at_ns, parts, strict=True)
    return [(int(match.group(1)), ns) for ns, part in pairs for match in _STAMP.finditer(part)]


_STAMP = re.compile(rb'"sim_at_ns":(\d+)')

NAIVE = {"naive": naive_aiohttp, "httpx": naive_httpx, "floor": floor}


def _naive_process(pipe: Any, name: str, url: str, streams: int, tokens: int) -> None:
    raise_open_files()
    begin = time.process_time()
    stamps = asyncio.run(NAIVE[name](url, streams, tokens))
    pipe.send((stamps, time.process_time() - begin))


def run_naive(name: str, url: str, streams: int, tokens: int) -> dict[str, Any]:
    """Run a naive client in a process of its own and return its row."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_naive_process, args=(theirs, name, url, streams, tokens))
    process.start()
    stamps, cpu_s = ours.recv()
    process.join()
    rows = [np.array(row, np.int64) for row in stamps if row]
    begin, end = max(row[0, 0] for row in rows), min(row[-1, 0] for row in rows)
    kept = [row[(row[:, 0] > begin) & (row[:, 0] < end)] for row in rows]
    whole = np.concatenate(kept)
    lag_ms = (whole[:, 1] - whole[:, 0]) * 1e-6
    return {
        # A client so late that its streams never ran all at once has no lag to state.
        "lag_p50_ms": float(np.percentile(lag_ms, 50)) if len(lag_ms) else None,
        "lag_p99_ms": float(np.percentile(lag_ms, 99)) if len(lag_ms) else None,
        "merged_share": merged_share([row[:, 1] for row in kept]) if len(lag_ms) else None,
        "cpu_us_per_chunk": cpu_s / sum(len(row) for row in rows) * 1e6,
        "chunks": len(whole),
    }


def merged_share(stamps_ns: list[np.ndarray]) -> float:
    """Share of the gaps of streams that are shorter than any step."""
    gaps = np.concatenate([np.diff(row) for row in stamps_ns])
    return float((gaps < MERGED_NS).mean())


def run_ours(transport: str, url: str, streams: int, tokens: int) -> dict[str, Any]:
    """Run our client and return its row."""
    traces, reports = stream_all(url, streams, transport, tokens)
    audit = audit_client([measure(trace, ENGINES["vllm"]) for trace in traces], reports)
    row = calibration_row(streams, traces, audit)
    return {key: row[key] for key in row if key not in ("streams", "step_ms")}


def one_cell(client: str, streams: int, seconds: float) -> dict[str, Any]:
    """One client at one number of streams, against a fresh simulator."""
    gc.collect()
    with simulator(step_s(streams)) as url:
        tokens = max_tokens(streams, seconds)
        if client in NAIVE:
            return run_naive(client, url, streams, tokens)
        return run_ours(client, url, streams, tokens)


def quietest(client: str, streams: int, seconds: float, repeats: int) -> dict[str, Any]:
    """The repeat with the least lag."""
    rows = [one_cell(client, streams, seconds) for _ in range(repeats)]
    return min(rows, key=lambda row: float("inf") if row["lag_p99_ms"] is None else row["lag_p99_ms"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", default="64,512,2048,4096")
    parser.add_argument("--clients", default="lean,floor,aiohttp,naive,httpx")
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    result: dict[str, Any] = {"load_average": os.getloadavg(), "cores": len(cores), "streams": {}}
    for streams in map(int, options.streams.split(",")):
        cells = result["streams"][streams] = {"step_ms": step_s(streams) * 1e3}
        for client in options.clients.split(","):
            cells[client] = quietest(client, streams, options.seconds, options.repeats)
            print(f"{streams} {client} {json.dumps(cells[client])}", file=sys.stderr)
        if all(name in cells and cells[name]["lag_p99_ms"] for name in ("lean", "naive")):
            cells["naive_over_lean_lag_p99"] = cells["naive"]["lag_p99_ms"] / cells["lean"]["lag_p99_ms"]
            cells["naive_over_lean_read_lag_p99"] = cells["naive"]["lag_p99_ms"] / cells["lean"]["read_lag_p99_ms"]
        if "lean" in cells and "floor" in cells:
            cells["lean_over_floor_cpu"] = cells["lean"]["cpu_us_per_chunk"] / cells["floor"]["cpu_us_per_chunk"]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
