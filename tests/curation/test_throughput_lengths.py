from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from curation.recipe import SampledConfig, ThroughputConfig
from curation.throughput.lengths import SAMPLED, config_name, draw_lengths, slots


@pytest.mark.parametrize(
    ("n", "name"),
    [(1_000, "1k"), (2_000, "2k"), (8_000, "8k"), (16_000, "16k"), (32_000, "32k"), (512, "512"), (1_500, "1500")],
)
def test_a_config_is_named_by_its_length(n: int, name: str) -> None:
    assert config_name(n) == f"throughput_{name}"


def test_every_cell_has_its_quota_and_sampled_rows_take_turns() -> None:
    sampled = SampledConfig(distribution="uniform", rows=8, min_tokens=100, max_tokens=900)
    wanted = slots(ThroughputConfig(buckets=(512, 1_000), rows_per_cell=3, sampled=sampled), ("a", "b", "c"))
    assert list(wanted) == ["throughput_512", "throughput_1k", SAMPLED]
    assert wanted["throughput_512"] == {"a": (512,) * 3, "b": (512,) * 3, "c": (512,) * 3}
    assert [len(wanted[SAMPLED][tier]) for tier in "abc"] == [3, 3, 2]
    assert Counter(n for ns in wanted[SAMPLED].values() for n in ns) == Counter(draw_lengths(sampled))


def test_uniform_lengths_fill_the_range_evenly() -> None:
    lengths = np.array(
        draw_lengths(SampledConfig(distribution="uniform", rows=1_000, min_tokens=100, max_tokens=1_100))
    )
    assert lengths.min() >= 100
    assert lengths.max() <= 1_100
    assert np.histogram(lengths, 10, (100, 1_100))[0] == pytest.approx(100, abs=2)


def test_lognormal_lengths_have_the_median_and_the_spread_of_the_recipe() -> None:
    config = SampledConfig(
        distribution="lognormal", rows=4_000, min_tokens=64, max_tokens=10**6, median_tokens=2_000, sigma=0.8
    )
    logs = np.log(draw_lengths(config))
    assert np.median(logs) == pytest.approx(np.log(2_000), abs=0.01)
    assert np.std(logs) == pytest.approx(0.8, abs=0.01)


def test_empirical_lengths_are_the_observed_in_their_shares() -> None:
    config = SampledConfig(distribution="empirical", rows=400, values=(900, 300, 300, 500))
    assert Counter(draw_lengths(config)) == {300: 200, 500: 100, 900: 100}


def test_lengths_outside_the_bounds_move_to_them() -> None:
    config = SampledConfig(distribution="empirical", rows=3, values=(10, 500, 99_999), max_tokens=1_000)
    assert sorted(draw_lengths(config)) == [256, 500, 1_000]


def test_the_seed_decides_the_draw() -> None:
    one = SampledConfig(distribution="uniform", rows=50, seed=1)
    assert draw_lengths(one) == draw_lengths(one)
    assert draw_lengths(one) != draw_lengths(SampledConfig(distribution="uniform", rows=50, seed=2))
    assert list(draw_lengths(one)) != sorted(draw_lengths(one))


@pytest.mark.parametrize(
    "values",
    [
        {"distribution": "empirical", "rows": 5},
        {"distribution": "uniform", "rows": 5, "min_tokens": 500, "max_tokens": 400},
        {"distribution": "zipf", "rows": 5},
        {"distribution": "uniform", "rows": 0},
    ],
)
def test_a_distribution_that_cannot_be_drawn_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SampledConfig(**values)


@pytest.mark.parametrize("buckets", [(1_000, 1_000), (63,), (10_000_001,)])
def test_buckets_that_make_no_sense_are_refused(buckets: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="bucket"):
        ThroughputConfig(buckets=buckets)


def test_a_recipe_of_no_lengths_at_all_is_refused_as_it_is_read() -> None:
    with pytest.raises(ValidationError, match=r"no lengths: give buckets, or a table \[throughput.sampled\]"):
        ThroughputConfig(buckets=())
