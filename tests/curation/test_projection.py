"""The plane on which candidates are drawn, and the nearest of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels.projection import nearest_rows, principal_plane


def cloud(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.linspace(3.0, 0.2, d)


@pytest.mark.parametrize(("n", "d"), [(40, 6), (200, 30), (15, 60), (3, 3), (2, 5)])
def test_the_plane_is_that_of_the_singular_value_decomposition(n, d):
    x = cloud(n, d, n)
    centred = x - x.mean(axis=0)
    u, values, _ = np.linalg.svd(centred, full_matrices=False)
    points, share = principal_plane(x)
    wanted = u[:, :2] * values[:2]
    wanted *= np.sign(wanted[np.abs(wanted).argmax(axis=0), [0, 1]])
    if n == 2:  # two points have one direction; the second is nothing
        wanted[:, 1] = 0.0
    np.testing.assert_allclose(points, wanted, atol=1e-6 * values[0])
    assert share == pytest.approx(np.sum(values[:2] ** 2) / np.sum(values**2))


def test_points_of_a_plane_keep_their_distances():
    flat = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 0.0], [1.0, 1.0]])
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((7, 7)))
    points, share = principal_plane(flat @ turn[:2])
    assert share == pytest.approx(1.0)
    assert np.linalg.norm(points[0] - points[1]) == pytest.approx(5.0)


def test_the_order_of_the_rows_is_nothing_to_the_picture():
    x = cloud(60, 12, 4)
    order = np.random.default_rng(2).permutation(60)
    np.testing.assert_allclose(principal_plane(x[order])[0], principal_plane(x)[0][order], atol=1e-7)


@pytest.mark.parametrize("x", [np.ones((4, 3)), np.zeros((1, 5)), np.full((2, 2), 1e-30)])
def test_rows_that_are_all_equal_lie_in_one_point(x):
    points, share = principal_plane(x)
    assert points.shape == (len(x), 2)
    assert not points.any()
    assert share == 1.0


@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 8), st.integers(0, 99))
def test_the_nearest_are_those_of_a_full_sort(m, n, k, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (n, 4)).astype(np.float32)  # small whole numbers: products are exact, and ties are common
    queries = rng.integers(-2, 3, (m, 4)).astype(np.float32)
    places, scores = nearest_rows(queries, x, k)
    products = queries @ x.T
    for i in range(m):
        wanted = sorted(range(n), key=lambda j: (-products[i, j], j))[:k]
        assert places[i].tolist() == wanted
        assert scores[i].tolist() == [products[i, j] for j in wanted]


def test_a_row_is_not_its_own_neighbour_and_one_without_a_vector_is_nobodys():
    x = np.array([[1.0, 0.0], [np.nan, np.nan], [0.6, 0.8], [1.0, 0.0]], np.float32)
    places, scores = nearest_rows(x[[0, 2]], x, 3, own=np.array([0, 2]))
    assert places[0, :2].tolist() == [3, 2], "its equal stays, it does not"
    assert scores[0, 0] == pytest.approx(1.0)
    assert places[1, :2].tolist() == [0, 3], "ties by place"
    assert np.isneginf(scores[:, 2]).all()


def test_no_neighbour_is_not_a_question():
    with pytest.raises(ValueError, match=r"k must be at least 1, got 0"):
        nearest_rows(np.ones((1, 2)), np.ones((3, 2)), 0)
