"""What this client is worth on this host: its lags against a simulator that stamps each chunk before it writes it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from bench.client.drive import Driver, Task
from bench.client.messages import WorkerPlan
from bench.client.pool import WorkerPool, spread
from bench.engines.base import Sampling
from bench.engines.registry import ENGINES
from bench.errors import EngineError
from bench.measured import NS, measure
from bench.prompts import Composer, write_bodies
from bench.self_audit import SelfAudit, audit_client
from bench.split import Conversation
from bench.trace import Trace
from bench.transport.base import Target
from bench.worker_report import WorkerReport

CALIBRATION_COLUMNS = (
    "streams",
    "step_ms",
    "chunks",
    "lag_p50_ms",
    "lag_p99_ms",
    "merged_share",
    "cpu_us_per_chunk",
    "loop_lag_p99_ms",
    "read_lag_p99_ms",
    "dispatch_lag_p99_ms",
    "valid",
    "reasons",
)

RATES = (0.8, 0.6, 0.5)
TOKENS_A_STEP = 1 + 0.8 + 0.8 * 0.6 + 0.8 * 0.6 * 0.5
STAGGER_S = 2.0

_STAMP = re.compile(rb'"sim_at_ns":(\d+)')


def step_s(streams: int) -> float:
    """Return the step of the simulated engine: 100 ms at 2,048 streams, 200 ms at 4,096, 20 ms at few."""
    return {64: 0.02, 512: 0.04, 2048: 0.1, 4096: 0.2}.get(streams, max(0.02, streams / 20_480))


def calibrate_client(counts: Sequence[int], transport: str, seconds: float) -> list[dict[str, Any]]:
    """Return a row of lags for each number of streams."""
    return [_calibrated(streams, transport, seconds) for streams in counts]


def _calibrated(streams: int, transport: str, seconds: float) -> dict[str, Any]:
    with simulator(step_s(streams)) as url:
        traces, reports = stream_all(url, streams, transport, max_tokens(streams, seconds))
    audit = audit_client([measure(trace, ENGINES["vllm"]) for trace in traces], reports)
    return calibration_row(streams, traces, audit)


def max_tokens(streams: int, seconds: float) -> int:
    """Return the tokens of an answer that lasts the stagger and as many seconds more."""
    return int((seconds + STAGGER_S) / step_s(streams) * TOKENS_A_STEP)


@contextmanager
def simulator(step: float) -> Generator[str]:
    """Run a stamping simulator in a process of its own and yield its URL.

    Inside the block the simulator has the first core to itself, and this process with all that it starts the others,
    where there are several.
    """
    rates = ",".join(map(str, RATES))
    command = [sys.executable, "-m", "speedbench", "bench", "simulate", "--stamped", "--step-s", str(step)]
    process = subprocess.Popen([*command, "--acceptance-rates", rates], stdout=subprocess.PIPE, text=True)
    cores = sorted(os.sched_getaffinity(0))
    try:
        if len(cores) > 1:
            os.sched_setaffinity(process.pid, cores[:1])
            os.sched_setaffinity(0, cores[1:])
        url = process.stdout.readline().strip() if process.stdout else ""
        if not url:
            raise EngineError(f"the simulator did not start (status {process.wait()})")
        yield url
    finally:
        os.sched_setaffinity(0, cores)
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()


def stream_all(url: str, streams: int, transport: str, tokens: int) -> tuple[list[Trace], list[WorkerReport]]:
    """Keep all streams open at once, once, and return their traces and how the workers fared."""
    engine = ENGINES["vllm"]
    composer = Composer(engine, "sim", Sampling(max_tokens=tokens, ignore_eos=True), None)
    rows = [Conversation(str(n), ("",), {}, (65 + n % 26, 32, *map(int, str(n)))) for n in range(streams)]
    tasks = [Task(row, composer.first(row)) for row in rows]
    traces = list[Trace]()
    with tempfile.TemporaryDirectory() as scratch:
        bodies, offsets = write_bodies(Path(scratch), [composer.body(task.prompt, "") for task in tasks])
        target = Target(url + engine.route)
        plan = WorkerPlan(0, target, transport, bodies, offsets, 0, 0, 0, STAGGER_S, streams)
        workers = max((os.cpu_count() or 2) - 1, 1)
        with WorkerPool(spread(plan, workers, streams)) as pool:
            Driver(pool, composer, tasks, lambda trace, _: traces.append(trace), lambda *_: None).closed(streams)
            reports = pool.stop()
    return traces, reports


def calibration_row(streams: int, traces: Sequence[Trace], audit: SelfAudit) -> dict[str, Any]:
    """Return the row of one calibration: lags of the chunks while all streams ran."""
    lag_ms, merged, chunks = lags(traces)
    return {
        "streams": streams,
        "step_ms": step_s(streams) * 1e3,
        "chunks": chunks,
        "lag_p50_ms": float(np.percentile(lag_ms, 50)) if len(lag_ms) else None,
        "lag_p99_ms": float(np.percentile(lag_ms, 99)) if len(lag_ms) else None,
        "merged_share": merged / chunks if chunks else None,
        "cpu_us_per_chunk": audit.cpu_us_per_chunk,
        "loop_lag_p99_ms": _ms(audit.loop_lag_p99_s),
        "read_lag_p99_ms": _ms(audit.read_lag_p99_s),
        "dispatch_lag_p99_ms": _ms(audit.dispatch_lag_p99_s),
        "valid": audit.valid,
        "reasons": "; ".join(audit.reasons),
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def lags(traces: Sequence[Trace]) -> tuple[np.ndarray, int, int]:
    """Return client stamp less server stamp of each chunk, ms; the merged chunks; and all chunks.

    Only chunks that the server wrote while every stream ran count: after the last first chunk, before the first last.
    """
    rows = [_stamps(trace) for trace in traces if trace.reads.body]
    rows = [row for row in rows if len(row)]
    if not rows:
        return np.zeros(0), 0, 0
    begin = max(int(row[0, 0]) for row in rows)
    end = min(int(row[-1, 0]) for row in rows)
    kept = [row[(row[:, 0] > begin) & (row[:, 0] < end)] for row in rows]
    merged = sum(len(row) - len(np.unique(row[:, 2])) for row in kept)
    whole = np.concatenate(kept)
    return (whole[:, 1] - whole[:, 0]) * NS * 1e3, merged, len(whole)


def _stamps(trace: Trace) -> np.ndarray:
    """Return server stamp, client stamp and read of each chunk, int64, shape ``(chunks, 3)``."""
    ends = list(accumulate(trace.reads.sizes))
    rows = []
    for match in _STAMP.finditer(trace.reads.body):
        read = bisect_left(ends, match.end())
        rows.append((int(match.group(1)), trace.reads.at_ns[read], read))
    return np.array(rows, np.int64).reshape(-1, 3)
