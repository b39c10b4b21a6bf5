"""A worker process: takes conversations, sends their bodies, stamps what comes back. It parses nothing."""

from __future__ import annotations

import asyncio
import gc
import queue
import signal
import threading
import time
from array import array
from contextlib import suppress
from multiprocessing.connection import Connection

import numpy as np

from bench.client.messages import Finished, Go, NextTurn, Ready, Start, Stop, WorkerPlan
from bench.transport.base import Transport
from bench.transport.open_files import raise_open_files
from bench.transport.registry import make_transport
from bench.worker_report import WorkerReport

LAG_SAMPLE_S = 0.02


def run_worker(plan: WorkerPlan, connection: Connection) -> None:
    """Run one worker until it is told to stop or the coordinator is gone."""
    raise_open_files()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's, who then says Stop
    try:
        import uvloop

        uvloop.run(_Worker(plan, connection).run())
    except ImportError:
        asyncio.run(_Worker(plan, connection).run())


class _Bodies:
    """The encoded first requests, in a file that all workers map."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._offsets = np.load(plan.offsets)
        self._bytes = (
            np.memmap(plan.bodies, np.uint8, mode="r") if plan.bodies.stat().st_size else np.zeros(0, np.uint8)
        )

    def __getitem__(self, index: int) -> bytes:
        return self._bytes[self._offsets[index] : self._offsets[index + 1]].tobytes()


class _Worker:
    def __init__(self, plan: WorkerPlan, connection: Connection) -> None:
        self._plan = plan
        self._connection = connection
        self._bodies = _Bodies(plan)
        self._outbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._waiting: asyncio.Queue[Start] = asyncio.Queue()
        self._next: dict[int, asyncio.Future[bytes | None]] = {}
        self._scheduled: set[asyncio.Task[None]] = set()
        self._go: asyncio.Future[int] | None = None
        self._stopped = asyncio.Event()
        self._lag_ns = array("q")
        self._transport: Transport = make_transport(plan.transport, plan.target)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._go = loop.create_future()
        sender = threading.Thread(target=self._send_all, daemon=True)
        sender.start()
        threading.Thread(target=self._receive_all, args=(loop,), daemon=True).start()
        report = WorkerReport(self._plan.index, 0.0, 0.0)
        try:
            await self._transport.connect(self._plan.connections)
            self._outbox.put(Ready(self._plan.index))
            report = await self._measured()
        except OSError as error:
            report = WorkerReport(
                self._plan.index,
                0.0,
                0.0,
                error=f"{self._plan.target.url}: cannot connect: {error}; is the server running? resume once it is",
            )
        finally:
            await self._transport.close()
            self._outbox.put(report)
            self._outbox.put(None)
            sender.join()

    async def _measured(self) -> WorkerReport:
        assert self._go is not None
        going = await self._first(self._go)
        if going is None:
            return WorkerReport(self._plan.index, 0.0, 0.0)
        # Nothing of the run makes cycles: what is here stays, and no pause falls into a stream.
        gc.collect()
        gc.freeze()
        gc.disable()
        begin_cpu, begin = time.process_time(), time.perf_counter()
        tasks = [asyncio.create_task(self._slot(n, going)) for n in range(self._plan.slots)]
        tasks.append(asyncio.create_task(self._sample_lag()))
        await self._stopped.wait()
        cpu_s, wall_s = time.process_time() - begin_cpu, time.perf_counter() - begin
        for task in [*tasks, *self._scheduled]:
            task.cancel()
        await asyncio.gather(*tasks, *self._scheduled, return_exceptions=True)
        return WorkerReport(self._plan.index, cpu_s, wall_s, self._lag_ns, self._transport.read_lag_ns)

    async def _first(self, go: asyncio.Future[int]) -> int | None:
        """Return the start of the run, or None if the end comes before it."""
        stopped = asyncio.create_task(self._stopped.wait())
        stopped.add_done_callback(lambda _: go.cancel())
        with suppress(asyncio.CancelledError):
            await asyncio.shield(go)
        stopped.cancel()
        return None if go.cancelled() else go.result()

    def _receive_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Receive in a thread: a loop that watched the pipe would make it non-blocking, for the sender too."""
        with suppress(RuntimeError):  # the loop is closed: the run is over
            try:
                while True:
                    loop.call_soon_threadsafe(self._take, self._connection.recv())
            except (EOFError, OSError):
                # The coordinator is gone: nobody would read what else comes.
                loop.call_soon_threadsafe(self._stopped.set)

    def _take(self, message: object) -> None:
        if isinstance(message, Start):
            if message.intended_ns is None:
                self._waiting.put_nowait(message)
            else:
                task = asyncio.create_task(self._at(message, message.intended_ns))
                self._scheduled.add(task)
                task.add_done_callback(self._scheduled.discard)
        elif isinstance(message, NextTurn):
            future = self._next.pop(message.key, None)
            if future is not None and not future.done():
                future.set_result(message.body)
        elif isinstance(message, Go) and self._go is not None:
            self._go.set_result(message.start_ns)
        elif isinstance(message, Stop):
            self._stopped.set()

    async def _slot(self, number: int, start_ns: int) -> None:
        """Hold one conversation after another; the slots of all workers start evenly over the stagger."""
        place = (self._plan.first_slot + number) / max(self._plan.all_slots, 1)
        await _sleep_until(start_ns + int(place * self._plan.stagger_s * 1e9))
        while True:
            start = await self._waiting.get()
            await self._converse(start, time.perf_counter_ns())

    async def _at(self, start: Start, intended_ns: int) -> None:
        await _sleep_until(intended_ns)
        await self._converse(start, intended_ns)

    async def _converse(self, start: Start, intended_ns: int) -> None:
        body: bytes | None = self._bodies[start.body]
        while body is not None:
            dispatch_ns = time.perf_counter_ns()
            reading = await self._transport.send(body)
            following = asyncio.get_running_loop().create_future()
            self._next[start.key] = following
            self._outbox.put(Finished(self._plan.index, start.key, intended_ns, dispatch_ns, reading))
            body = await following
            intended_ns = time.perf_counter_ns()

    async def _sample_lag(self) -> None:
        while True:
            due = time.perf_counter_ns() + int(LAG_SAMPLE_S * 1e9)
            await asyncio.sleep(LAG_SAMPLE_S)
            self._lag_ns.append(max(time.perf_counter_ns() - due, 0))

    def _send_all(self) -> None:
        """Send from a thread of its own, so that a full pipe never holds the loop."""
        with suppress(BrokenPipeError, ConnectionResetError):
            while (message := self._outbox.get()) is not None:
                self._connection.send(message)


async def _sleep_until(at_ns: int) -> None:
    # A timer may fire within its resolution before it is due.
    while (left_s := (at_ns - time.perf_counter_ns()) * 1e-9) > 0:
        await asyncio.sleep(left_s)
