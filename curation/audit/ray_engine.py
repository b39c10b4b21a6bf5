"""Units as tasks of a Ray cluster (extra `[ray]`): the index goes out once, results are written where they are made."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from curation.audit.errors import AuditError
from curation.audit.plan import Unit
from curation.audit.row_counts import RowCounts
from curation.audit.run import Job, UnitRunner, report, scanner_of
from curation.kernels.audit_index import OverlapIndex

logger = logging.getLogger(__name__)

MAX_RETRIES = 5
"""Times that a unit is run again after its worker died."""

_runners: dict[str, UnitRunner] = {}


def run_on_ray(job: Job, units: Sequence[Unit], index: OverlapIndex, address: str | None) -> None:
    """Run units as Ray tasks.

    Parameters
    ----------
    job
        What to run; its `out` and the corpus must be reachable from every node under the same path.
    units
        The units.
    index
        Sent to the cluster's object store once; workers map it.
    address
        Of the cluster; None for the one in `RAY_ADDRESS`, or else a fresh local one.

    Raises
    ------
    AuditError
        If Ray is not installed or the cluster cannot be reached.
    """
    ray = _ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    started = not ray.is_initialized()
    if started:
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=None if address else False)
        except ConnectionError as error:
            raise AuditError(f"--address {address}: no Ray cluster answers ({str(error).splitlines()[0]})") from None
    try:
        task = ray.remote(max_retries=MAX_RETRIES)(run_unit)
        job_ref, index_ref = ray.put(job), ray.put(index)
        pending = {task.remote(job_ref, index_ref, unit): unit for unit in units}
        while pending:
            done, _ = ray.wait(list(pending))
            for ref in done:
                report(job.plan, pending.pop(ref), ray.get(ref))
    finally:
        if started:
            ray.shutdown()


def run_unit(job: Job, index: OverlapIndex, unit: Unit) -> RowCounts:
    """Run one unit in a worker; only its counts travel back."""
    runner = _runners.get(job.out)
    if runner is None:
        runner = _runners[job.out] = UnitRunner(job, scanner_of(job, index))
    return runner(unit)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise AuditError("--on ray: Ray is not installed; install the extra [ray]") from None
    return ray
