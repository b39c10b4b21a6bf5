import numpy as np
import pytest

from bench.calibrate import CALIBRATION_COLUMNS, calibrate_client, lags
from bench.trace import Reads, Trace


def test_lag_is_client_clock_less_server_clock_while_every_stream_ran():
    def trace(name, stamps):
        pieces = [(at, b'data: {"x":1,"sim_at_ns":%d}\n\n' % sent) for sent, at in stamps]
        return Trace(name, 0, 1, {}, "", None, 0, 0, 0, 0, Reads.of(pieces))

    first = trace("a", [(0, 1_000_000), (10_000_000, 12_000_000), (20_000_000, 21_000_000), (90_000_000, 99_000_000)])
    second = trace("b", [(5_000_000, 6_000_000), (15_000_000, 18_000_000), (30_000_000, 31_000_000)])
    lag_ms, merged, chunks = lags([first, second])
    # Between the last first chunk (5 ms) and the first last one (30 ms).
    assert sorted(np.round(lag_ms, 6).tolist()) == [1.0, 2.0, 3.0]
    assert (merged, chunks) == (0, 3)


def test_chunks_of_one_read_are_merged():
    body = b'{"sim_at_ns":1}', b'{"sim_at_ns":20}{"sim_at_ns":21}', b'{"sim_at_ns":40}'
    trace = Trace("a", 0, 1, {}, "", None, 0, 0, 0, 0, Reads.of(list(enumerate(body))))
    assert lags([trace])[1:] == (1, 2)


@pytest.mark.parametrize("transport", ["lean", "aiohttp"])
def test_a_calibration_measures_each_number_of_streams(transport):
    (row,) = calibrate_client([6], transport, 0.4)
    assert set(row) == set(CALIBRATION_COLUMNS)
    assert row["streams"] == 6
    assert row["chunks"] > 20
    assert 0 <= row["lag_p50_ms"] <= row["lag_p99_ms"]
    assert row["cpu_us_per_chunk"] > 0
