"""Worker processes with one BLAS thread each.

Many small products on as many threads as there are cores wait for one another more than they compute, and several
processes that do so slow one another down tenfold. Whoever works in processes takes a thread for each.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait

from curation.errors import BuildError

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def one_thread_pool(workers: int, prepare: Callable[[], None] | None = None) -> Generator[ProcessPoolExecutor]:
    """Yield a pool of spawned processes that end with this one, even if it is killed.

    Parameters
    ----------
    workers
        Processes, at least 1.
    prepare
        Called once in each of them; a function of a module or a `partial` of one, as it is pickled.

    Raises
    ------
    BuildError
        If one of them is killed.
    """
    # Spawned, not forked: threads of arrow and of the tokenizer do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with _one_thread(), ProcessPoolExecutor(workers, context, _start_worker, (prepare,)) as pool:
        try:
            with _interrupts_later():
                pool.submit(_nothing)  # starts all of them
            yield pool
        except BrokenProcessPool:
            raise BuildError(
                f"one of {workers} worker processes was ended from outside, by the system where memory ran out; "
                "run it again with fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread() -> Generator[None]:
    """Set the variables for the processes that start inside: they are read when numpy is imported."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_later() -> Generator[None]:
    """Hold Ctrl-C back; processes that start inside never get it, not even while they import."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _nothing() -> None: ...


def _start_worker(prepare: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the pool
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
