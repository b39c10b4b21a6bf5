"""Coverage of the runner's intervals over simulated runs whose truth is known.

    python tests/perf/coverage.py --seed 0 --runs 1000

A run is 11 categories of 80 conversations. Each conversation has acceptance rates of its own and 8 to 60 verify steps.
Prints one JSON object: the share of intervals that held the truth, and their mean width over that of the known one.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from bench.statistics import headline_interval, mean_interval

CATEGORIES, CONVERSATIONS, K = 11, 80, 3
TRUTH_CONVERSATIONS = 400_000
NORMAL_975 = 1.959964


def conversations(rng: np.random.Generator, n: int, category: int) -> np.ndarray:
    """Acceptance length of n conversations of one category."""
    base = np.linspace(0.45, 0.9, CATEGORIES)[category]
    logits = np.log(base / (1 - base)) + rng.normal(0.0, 0.7, (n, 1)) - 0.25 * np.arange(K)
    rates = 1 / (1 + np.exp(-logits))
    survival = np.concatenate([np.ones((n, 1)), np.cumprod(rates, axis=1), np.zeros((n, 1))], axis=1)
    steps = rng.integers(8, 61, n)
    histogram = rng.multinomial(steps, survival[:, :-1] - survival[:, 1:])
    return histogram @ np.arange(1, K + 2) / steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    begin = time.perf_counter()
    many = [conversations(np.random.default_rng([99, c]), TRUTH_CONVERSATIONS, c) for c in range(CATEGORIES)]
    truth = np.array([values.mean() for values in many])
    known = np.array([2 * NORMAL_975 * values.std() / CONVERSATIONS**0.5 for values in many])
    rng = np.random.default_rng([7, options.seed])
    held, widths, whole_held, whole_widths = [], [], [], []
    for run in range(options.runs):
        groups = {f"c{c:02d}": conversations(rng, CONVERSATIONS, c) for c in range(CATEGORIES)}
        for c, values in enumerate(groups.values()):
            interval = mean_interval(values, seed=run)
            held.append(interval.low <= truth[c] <= interval.high)
            widths.append((interval.high - interval.low) / known[c])
        whole = headline_interval(groups, seed=run)
        whole_held.append(whole.low <= truth.mean() <= whole.high)
        whole_widths.append((whole.high - whole.low) / (np.sqrt((known**2).sum()) / CATEGORIES))
    result = {
        "seed": options.seed,
        "runs": options.runs,
        "category_coverage": float(np.mean(held)),
        "category_width_ratio": float(np.mean(widths)),
        "headline_coverage": float(np.mean(whole_held)),
        "headline_width_ratio": float(np.mean(whole_widths)),
        "seconds": time.perf_counter() - begin,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
