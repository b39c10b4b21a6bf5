"""One run, from the configuration to its summary: probe, prompts, warm-up, load, counters, tables."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.answer import Answer
from bench.client.drive import INTERRUPTED, Bounds, Driver, Task
from bench.client.messages import WorkerPlan
from bench.client.pool import WorkerPool, spread
from bench.config import BenchConfig
from bench.counters import CounterDelta, Snapshot, difference
from bench.engines.base import Engine
from bench.engines.registry import find_engine
from bench.environment import EnergyMeter, describe_host
from bench.errors import BenchError, ConfigError
from bench.finished import summarise_run
from bench.probe import make_composer, make_target, probe
from bench.prompts import Composer, Prompt, write_bodies, write_prompts
from bench.results import RUN, SUMMARY, RunFolder, latest_attempts
from bench.schedule import constant_offsets, gamma_offsets, poisson_offsets, trace_offsets
from bench.server import fetch, read_counters, route_url, running_server
from bench.split import Conversation, Split, load_split
from bench.trace import Trace
from bench.transport.base import Target

logger = logging.getLogger(__name__)

Progress = Callable[[int, int, int], None]
"""Told the conversations that ended, those that failed, and those there are."""

MAX_STAGGER_S = 5.0


@dataclass(slots=True)
class Session:
    """What all passes of one run share."""

    config: BenchConfig
    engine: Engine
    split: Split
    composer: Composer
    target: Target
    folder: RunFolder
    prompts: Mapping[str, Prompt]
    stopped: str = ""
    stagger_s: float = 0.0


def run(config: BenchConfig, out: Path, progress: Progress, *, retry_failed: bool = False) -> dict[str, Any]:
    """Send a split to an engine and return the summary, which is also written.

    Parameters
    ----------
    out
        Folder of the run; what it holds under the same digest is not sent again.
    retry_failed
        Send the conversations that failed once more.

    Raises
    ------
    BenchError
        If the run cannot start; nothing is written then.
    """
    engine, split = find_engine(config.engine.dialect), load_split(config.data)
    folder = RunFolder(out)
    refuse_other_run(folder, config)
    # A salt of this very invocation: a run that is resumed, or repeated, must not meet its own prompts in a cache.
    salt = f"{config.digest()[:12]}-{time.perf_counter_ns():x}" if config.load.cache == "cold" else ""
    # Whatever may be refused is made ahead of the server, which may take half an hour to start.
    composer, target = make_composer(config, engine, salt), make_target(config, engine)
    prompts = {c.question_id: composer.first(c) for c in split.conversations}
    out.mkdir(parents=True, exist_ok=True)
    with running_server(config.engine.serve, config.engine.url, out / "server.log"):
        probed = probe(config, engine, composer, target)
        digest = write_prompts(out, list(prompts.values()))
        folder.write_json(RUN, _describe(config, split, composer, probed) | {"prompts_sha256": digest})
        session = Session(config, engine, split, composer, target, folder, prompts)
        with closing(folder):
            folder.open()
            counters, energy_j = _all_passes(session, progress, retry_failed=retry_failed)
    return summarise_run(folder, config, split, counters, energy_j, session.stopped)


def refuse_other_run(folder: RunFolder, config: BenchConfig) -> None:
    """Refuse a folder that holds a run of another configuration.

    Raises
    ------
    BenchError
        If the digests differ: what lies there is no answer to what is asked.
    """
    if (folder.root / RUN).is_file():
        before = folder.read_json(RUN).get("digest")
        if before != config.digest():
            raise BenchError(f"{folder.root}: holds a run of another configuration; choose another --out")


def run_to_its_end(config: BenchConfig, out: Path, progress: Progress) -> dict[str, Any]:
    """Return the summary of a run, one of several: Ctrl-C in it ends whatever it is a part of, not this run only.

    Raises
    ------
    KeyboardInterrupt
        If it was interrupted; its folder goes on from what it holds.
    """
    summary = run(config, out, progress)
    if {"name": "stopped", "detail": INTERRUPTED} in summary["gates"]:
        raise KeyboardInterrupt
    return summary


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds a run that nothing stopped before its conversations had ended."""
    if not (folder / SUMMARY).is_file():
        return False
    return all(gate["name"] != "stopped" for gate in RunFolder(folder).read_json(SUMMARY)["gates"])


def _describe(config: BenchConfig, split: Split, composer: Composer, probed: dict[str, Any]) -> dict[str, Any]:
    return {
        "digest": config.digest(),
        "config": config.model_dump(mode="json"),
        "split": {
            "name": split.name,
            "sha256": split.sha256,
            "rows": len(split.conversations),
            "total": dict(split.total),
            "placeholders": list(split.placeholders),
            "shortfall": split.shortfall(),
            "synthetic": split.synthetic,
        },
        "chat_format_sha256": composer.chat.sha256 if composer.chat else None,
        "probe": probed,
        "host": describe_host(),
    }


def _all_passes(
    session: Session, progress: Progress, *, retry_failed: bool
) -> tuple[CounterDelta | None, float | None]:
    """Warm up, then send every pass that is not there yet, between two readings of the counters."""
    config, engine = session.config, session.engine
    _reset_cache(config, engine)
    _warm_up(session)
    meter, before = EnergyMeter.open(), read_counters(config.engine.url, engine.metrics_path)
    energy_j = meter.read_j() if meter else 0.0
    resumed = False
    for repeat in range(config.load.repeats):
        tasks, skipped = _tasks(session, repeat, retry_failed=retry_failed)
        resumed = resumed or skipped > 0
        if tasks and not session.stopped:
            _one_pass(session, tasks, progress)
    used_j = meter.read_j() - energy_j if meter else None
    delta = _delta(before, read_counters(config.engine.url, engine.metrics_path), engine)
    # The counters of a run that was resumed cover only its last part.
    return (None, None) if resumed else (delta, used_j)


def _delta(before: Snapshot | None, after: Snapshot | None, engine: Engine) -> CounterDelta | None:
    if before is None or after is None or engine.counters is None:
        return None
    return difference(before, after, engine.counters)


def _reset_cache(config: BenchConfig, engine: Engine) -> None:
    if config.load.cache == "cold" and engine.tells.cache_control == "reset":
        fetch(route_url(config.engine.url, engine.reset_path), method="POST")


def _tasks(session: Session, repeat: int, *, retry_failed: bool) -> tuple[list[Task], int]:
    """Return the conversations of a pass that are still to be sent, and how many are there already."""
    attempts, done = dict[str, int](), set[str]()
    for trace in latest_attempts(session.folder.traces()):
        if trace.repeat == repeat and not trace.warmup:
            attempts[trace.conversation_id] = trace.attempt + 1
            failed = bool(trace.error)
            if (failed and not retry_failed) or (not failed and trace.turn + 1 == trace.num_turns):
                done.add(trace.conversation_id)
    left = [c for c in session.split.conversations if c.question_id not in done]
    tasks = [Task(c, session.prompts[c.question_id], repeat, attempts.get(c.question_id, 0)) for c in left]
    return tasks, len(done)


def _warm_up(session: Session) -> None:
    """Send prompts that are not in the split, and take the stagger from how long they took."""
    count = session.config.load.warmup_requests
    if not count:
        return
    texts = [f"Warm-up {n}: describe what happens when water number {n} boils in a kettle." for n in range(count)]
    rows = [Conversation(f"warm-up-{n}", (text,), {"category": "warm-up"}) for n, text in enumerate(texts)]
    tasks = [Task(row, session.composer.first(row), warmup=True) for row in rows]
    times = list[float]()

    def record(trace: Trace, answer: Answer) -> None:
        session.folder.append(trace)
        if not answer.error:
            times.append((trace.end_ns - trace.sent_ns) * 1e-9)

    driver = _drive(session, tasks, record, lambda *_: None, closed=min(count, 4))
    if driver.stopped:
        # Ctrl-C is the same wherever it comes: a sweep ends with it.
        session.stopped = INTERRUPTED if driver.stopped == INTERRUPTED else f"warm-up: {driver.stopped}"
    session.stagger_s = min(float(np.mean(times)), MAX_STAGGER_S) if times else 0.0


def _one_pass(session: Session, tasks: list[Task], progress: Progress) -> None:
    load = session.config.load
    driver = _drive(
        session,
        tasks,
        lambda trace, _: session.folder.append(trace),
        lambda ended, failed: progress(ended, failed, len(tasks)),
        closed=load.concurrency if load.mode == "closed" else 0,
        offsets=_offsets(session.config, len(tasks)) if load.mode != "closed" else None,
    )
    session.stopped = driver.stopped


def _offsets(config: BenchConfig, n: int) -> Sequence[float]:
    load, rate = config.load, config.load.rate_per_s or 0.0
    if load.mode == "trace":
        try:
            stamps = np.loadtxt(load.trace, np.float64, ndmin=1)
            return list(trace_offsets(stamps, n))
        except (OSError, ValueError) as error:
            raise ConfigError(f"load.trace: {load.trace}: {error}") from None
    if load.mode == "constant":
        return list(constant_offsets(n, rate))
    if load.mode == "poisson":
        return list(poisson_offsets(n, rate, load.seed))
    return list(gamma_offsets(n, rate, load.shape, load.seed))


def _drive(
    session: Session,
    tasks: list[Task],
    record: Callable[[Trace, Answer], None],
    progress: Callable[[int, int], None],
    *,
    closed: int,
    offsets: Sequence[float] | None = None,
) -> Driver:
    """Run tasks through a fresh pool of workers and keep the reports of these."""
    config, limits = session.config, session.config.limits
    streams = closed or min(len(tasks), 512)
    bounds = Bounds(limits.max_consecutive_failures, limits.max_run_s)
    with _scratch(session) as scratch:
        keys = [f"{task.conversation.question_id}-{task.repeat}" for task in tasks]
        encoded = [session.composer.body(task.prompt, key) for task, key in zip(tasks, keys, strict=True)]
        bodies, offsets_file = write_bodies(Path(scratch), encoded)
        stagger = session.stagger_s if closed else 0.0
        plan = WorkerPlan(
            0, session.target, config.client.transport, bodies, offsets_file, 0, 0, 0, stagger, min(streams, len(tasks))
        )
        workers = config.client.workers or max((os.cpu_count() or 2) - 1, 1)
        with WorkerPool(spread(plan, min(workers, len(tasks)), min(closed, len(tasks)))) as pool:
            driver = Driver(pool, session.composer, tasks, record, progress, bounds)
            driver.scheduled(offsets) if offsets is not None else driver.closed(min(closed, len(tasks)))
            reports = pool.stop()
    if not tasks[0].warmup:
        session.folder.append_reports(reports)
    return driver


def _scratch(session: Session) -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(dir=session.folder.root, prefix=".bodies-")
