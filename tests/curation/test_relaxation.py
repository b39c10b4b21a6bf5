"""A bound is below every set, and as near to the best as is claimed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.kernels.certificate import select_certified
from curation.kernels.relaxation import exact_gram, relaxation_bound, solve
from curation.kernels.selection import select_diverse, squared_norm_of_sum
from curation.kernels.shift import strengthen
from curation.kernels.tabu import tabu_search


def unit_rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + rng.standard_normal(d)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def optimum(x: np.ndarray, k: int) -> float:
    wide = x.astype(np.float64)
    return min(float(np.square(wide[list(rows)].sum(axis=0)).sum()) for rows in combinations(range(len(x)), k))


@given(st.integers(0, 100_000), st.integers(3, 11), st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_no_set_is_below_the_bounds(seed: int, n: int, d: int):
    x = unit_rows(n, d, seed)
    if seed % 3 == 0:
        x[n // 2] = x[0]  # copies
    k = 1 + seed % (n - 1)
    best = optimum(x, k)
    chosen = select_diverse(x, k)
    relaxation = relaxation_bound(x, k, chosen.indices)
    assert relaxation.bound <= best
    stronger = strengthen(x, k, relaxation, chosen.objective, core_rows=n)
    assert relaxation.bound <= stronger <= best + 1e-9
    few = strengthen(x, k, relaxation, chosen.objective, core_rows=k + 1, rounds=1)
    assert relaxation.bound <= few <= best + 1e-9
    # With a bad set known no row is left out, and the bound is held down by nothing but its proof.
    assert relaxation.bound <= strengthen(x, k, relaxation, chosen.objective + 5.0, core_rows=n) <= best + 1e-9


@given(st.integers(0, 100_000), st.integers(1, 3), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_the_bound_holds_wherever_the_search_stops(seed: int, max_rounds: int, max_steps: int):
    x = unit_rows(10, 4, seed)
    start = np.sort(np.random.default_rng(seed).choice(10, 4, replace=False))
    result = relaxation_bound(x, 4, start, max_rounds=max_rounds, max_steps=max_steps)
    assert result.bound <= optimum(x, 4)
    assert result.bound <= result.value
    assert result.weights.sum() == pytest.approx(4)
    assert ((result.weights >= 0) & (result.weights <= 1)).all()


@given(st.integers(0, 100_000))
@settings(max_examples=15, deadline=None)
def test_a_row_is_left_out_only_if_no_better_set_holds_it(seed: int):
    x = unit_rows(9, 4, seed)
    chosen = select_diverse(x, 3, starts=9)
    result = relaxation_bound(x, 3, chosen.indices)
    wide = x.astype(np.float64)
    for row, slack in enumerate(result.slack(3)):
        least = min(
            float(np.square(wide[list(rows)].sum(axis=0)).sum()) for rows in combinations(range(9), 3) if row in rows
        )
        assert result.bound + slack <= least + 1e-9


def test_the_relaxation_of_an_orthonormal_basis_spreads_the_weight():
    # Ten orthonormal rows, k = 5: every w_i = 1/2 gives 10/4, while five of them have the norm 5.
    x = np.eye(10)
    result = relaxation_bound(x, 5, np.arange(5), tolerance=1e-9)
    assert result.value == pytest.approx(2.5, abs=1e-6)
    assert result.bound == pytest.approx(2.5, abs=1e-6)


def test_knowing_that_weights_are_whole_closes_the_gap_of_a_basis():
    x = np.eye(10)
    relaxation = relaxation_bound(x, 5, np.arange(5))
    assert strengthen(x, 5, relaxation, 5.0) == pytest.approx(5.0, abs=2e-2)


def test_a_shift_changes_the_value_of_no_set():
    x = unit_rows(12, 12)
    rng = np.random.default_rng(0)
    shift = rng.uniform(0, 1, 12)
    chosen = select_diverse(x, 4, starts=12)
    result = solve(x, 4, chosen.indices, np.ones(4), shift=shift, max_rounds=1)
    assert result.value == pytest.approx(chosen.objective)
    assert solve(x, 4, chosen.indices, np.ones(4), shift=shift).bound <= optimum(x, 4)


def test_the_stronger_bound_is_stronger_on_a_pool_of_topics():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((120, 64)) + rng.standard_normal((8, 64))[rng.integers(0, 8, 120)]
    x += 1.5 * rng.standard_normal(64)
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    plain = select_certified(x, 20, starts=4, tabu_steps=200)
    strong = select_certified(x, 20, starts=4, tabu_steps=200, core_rows=60)
    assert strong.selection.indices.tolist() == plain.selection.indices.tolist()
    assert strong.gap < 0.8 * plain.gap
    assert 0 <= strong.gap <= plain.gap < 0.1


@pytest.mark.parametrize("k", [1, 7, 8, 20])
@pytest.mark.parametrize(
    "points",
    [
        np.repeat(np.eye(6)[:1], 60, axis=0),
        np.repeat(np.eye(6), 10, axis=0),
        np.repeat([[1.0], [-1.0]], 30, axis=0),
        np.stack([np.cos(np.arange(60.0)), np.sin(np.arange(60.0))], axis=1),
    ],
    ids=["one point", "six points", "two ends", "a circle"],
)
def test_copies_and_few_dimensions_break_nothing(points: np.ndarray, k: int):
    result = select_certified(points, k, starts=2, tabu_steps=30, core_rows=40)
    assert len(set(result.selection.indices.tolist())) == k
    assert 0 <= result.bound <= result.selection.objective + 1e-9
    assert 0 <= result.gap <= 1


def test_a_set_of_all_rows_is_proven_best():
    x = unit_rows(6, 3)
    result = select_certified(x, 6, core_rows=5)
    assert result.gap == 0
    assert result.bound == result.selection.objective


def test_a_set_whose_sum_is_zero_has_no_gap():
    x = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1], [0.6, 0.8]])
    result = select_certified(x, 4, tabu_steps=5, core_rows=5)
    assert result.selection.indices.tolist() == [0, 1, 2, 3]
    assert result.gap == 0
    assert result.bound <= 0


@given(st.integers(0, 100_000))
@settings(max_examples=20, deadline=None)
def test_the_exact_matrix_does_not_depend_on_the_order_of_summation(seed: int):
    x = unit_rows(6, 200, seed)
    gram = exact_gram(x)
    order = np.random.default_rng(seed).permutation(200)
    assert (exact_gram(x[:, order]) == gram).all()
    np.testing.assert_allclose(gram, x.astype(np.float64) @ x.astype(np.float64).T, atol=200**0.5 * 2.0**-22)


def test_the_search_beyond_swaps_is_never_worse_and_sometimes_better():
    better = 0
    for seed in range(12):
        x = unit_rows(150, 8, seed)
        plain = select_diverse(x, 12)
        found = tabu_search(exact_gram(x), plain.indices, num_steps=300, seed=seed)
        objective = squared_norm_of_sum(x[found])
        assert len(set(found.tolist())) == 12
        assert objective <= plain.objective + 1e-5
        better += objective < plain.objective - 1e-4
    assert better >= 3


def test_the_search_finds_the_optimum_of_a_small_pool():
    for seed in range(10):
        x = unit_rows(12, 5, seed)
        found = tabu_search(exact_gram(x), np.arange(5), num_steps=200)
        assert squared_norm_of_sum(x[found]) == pytest.approx(optimum(x, 5), abs=1e-5)


def test_the_search_has_nothing_to_do_with_all_rows_or_no_steps():
    gram = exact_gram(unit_rows(5, 3))
    assert tabu_search(gram, np.arange(5), num_steps=9).tolist() == [0, 1, 2, 3, 4]
    assert tabu_search(gram, np.array([4, 2]), num_steps=0).tolist() == [2, 4]


def test_a_start_of_another_size_is_refused():
    x = unit_rows(6, 3)
    with pytest.raises(ValueError, match="start must name 3 different rows, got 2"):
        relaxation_bound(x, 3, np.array([0, 1, 1]))
    with pytest.raises(ValueError, match=r"k must be in \[1, 6\], got 7"):
        relaxation_bound(x, 7, np.arange(6))
