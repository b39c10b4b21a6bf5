"""How fast and how good the selection is on clustered vectors; prints one JSON object.

20,000 x 3,072, k = 80: 200 unit centres, Gaussian noise of expected norm 1.0 around each, a common mean that gives two
random rows a cosine of 0.20, rows normalised, seed 0.

- passes_ratio: time of the greedy choice and all swaps over the time of k matrix-vector products, which the greedy
  choice cannot do without; products_ratio: the same as a count.
- speedup_vs_literal: greedy and swaps as the paper writes them, over ours, on a size that the former can finish.
- memory_ratio: peak of what the selection holds, vectors included, over the vectors.
- certificate_s: until the gap of the selected set is proven to be at most 0.016.
- gap_30s: what the search beyond swaps and the stronger bound make of it within 30 s; deep_gap is the same without a
  limit, and deep_s says how long it took: on a busy machine the stronger bound may come too late for gap_30s.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from curation.kernels.relaxation import exact_gram, relaxation_bound
from curation.kernels.selection import TIE, improve, select_diverse
from curation.kernels.shift import strengthen
from curation.kernels.tabu import tabu_search

Floats = NDArray[np.float32]

K = 80


def clustered(n: int, d: int, *, centres: int = 200, cosine: float = 0.20, seed: int = 0) -> Floats:
    """Return n unit rows around `centres` centres with a common mean."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((centres, d), dtype=np.float32)
    centre /= np.linalg.norm(centre, axis=1, keepdims=True)
    x = rng.standard_normal((n, d), dtype=np.float32) / np.float32(np.sqrt(d))
    x += centre[rng.integers(0, centres, n)]
    mean = rng.standard_normal(d)
    # Without the mean a row has squared norm 2, so two rows have the cosine a^2 / (2 + a^2) for a mean of norm a.
    x += (mean * np.sqrt(2 * cosine / (1 - cosine)) / np.linalg.norm(mean)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def select_literally(x: Floats, k: int, start: int) -> float:
    """Return the objective of greedy choice and best swaps, each candidate pair judged by its sum over the set."""
    gram = (x @ x.T).astype(np.float64)
    chosen = [start]
    while len(chosen) < k:
        outside = [j for j in range(len(x)) if j not in chosen]
        chosen.append(min(outside, key=lambda j: float(sum(gram[i, j] for i in chosen))))
    while True:
        best, pair = -TIE, None
        outside = [j for j in range(len(x)) if j not in chosen]
        for slot, out in enumerate(chosen):
            others = [i for i in chosen if i != out]
            held = float(gram[out, others].sum())
            for j in outside:
                change = 2 * (float(gram[j, others].sum()) - held)
                if change < best:
                    best, pair = change, (slot, j)
        if pair is None:
            return float(gram[np.ix_(chosen, chosen)].sum())
        chosen[pair[0]] = pair[1]


def best_time(action: Callable[[], object], repeats: int = 3) -> float:
    """Return the least wall time of some calls: the machine may be doing other things too."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def gap_of(objective: float, bound: float) -> float:
    """Return by what share of the objective a better set could be below it at most."""
    return (objective - bound) / objective


def main() -> None:
    """Measure and print."""
    x = clustered(20_000, 3_072)
    pairs = np.random.default_rng(1).integers(0, len(x), (2, 5_000))
    random_cosine = float(np.einsum("ij,ij->i", x[pairs[0]], x[pairs[1]]).mean())

    passes_s = best_time(lambda: [x @ x[i] for i in range(K)])
    select_s = best_time(lambda: select_diverse(x, K))
    tracemalloc.start()
    selection = select_diverse(x, K)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    small = clustered(500, 256)
    start_row = int(np.random.default_rng(0).permutation(len(small))[0])
    began = time.perf_counter()
    literal = select_literally(small, 20, start_row)
    literal_s = time.perf_counter() - began
    ours = select_diverse(small, 20)
    small_s = best_time(lambda: select_diverse(small, 20), 10)

    began = time.perf_counter()
    relaxation = relaxation_bound(x, K, selection.indices)
    certificate_s = time.perf_counter() - began
    certificate_gap = gap_of(selection.objective, relaxation.bound)

    began = time.perf_counter()
    rows = np.union1d(np.argsort(relaxation.slack(K), kind="stable")[: 4 * K], selection.indices)
    walked = rows[tabu_search(exact_gram(x[rows]), np.searchsorted(rows, selection.indices), num_steps=4_000)]
    deep = improve(x, walked)
    searched_s = time.perf_counter() - began
    bound = strengthen(x, K, relaxation, deep.objective, core_rows=400, rounds=1)
    deep_s = time.perf_counter() - began
    found = deep.objective if searched_s <= 30 else selection.objective
    proven = bound if deep_s <= 30 else relaxation.bound

    figures = {
        "passes_ratio": round(select_s / passes_s, 3),
        "products_ratio": round(selection.num_products / K, 3),
        "speedup_vs_literal": round(literal_s / small_s, 1),
        "literal_objective_equal": abs(literal - ours.objective) < 1e-3,
        "memory_ratio": round((x.nbytes + peak) / x.nbytes, 3),
        "certificate_s": round(certificate_s, 3) if certificate_gap <= 0.016 else None,
        "gap": round(certificate_gap, 5),
        "gap_30s": round(gap_of(found, proven), 5),
        "deep_gap": round(gap_of(deep.objective, bound), 5),
        "deep_s": round(deep_s, 2),
        "objective": round(deep.objective, 4),
        "bound": round(bound, 4),
        "greedy_objective": round(selection.greedy_objective, 4),
        "num_swaps": selection.num_swaps,
        "random_cosine": round(random_cosine, 4),
        "select_s": round(select_s, 3),
        "x_shape": list(x.shape),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
