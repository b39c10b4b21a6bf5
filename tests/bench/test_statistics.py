import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.statistics import (
    headline_interval,
    mean_interval,
    paired_intervals,
    ratio_interval,
    runs_interval,
)


def test_a_t_interval_is_the_table_value():
    interval = runs_interval([10.0, 12.0, 14.0])
    # mean 12, s = 2, t(0.975, 2) = 4.302653
    assert (interval.low, interval.high) == pytest.approx((12 - 4.302653 * 2 / 3**0.5, 12 + 4.302653 * 2 / 3**0.5))
    assert runs_interval([5.0]).low is None


def test_too_few_conversations_have_no_interval():
    interval = mean_interval(np.arange(7.0))
    assert interval.value == 3.0
    assert interval.low is interval.high is None
    assert "too small" in interval.note
    groups = {"a": np.arange(20.0), "b": np.arange(3.0)}
    assert headline_interval(groups).low is None


def test_alike_conversations_have_no_width():
    interval = mean_interval(np.full(20, 2.5))
    assert (interval.low, interval.value, interval.high) == (2.5, 2.5, 2.5)


def test_conversations_without_a_step_are_no_units_of_a_ratio():
    a, b = np.array([3.0, 5.0, 4.0, 6.0, 9.0, 8.0, 7.0, 5.0]), np.array([2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 3.0, 2.0])
    without = ratio_interval(a, b)
    sparse = ratio_interval(np.concatenate([a, np.zeros(200)]), np.concatenate([b, np.zeros(200)]))
    assert sparse == without
    assert sparse.n == 8
    assert sparse.low < sparse.value < sparse.high


def test_conversations_of_one_ratio_are_alike_however_long_they_are():
    steps = np.arange(1.0, 13.0)
    interval = ratio_interval(4.0 * steps, steps)
    assert (interval.low, interval.value, interval.high) == (4.0, 4.0, 4.0)
    assert interval.note == "all conversations are alike"


def test_the_headline_weighs_categories_alike_whatever_their_size():
    groups = {"small": np.full(10, 1.0) + np.arange(10) * 0.01, "large": np.full(1000, 3.0) + np.arange(1000) * 1e-5}
    interval = headline_interval(groups)
    assert interval.value == pytest.approx((groups["small"].mean() + groups["large"].mean()) / 2)
    assert interval.low < interval.value < interval.high
    assert interval.method == "percentile bootstrap of conversations within categories"


def test_categories_are_not_resampled():
    # The spread between categories is no uncertainty: with none within them, the interval has no width.
    groups = {"a": np.full(10, 1.0), "b": np.full(10, 9.0)}
    interval = headline_interval(groups)
    assert (interval.low, interval.high) == pytest.approx((5.0, 5.0))


def test_pairs_take_the_spread_between_prompts_out():
    rng = np.random.default_rng(1)
    first = {"a": rng.uniform(10, 100, 60)}
    second = {"a": first["a"] * 2.0}
    paired = paired_intervals(first, second)
    assert paired.ratio.value == pytest.approx(2.0)
    assert paired.ratio.high - paired.ratio.low < 1e-9
    assert paired.geometric_mean_ratio.value == pytest.approx(2.0)
    assert paired.difference.high - paired.difference.low > 1.0


def test_intervals_are_wider_by_conversation_than_by_step():
    # 80 conversations of 50 alike steps each: 4,000 steps are no 4,000 observations.
    rng = np.random.default_rng(2)
    lengths = rng.uniform(1.5, 3.5, 80)
    by_conversation = ratio_interval(lengths * 50, np.full(80, 50.0))
    by_step = mean_interval(np.repeat(lengths, 50))
    width = by_conversation.high - by_conversation.low
    assert width > 5 * (by_step.high - by_step.low)


@given(st.lists(st.floats(1, 8), min_size=8, max_size=30))
@example([1.0] * 7 + [1.0000000000000002])
def test_an_interval_holds_its_statistic_or_says_why_not(values):
    interval = mean_interval(np.array(values))
    if interval.low is not None:
        assert interval.low <= interval.value + 1e-9
        assert interval.high >= interval.value - 1e-9
    else:
        assert interval.note
    assert mean_interval(np.array(values)) == interval, "the same values give the same interval"
