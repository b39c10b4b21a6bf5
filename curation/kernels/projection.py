"""A plane on which to draw a cloud of vectors, and the nearest of them: the same for the same vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

_ROUNDS = 60  # the error of a direction shrinks by the ratio of the singular values in each
_OVERSAMPLING = 8
_BLOCK = 256


def principal_plane(x: Vectors) -> tuple[NDArray[np.float64], float]:
    """Return the rows in the plane of their two principal components, and the share of variance that it shows.

    Parameters
    ----------
    x
        Vectors, shape (n, d), finite.

    Returns
    -------
    (array, float)
        Coordinates, shape (n, 2), about the mean; the largest coordinate in size of each axis is positive, so that the
        picture does not depend on the sign that a solver happens to give. The share is in [0, 1]; 1 where all rows
        are equal.

    Notes
    -----
    Subspace iteration (Halko, Martinsson, Tropp 2011, algorithm 4.4) from the first directions of a fixed generator:
    O(n d) a round, where an eigendecomposition would take O(n d min(n, d)).
    """
    centred = np.asarray(x, np.float64) - np.mean(x, axis=0, dtype=np.float64)
    total = float(np.einsum("ij,ij->", centred, centred))
    width = min(2 + _OVERSAMPLING, *centred.shape)
    if total <= 1e-18 * max(1, centred.size) or width < 1:
        return np.zeros((len(x), 2)), 1.0
    basis, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((centred.shape[1], width)))
    for _ in range(_ROUNDS):
        basis, _ = np.linalg.qr(centred.T @ (centred @ basis))
    _, values, axes = np.linalg.svd(centred @ basis, full_matrices=False)
    points = centred @ (basis @ axes[:2].T)
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    return points * np.where(largest < 0, -1.0, 1.0), float(min(1.0, np.sum(values[:2] ** 2) / total))


def nearest_rows(
    queries: Vectors, x: Vectors, k: int, own: Indices | None = None
) -> tuple[Indices, NDArray[np.float32]]:
    """Return the k rows of `x` with the largest inner product for each query, the nearest first; ties by place.

    Parameters
    ----------
    queries, x
        Unit vectors, shape (m, d) and (n, d); rows that are not finite are never near.
    k
        How many; fewer where `x` has not as many.
    own
        For each query the row of `x` that it is, which is left out; -1 for none.

    Returns
    -------
    (array, array)
        Places in `x` and inner products, shape (m, min(k, n - 1 or n)); -inf where there is no usable row.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    whole = np.where(np.isfinite(x).all(axis=1, keepdims=True), x, 0.0).astype(np.float32)
    unusable = ~np.isfinite(x).all(axis=1)
    count = min(k, len(x) - (own is not None))
    places = np.zeros((len(queries), max(count, 0)), np.int64)
    scores = np.zeros(places.shape, np.float32)
    for start in range(0, len(queries), _BLOCK):
        block = slice(start, start + _BLOCK)
        products = np.nan_to_num(queries[block]).astype(np.float32) @ whole.T
        products[:, unusable] = -np.inf
        if own is not None:
            rows = np.flatnonzero(own[block] >= 0)
            products[rows, own[block][rows]] = -np.inf
        places[block] = np.argsort(-products, axis=1, kind="stable")[:, : max(count, 0)]
        scores[block] = np.take_along_axis(products, places[block], axis=1)
    return places, scores
