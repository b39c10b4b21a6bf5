"""The worker processes as one: started together, fed evenly, stopped for certain."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from bench.client.messages import Finished, Go, NextTurn, Ready, Start, Stop, WorkerPlan
from bench.client.worker import run_worker
from bench.errors import BenchError
from bench.worker_report import WorkerReport

READY_S = 60.0
STOP_S = 10.0


class WorkerPool:
    """Spawned workers and the pipes to them. Use as a context: on leaving, none is left running."""

    def __init__(self, plans: Sequence[WorkerPlan]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        self._owner: dict[int, int] = {}
        self._load = [0] * len(plans)
        self._slots = [max(plan.slots, 1) for plan in plans]
        self._stopped = False
        self.reports: dict[int, WorkerReport] = {}
        for plan in plans:
            ours, theirs = context.Pipe()
            process = context.Process(target=run_worker, args=(plan, theirs), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def go(self) -> int:
        """Wait for every worker, start the run, and return its clock, ns."""
        ready, until = set[int](), time.perf_counter() + READY_S
        while len(ready) < len(self._pipes):
            for message in self._received(max(until - time.perf_counter(), 0.0)):
                if isinstance(message, Ready):
                    ready.add(message.worker)
            if self.reports or time.perf_counter() > until:
                faults = [report.error for report in self.reports.values() if report.error]
                raise BenchError(faults[0] if faults else f"workers were not ready within {READY_S:g} s")
        start_ns = time.perf_counter_ns()
        for pipe in self._pipes:
            pipe.send(Go(start_ns))
        return start_ns

    def start(self, key: int, body: int, intended_ns: int | None = None) -> None:
        """Give a conversation to the worker with the most room."""
        index = min(range(len(self._pipes)), key=lambda i: (self._load[i] / self._slots[i], i))
        self._owner[key] = index
        self._load[index] += 1
        self._pipes[index].send(Start(key, body, intended_ns))

    def next_turn(self, key: int, body: bytes) -> None:
        """Go on with a conversation."""
        self._pipes[self._owner[key]].send(NextTurn(key, body))

    def end(self, key: int) -> None:
        """Give the conversation's slot free."""
        index = self._owner.pop(key)
        self._load[index] -= 1
        self._pipes[index].send(NextTurn(key, None))

    def finished(self, timeout_s: float) -> Iterator[Finished]:
        """Yield the requests that ended within the timeout.

        Raises
        ------
        BenchError
            If a worker died.
        """
        for message in self._received(timeout_s):
            if isinstance(message, Finished):
                yield message
        for process in self._processes:
            if process.exitcode:
                raise BenchError(f"a client worker died with exit status {process.exitcode}; resume the run")

    def _received(self, timeout_s: float) -> Iterator[object]:
        for pipe in wait(self._pipes, timeout_s):
            assert isinstance(pipe, Connection)
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                self._pipes_lost(pipe)
                continue
            if isinstance(message, WorkerReport):
                self.reports[message.worker] = message
            yield message

    def _pipes_lost(self, pipe: Connection) -> None:
        index = self._pipes.index(pipe)
        if index not in self.reports:
            self._processes[index].join(STOP_S)
            raise BenchError(f"client worker {index} died with {self._processes[index].exitcode}; resume the run")

    def stop(self) -> list[WorkerReport]:
        """Stop every worker and return how each fared; one that does not answer is ended by force."""
        if not self._stopped:
            self._stopped = True
            self._stop()
        return [self.reports[i] for i in sorted(self.reports)]

    def _stop(self) -> None:
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.send(Stop())
        until = time.perf_counter() + STOP_S
        open_pipes = [p for i, p in enumerate(self._pipes) if i not in self.reports]
        while open_pipes and time.perf_counter() < until:
            for ended in wait(open_pipes, max(until - time.perf_counter(), 0.0)):
                assert isinstance(ended, Connection)
                message: object = None
                with suppress(EOFError, OSError):
                    message = ended.recv()
                if message is None or isinstance(message, WorkerReport):
                    open_pipes.remove(ended)
                if isinstance(message, WorkerReport):
                    self.reports[message.worker] = message
        for process in self._processes:
            process.join(max(until - time.perf_counter(), 0.1))
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self._pipes:
            pipe.close()


def spread(plan: WorkerPlan, workers: int, concurrency: int) -> list[WorkerPlan]:
    """Return a plan for each worker, the slots shared out evenly; 0 slots leaves them to a schedule.

    Parameters
    ----------
    plan
        The common part; its `connections` are shared out too.
    """
    workers = max(1, min(workers, concurrency or workers))
    plans, first = list[WorkerPlan](), 0
    for index in range(workers):
        slots = concurrency // workers + (index < concurrency % workers)
        connections = plan.connections // workers + (index < plan.connections % workers)
        part = replace(plan, index=index, slots=slots, first_slot=first, all_slots=concurrency, connections=connections)
        plans.append(part)
        first += slots
    return plans
