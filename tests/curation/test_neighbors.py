"""Semantic duplicates: exact, for any length of vector, and nothing unusable is ever indexed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels import neighbors as module
from curation.kernels.neighbors import TooManyPairs, greedy_neighbors, usable_rows


def clustered(seed, n, d, *, centres=20, noise=0.25):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((centres, d))[rng.integers(centres, size=n)]
    x = x + noise * rng.standard_normal((n, d)) + 0.3
    return (x * rng.uniform(0.1, 50.0, size=(n, 1))).astype(np.float32)


def by_definition(x, threshold):
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ unit.T
    kept, dropped = [], []
    for i in range(len(x)):
        keeper = next((j for j in kept if cosines[i, j] >= threshold), None)
        if keeper is None:
            kept.append(i)
        else:
            dropped.append((i, keeper))
    return dropped, cosines


def pairs(found):
    return list(zip(found.items.tolist(), found.keepers.tolist(), strict=True))


@given(st.integers(0, 10_000), st.integers(0, 60), st.sampled_from([2, 3, 17]), st.sampled_from([0.5, 0.9, 0.95]))
def test_the_search_finds_what_the_definition_finds(seed, n, d, threshold):
    x = clustered(seed, n, d, centres=8)
    expected, cosines = by_definition(x, threshold)
    found = greedy_neighbors(x, threshold, 10**6)
    assert pairs(found) == expected
    assert np.allclose(found.scores, [cosines[pair] for pair in expected], atol=1e-12)


@pytest.mark.parametrize("threshold", [0.6, 0.9, 0.95])
@pytest.mark.parametrize("d", [24, 300])
def test_the_shortened_vectors_rule_out_no_pair_in_truth_within(monkeypatch, threshold, d):
    monkeypatch.setattr(module, "_SAMPLE", 128)
    monkeypatch.setattr(module, "_VERIFY_COST", 1.0)
    monkeypatch.setattr(module, "_BLOCK", 100)
    x = clustered(1, 800, d, noise=0.2)
    search = module._Search(x, np.arange(len(x)), threshold, 10**9)
    assert search.basis is not None
    assert len(search.basis) < d
    expected, cosines = by_definition(x, threshold)
    assert (search.bounds.astype(np.float64) @ search.bounds.T.astype(np.float64) >= cosines - module._MARGIN).all()
    assert pairs(greedy_neighbors(x, threshold, 10**9)) == expected


def test_the_result_does_not_depend_on_blocks(monkeypatch):
    x = clustered(2, 400, 16)
    whole = greedy_neighbors(x, 0.9, 10**6)
    monkeypatch.setattr(module, "_BLOCK", 7)
    cut = greedy_neighbors(x, 0.9, 10**6)
    assert pairs(whole) == pairs(cut)
    assert whole.scores.tolist() == cut.scores.tolist()


def test_vectors_of_any_length_are_compared_by_direction_and_not_changed():
    x = np.array([[2, 0, 0], [1e-20, 0, 0], [0.6, 0.8, 0], [0, 0, 3e30]], np.float32)
    before = x.copy()
    found = greedy_neighbors(x, 0.95, 100)
    assert pairs(found) == [(1, 0)]
    assert np.array_equal(x, before)


def test_a_chain_keeps_both_ends():
    angle = np.deg2rad([0.0, 15.0, 30.0])
    x = np.column_stack((np.cos(angle), np.sin(angle)))
    assert pairs(greedy_neighbors(x, 0.95, 100)) == [(1, 0)]


def test_scores_never_leave_the_range_of_a_cosine():
    x = np.repeat(np.random.default_rng(0).standard_normal((300, 7)), 2, axis=0)
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    assert (np.einsum("ij,ij->i", x, x) / norms**2 > 1.0).any() or (norms * norms < np.einsum("ij,ij->i", x, x)).any()
    found = greedy_neighbors(x, 0.999, 10**6)
    assert len(found.items) >= 300
    assert (np.abs(found.scores) <= 1.0).all()


def test_a_pair_exactly_at_the_threshold_is_within():
    x = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert pairs(greedy_neighbors(x, 0.6, 100)) == [(1, 0)]
    assert pairs(greedy_neighbors(x, np.nextafter(0.6, 1.0), 100)) == []


def test_more_pairs_than_allowed_are_refused_not_cut():
    x = np.ones((300, 4), np.float32)
    with pytest.raises(TooManyPairs, match=r"more than 100 pairs at cosine 0\.95"):
        greedy_neighbors(x, 0.95, 100)
    assert len(greedy_neighbors(x, 0.95, 300 * 299 // 2).items) == 299


def test_a_row_without_a_direction_is_not_usable():
    x = np.array([[1, 0], [0, 0], [np.nan, 1], [np.inf, 0], [1e-30, 0], [3e38, 3e38]], np.float32)
    assert usable_rows(x).tolist() == [True, False, False, False, True, True]
    assert usable_rows(np.array([[1e200, 1e200], [1e-200, 0.0]])).tolist() == [False, False], "its norm is no number"
    with pytest.raises(ValueError, match="finite and not zero"):
        greedy_neighbors(x, 0.95, 100)


def test_chosen_rows_are_compared_in_the_order_given():
    x = clustered(3, 50, 4, centres=4)
    rows = np.random.default_rng(0).permutation(50)[:30]
    assert pairs(greedy_neighbors(x, 0.9, 10**6, rows)) == by_definition(x[rows], 0.9)[0]


def test_no_rows_and_one_row():
    assert pairs(greedy_neighbors(np.empty((0, 4), np.float32), 0.95, 10)) == []
    assert pairs(greedy_neighbors(np.ones((1, 4), np.float32), 0.95, 10)) == []
