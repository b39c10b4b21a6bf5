"""Run the units of an audit in several processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice

from curation.audit.errors import AuditError
from curation.audit.plan import Plan, Unit
from curation.audit.row_counts import RowCounts
from curation.audit.run import Job, UnitRunner, report
from curation.processes import one_thread_pool

_runner: Callable[[Unit], RowCounts] | None = None


def run_in_processes(job: Job, units: Sequence[Unit], workers: int) -> None:
    """Run units in as many processes, each with its own index and scanner.

    Raises
    ------
    AuditError
        If one of the processes is ended from outside.
    """
    waiting = iter(units)
    # As many units are handed out as there are workers, so that a broken pool tells which were under way.
    with one_thread_pool(workers, partial(_set_up, job)) as pool:
        running: dict[Future[RowCounts], Unit] = {}
        try:
            while True:
                running.update((pool.submit(_run_in_worker, u), u) for u in islice(waiting, workers - len(running)))
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    report(job.plan, running[future], future.result())
                    del running[future]
        except BrokenProcessPool:
            raise _killed(job.plan, running.values()) from None


def _killed(plan: Plan, running: Iterable[Unit]) -> AuditError:
    where = "; ".join(f"unit {u.number + 1} of {plan.files[u.file].path}" for u in running)
    return AuditError(
        f"a worker process was ended from outside, by the system where memory ran out, at {where}; "
        "the same command goes on with what is not done, with fewer --workers in less memory"
    )


def _set_up(job: Job) -> None:
    global _runner  # noqa: PLW0603 - a worker process has one job for its whole life
    _runner = UnitRunner(job)


def _run_in_worker(unit: Unit) -> RowCounts:
    assert _runner is not None
    return _runner(unit)
