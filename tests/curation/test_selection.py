"""The selection is the one that its definition gives, whatever the order, the threads or the ties."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.kernels.selection import (
    TIE,
    greedy_runs,
    improve,
    mean_pairwise_cosine,
    select_diverse,
    squared_norm_of_sum,
)


def unit_rows(n: int, d: int, seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal(d)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(dtype)


def angles(*degrees: float) -> np.ndarray:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


# Case 20: the four directions, the first of them twice, and three near it.
COMPASS = {"p1": 0, "p2": 0, "p3": 90, "p4": 180, "p5": 270, "p6": 12, "p7": 24, "p8": 33}


def choose(ids: list[str], k: int, **how: int) -> list[str]:
    """Select as a caller does: rows in the order of their ids."""
    order = sorted(ids)
    x = angles(*(COMPASS[i] for i in order))
    return [order[row] for row in select_diverse(x, k, **how).indices]


@pytest.mark.parametrize("seed", range(20))
def test_equal_choices_go_to_the_lower_id_from_every_start(seed: int):
    assert choose(list(COMPASS), 4, seed=seed) == ["p1", "p3", "p4", "p5"]
    assert choose(list(COMPASS)[::-1], 4, seed=seed) == ["p1", "p3", "p4", "p5"]


def test_the_four_directions_have_the_mean_cosine_of_minus_a_third():
    x = angles(0, 90, 180, 270)
    assert mean_pairwise_cosine(x) == pytest.approx(-1 / 3)
    assert select_diverse(angles(*COMPASS.values()), 4).objective == pytest.approx(0, abs=1e-12)


def test_the_result_is_not_the_most_similar_set():
    assert choose(list(COMPASS), 2) != ["p1", "p2"]
    x = unit_rows(60, 8)
    chosen = select_diverse(x, 10)
    others = np.random.default_rng(0).choice(60, 10, replace=False)
    assert chosen.objective < squared_norm_of_sum(x[others])


def test_all_rows_are_one_choice_without_swaps():
    result = select_diverse(angles(*COMPASS.values()), 8)
    assert result.indices.tolist() == list(range(8))
    assert (result.num_swaps, result.converged) == (0, True)


@pytest.mark.parametrize("k", range(1, 9))
def test_no_row_comes_twice(k: int):
    chosen = select_diverse(angles(*COMPASS.values()), k, starts=3).indices
    assert len(set(chosen.tolist())) == k
    assert chosen.tolist() == sorted(chosen.tolist())


def test_copies_of_one_row_are_taken_from_the_lowest_on():
    x = np.repeat(unit_rows(1, 5), 12, axis=0)
    for seed in range(5):
        assert select_diverse(x, 4, seed=seed).indices.tolist() == [0, 1, 2, 3]


def test_greedy_choice_too_takes_the_lowest_of_equal_rows():
    x = np.repeat(np.eye(4), 3, axis=0)  # rows 0-2, 3-5, 6-8 and 9-11 are copies
    for seed in range(6):
        start = int(np.random.default_rng(seed).permutation(12)[0])
        others = [row for row in (0, 3, 6, 9) if row // 3 != start // 3]
        assert select_diverse(x, 4, seed=seed, max_swaps=0).indices.tolist() == sorted([start, *others])


def test_one_row_is_the_first_since_all_are_equal():
    assert select_diverse(unit_rows(9, 4), 1, seed=3).indices.tolist() == [0]


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 5), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_no_single_swap_improves_the_result(seed: int, n: int, d: int, starts: int):
    x = unit_rows(n, d, seed)
    k = 1 + seed % n
    result = select_diverse(x, k, starts=starts, seed=seed)
    wide = x.astype(np.float64)
    chosen = set(result.indices.tolist())
    assert result.objective == pytest.approx(float(np.square(wide[result.indices].sum(axis=0)).sum()))
    for out in chosen:
        for row in set(range(n)) - chosen:
            swapped = sorted(chosen - {out} | {row})
            objective = float(np.square(wide[swapped].sum(axis=0)).sum())
            assert objective >= result.objective - 2 * TIE
            if abs(objective - result.objective) < TIE / 2:
                assert row > out, "a tie goes to the lower row"


def test_many_starts_nearly_always_find_the_best_of_all_sets_of_a_small_pool():
    found = 0
    for seed in range(30):
        x = unit_rows(9, 3, seed, np.float64)
        best = min(squared_norm_of_sum(x[list(rows)]) for rows in combinations(range(9), 4))
        objective = select_diverse(x, 4, starts=9, seed=seed).objective
        assert objective >= best - TIE
        found += objective <= best + TIE
    assert found >= 25


def literal(x: np.ndarray, k: int, start: int) -> tuple[list[int], int]:
    """Algorithm 1 as it is written: greedy from one row, then the best pair until no pair lowers the sum."""
    gram = x.astype(np.float64) @ x.astype(np.float64).T
    chosen = [start]
    while len(chosen) < k:
        outside = [j for j in range(len(x)) if j not in chosen]
        chosen.append(min(outside, key=lambda j: gram[j, chosen].sum()))
    num_swaps = 0
    while True:
        pairs = [
            (gram[j, chosen].sum() - gram[j, i] - gram[i, chosen].sum() + gram[i, i], i, j)
            for i in chosen
            for j in range(len(x))
            if j not in chosen
        ]
        change, out, row = min(pairs)
        if change >= -TIE / 2:
            return sorted(chosen), num_swaps
        chosen[chosen.index(out)] = row
        num_swaps += 1


@pytest.mark.parametrize("seed", range(6))
def test_the_fast_walk_is_the_literal_one_step_by_step(seed: int):
    x = unit_rows(120, 12, seed)
    start = int(np.random.default_rng(seed).permutation(120)[0])
    rows, num_swaps = literal(x, 15, start)
    result = select_diverse(x, 15, seed=seed)
    assert result.indices.tolist() == rows
    assert result.num_swaps == num_swaps
    assert result.num_products == 15 + num_swaps, "a product of all rows for each choice and each swap, no more"


def test_swaps_lower_the_greedy_objective_and_can_be_limited():
    x = unit_rows(300, 16)
    full, greedy = select_diverse(x, 20), select_diverse(x, 20, max_swaps=0)
    assert greedy.objective == pytest.approx(full.greedy_objective)
    assert greedy.num_swaps == 0
    assert not greedy.converged
    assert full.objective < greedy.objective
    assert full.converged


def test_improving_a_bad_set_ends_where_no_swap_helps():
    x = unit_rows(80, 6)
    result = improve(x, np.arange(10))
    assert result.converged
    again = improve(x, result.indices)
    assert again.num_swaps == 0
    assert again.indices.tolist() == result.indices.tolist()
    with pytest.raises(ValueError, match="different rows"):
        improve(x, np.array([1, 1]))
    with pytest.raises(ValueError, match="different rows"):
        improve(x, np.array([80]))


def test_more_starts_are_never_worse():
    x = unit_rows(200, 10)
    runs = greedy_runs(x, 15, starts=6, seed=1)
    assert select_diverse(x, 15, starts=6, seed=1).objective == min(run.objective for run in runs)
    assert len(greedy_runs(x[:4], 2, starts=9)) == 4, "no row is a start twice"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_of_the_input_does_not_change_the_choice(dtype: type):
    x = unit_rows(500, 24)
    assert (select_diverse(x.astype(dtype), 20).indices == select_diverse(x, 20).indices).all()


_CHILD = """
import numpy as np
from curation.kernels.certificate import select_certified
x = np.random.default_rng(0).standard_normal((3000, 96)).astype(np.float32) + np.float32(0.3)
x[500:900] = x[100:500]
x /= np.linalg.norm(x, axis=1, keepdims=True)
result = select_certified(x, 30, starts=3, tabu_steps=100, core_rows=60, rounds=1)
print(result.selection.indices.tolist(), result.selection.objective.hex(), result.bound.hex())
"""


def test_the_number_of_threads_changes_no_bit():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _CHILD],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert "[" in outputs[0]


@pytest.mark.parametrize("k", [0, -1, 9])
def test_a_count_out_of_range_is_refused(k: int):
    with pytest.raises(ValueError, match=r"k must be in \[1, 8\]"):
        select_diverse(angles(*COMPASS.values()), k)


def test_rows_that_are_not_unit_vectors_are_refused_by_place():
    x = unit_rows(5, 3)
    for value in (0.0, np.nan, 2.0, np.inf):
        bad = x.copy()
        bad[3] *= value
        with pytest.raises(ValueError, match=r"unit norm.*row 3"):
            select_diverse(bad, 2)
        with pytest.raises(ValueError, match="row 3"):
            mean_pairwise_cosine(bad)
    with pytest.raises(ValueError, match="matrix of floats"):
        select_diverse(np.eye(3, dtype=np.int64), 2)
    with pytest.raises(ValueError, match="starts must be at least 1"):
        select_diverse(x, 2, starts=0)
    with pytest.raises(ValueError, match="at least 2 rows"):
        mean_pairwise_cosine(x[:1])


@given(st.integers(0, 1_000), st.integers(2, 30))
@settings(deadline=None)
def test_the_mean_cosine_is_the_mean_over_the_pairs(seed: int, n: int):
    x = unit_rows(n, 7, seed)
    wide = x.astype(np.float64)
    pairs = [float(wide[i] @ wide[j]) for i, j in combinations(range(n), 2)]
    assert mean_pairwise_cosine(x) == pytest.approx(float(np.mean(pairs)), abs=1e-6)
