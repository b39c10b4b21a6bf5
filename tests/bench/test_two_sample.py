import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.lossless.two_sample import (
    LEAST_IN_CELL,
    chi_square,
    compare_samples,
    noncentrality_found,
    pool_rare,
    total_variation,
)

ALPHA = 0.01


def draws(p, n: int, rng: np.random.Generator):
    return rng.multinomial(n, p).astype(np.int64)


def peaked(k: int) -> np.ndarray:
    weights = 1.0 / np.arange(1, k + 1)
    return weights / weights.sum()


def spread_out(p: np.ndarray, tv: float) -> np.ndarray:
    """The difference that chi-square finds hardest at a given distance: each cell by the same share, up or down."""
    signs = np.where(np.arange(len(p)) % 2 == 0, 1.0, -1.0)
    signs -= (signs * p).sum()
    moved = p * (1 + signs * 2 * tv / np.abs(signs * p).sum())
    return moved / moved.sum()


def test_worked_by_hand():
    a, b = np.array([30, 10, 10]), np.array([20, 20, 10])
    # Expected 25, 15, 10 in each: (5^2 / 25 + 5^2 / 15) x 2.
    assert chi_square(a, b) == pytest.approx(2 * (1 + 25 / 15))
    assert chi_square(a, b) == pytest.approx(stats.chi2_contingency(np.stack([a, b]), correction=False)[0])
    assert total_variation(a, b) == pytest.approx(0.2)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=12))
def test_pooling_keeps_every_token_and_leaves_no_rare_cell(cells):
    a, b = (np.array(column, np.int64) for column in zip(*cells, strict=True))
    left, right, share = pool_rare(a, b)
    assert (left.sum(), right.sum()) == (a.sum(), b.sum())
    assert 0 <= share <= 1
    if len(left) > 1:
        assert (left + right).min() >= LEAST_IN_CELL
    swapped = pool_rare(b, a)
    assert [x.tolist() for x in swapped[:2]] == [right.tolist(), left.tolist()]


@given(
    st.lists(st.tuples(st.integers(5, 40), st.integers(5, 40)), min_size=2, max_size=8),
    st.randoms(use_true_random=False),
)
def test_neither_the_order_of_the_tokens_nor_of_the_samples_matters(cells, random):
    a, b = (np.array(column, np.int64) for column in zip(*cells, strict=True))
    order = list(range(len(a)))
    random.shuffle(order)
    assert chi_square(a[order], b[order]) == pytest.approx(chi_square(a, b))
    assert chi_square(b, a) == pytest.approx(chi_square(a, b))


def test_with_large_cells_relabelling_agrees_with_the_chi_square_distribution():
    rng = np.random.default_rng(5)
    strata = [(draws(peaked(8), 900, rng), draws(peaked(8), 700, rng)) for _ in range(3)]
    found = compare_samples(strata, alpha=ALPHA)
    assert found is not None
    assert (found.df, found.strata, found.n) == (21, 3, (2700, 2100))
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, found.df), abs=0.02)


def test_equal_distributions_give_uniform_p_values():
    rng = np.random.default_rng(11)
    found = []
    for trial in range(400):
        # Two prompts, unequal sizes, mostly rare tokens: where the chi-square distribution itself would not hold.
        strata = [(draws(peaked(k), n, rng), draws(peaked(k), m, rng)) for k, n, m in ((60, 120, 90), (15, 60, 150))]
        result = compare_samples(strata, alpha=ALPHA, seed=trial, permutations=199)
        assert result is not None
        found.append(result.p_value)
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.03)


def test_the_smallest_distance_is_found_as_often_as_promised_and_larger_ones_always():
    rng = np.random.default_rng(17)
    p = peaked(20)
    n = 2000
    promise = np.sqrt(noncentrality_found(len(p) - 1, ALPHA) / (4 * n / 2))

    def found(tv: float) -> float:
        q = spread_out(p, tv)
        assert 0.5 * np.abs(p - q).sum() == pytest.approx(tv)
        results = [
            compare_samples([(draws(p, n, rng), draws(q, n, rng))], alpha=ALPHA, seed=i, permutations=399)
            for i in range(150)
        ]
        assert all(r is not None and r.smallest_tv_found == pytest.approx(promise, rel=0.05) for r in results)
        return float(np.mean([r is not None and r.p_value <= ALPHA for r in results]))

    assert found(float(promise)) == pytest.approx(0.8, abs=0.1)
    assert found(float(promise) * 1.6) == 1.0
    assert found(0.0) <= 0.05


@pytest.mark.parametrize("tv", [0.0, 0.04, 0.15])
def test_the_bound_lies_above_the_true_distance_as_often_as_it_says(tv):
    rng = np.random.default_rng(23)
    p = peaked(12)
    q = spread_out(p, tv) if tv else p
    bounds = []
    for i in range(200):
        result = compare_samples([(draws(p, 800, rng), draws(q, 800, rng))], alpha=ALPHA, seed=i, permutations=9)
        assert result is not None
        bounds.append(result.tv_at_most)
    assert np.mean(np.array(bounds) >= tv) >= 0.93
    if tv == 0.15:
        assert np.median(bounds) < 0.25, "a bound that never comes down says nothing"


def test_a_shift_towards_one_token_is_found_and_chance_is_told_from_it():
    rng = np.random.default_rng(3)
    p = peaked(200)
    q = 0.8 * p
    q[0] += 0.2
    shifted = compare_samples([(draws(p, 1500, rng), draws(q, 1500, rng))], alpha=0.001)
    same = compare_samples([(draws(p, 1500, rng), draws(p, 1500, rng))], alpha=0.001)
    assert shifted is not None
    assert same is not None
    assert shifted.p_value <= 0.001 < same.p_value
    assert shifted.tv > 1.5 * shifted.tv_if_equal
    assert same.tv == pytest.approx(same.tv_if_equal, rel=0.3)
    assert same.smallest_tv_found < 0.2


def test_samples_that_are_alike_to_the_last_token_have_a_p_value_of_one():
    a = np.array([12, 30, 8])
    found = compare_samples([(a, a)], alpha=ALPHA)
    assert found is not None
    assert (found.statistic, found.tv, found.p_value) == (0.0, 0.0, 1.0)
    assert 0 < found.tv_at_most < found.smallest_tv_found


def test_samples_that_can_tell_nothing_give_nothing():
    one = np.array([50, 0])
    assert compare_samples([(one, one)], alpha=ALPHA) is None
    assert compare_samples([(np.array([20, 30]), np.array([0, 0]))], alpha=ALPHA) is None
    assert compare_samples([], alpha=ALPHA) is None
