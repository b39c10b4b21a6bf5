import numpy as np
import pytest

from bench.schedule import constant_offsets, gamma_offsets, poisson_offsets, trace_offsets


def test_constant_offsets_are_equally_far_apart():
    assert constant_offsets(4, 2.0).tolist() == [0.0, 0.5, 1.0, 1.5]


def test_poisson_gaps_have_their_mean_and_spread():
    gaps = np.diff(poisson_offsets(20_001, 50.0, 1))
    assert gaps.mean() == pytest.approx(0.02, rel=0.03)
    assert gaps.std() == pytest.approx(0.02, rel=0.05)


def test_a_small_shape_bursts_at_the_same_rate():
    gaps = np.diff(gamma_offsets(20_001, 50.0, 0.25, 1))
    assert gaps.mean() == pytest.approx(0.02, rel=0.06)
    assert gaps.std() == pytest.approx(0.04, rel=0.08)


def test_a_schedule_is_a_function_of_its_seed():
    assert poisson_offsets(9, 1.0, 4).tolist() == poisson_offsets(9, 1.0, 4).tolist()
    assert poisson_offsets(9, 1.0, 4).tolist() != poisson_offsets(9, 1.0, 5).tolist()


def test_a_trace_starts_at_its_first_arrival_and_must_ascend():
    assert trace_offsets(np.array([5.0, 5.5, 9.0]), 2).tolist() == [0.0, 0.5]
    with pytest.raises(ValueError, match="at least 4"):
        trace_offsets(np.array([5.0, 5.5, 9.0]), 4)
    with pytest.raises(ValueError, match="ascend"):
        trace_offsets(np.array([5.0, 4.0]), 2)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_must_be_positive(rate):
    with pytest.raises(ValueError, match="rate_per_s"):
        constant_offsets(3, rate)
