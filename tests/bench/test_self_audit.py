import json
from array import array

import pytest

from bench.answer import Answer, Chunk, Usage
from bench.measured import Measured
from bench.self_audit import audit_client
from bench.trace import Reads, Trace
from bench.worker_report import WorkerReport

MS = 1_000_000


def requests(n=100, *, dispatch_ms=1.0, step_ms=20, merged=0, ttft_ms=100, usage=3):
    found = []
    for i in range(n):
        trace = Trace(str(i), 0, 1, {}, "", None, 0, 0, int(dispatch_ms * MS), 0, Reads())
        start = int((dispatch_ms + ttft_ms) * MS)
        chunks = tuple(Chunk(start + k * step_ms * MS, 1, read=k) for k in range(3))
        answer = Answer(chunks, token_ids=(1, 2, 3), chunk_ids=True, usage=Usage(4, usage), finish_reason="stop")
        found.append(Measured(trace, answer, merged=merged if i == 0 else 0))
    return found


def report(lag_ms=0.5, read_lag_ms=()):
    lags = (array("q", [int(ms * MS) for ms in row]) for row in ([lag_ms] * 50, read_lag_ms))
    return WorkerReport(0, 0.3, 1.0, *lags)


def test_a_quiet_client_is_valid_and_states_its_lags():
    audit = audit_client(requests(), [report()])
    assert audit.valid
    assert audit.dispatch_lag_p99_s == pytest.approx(0.001)
    assert audit.loop_lag_p99_s == pytest.approx(0.0005)
    assert audit.worker_cpu_share == (0.3,)
    assert audit.cpu_us_per_chunk == pytest.approx(0.3e6 / 300)
    assert (audit.counted, audit.miscounted, audit.merged_share) == (100, 0, 0.0)
    assert json.loads(json.dumps(audit.to_json()))["valid"] is True


@pytest.mark.parametrize(
    ("change", "lag_ms", "says"),
    [
        ({"dispatch_ms": 6.0}, 0.5, "dispatch lag p99"),
        ({"merged": 4}, 0.5, "merged share"),
        ({}, 4.5, "loop lag p99"),
        ({"usage": 4}, 0.5, "miscounted"),
    ],
)
def test_each_threshold_makes_a_result_invalid_with_its_reason(change, lag_ms, says):
    audit = audit_client(requests(**change), [report(lag_ms)])
    assert not audit.valid
    assert len(audit.reasons) == 1
    assert says in audit.reasons[0]


def test_thresholds_grow_with_what_they_disturb():
    # 6 ms of dispatch are 1.5 % of a TTFT of 400 ms; 9 ms of loop lag are less than a fifth of a step of 50 ms.
    assert audit_client(requests(dispatch_ms=6.0, ttft_ms=400, step_ms=50), [report(9.0)]).valid


def test_a_late_loop_does_no_harm_to_stamps_that_are_the_kernels():
    audit = audit_client(requests(), [report(4.5, [3.0] * 50)])
    assert audit.valid
    assert (audit.loop_lag_p99_s, audit.read_lag_p99_s) == pytest.approx((0.0045, 0.003))
    # But what comes of it does: two chunks in one read have one stamp.
    assert not audit_client(requests(merged=4), [report(4.5, [3.0] * 50)]).valid


def test_what_was_not_observed_is_none_not_fine_by_zero():
    audit = audit_client([], [])
    assert audit.dispatch_lag_p99_s is audit.loop_lag_p99_s is audit.merged_share is audit.cpu_us_per_chunk is None
    assert audit.read_lag_p50_s is audit.read_lag_p99_s is None


def test_a_report_survives_its_json():
    told = report(0.5, [1.0, 2.0])
    assert WorkerReport.from_json(json.loads(json.dumps(told.to_json()))) == told
