"""The lengths of a recipe's throughput configs: buckets, and lengths drawn from a distribution."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from curation.recipe import SampledConfig, ThroughputConfig

SAMPLED = "throughput_sampled"


def config_name(num_tokens: int) -> str:
    """Return the config of a bucket: `throughput_8k` for 8,000 tokens, `throughput_512` for 512."""
    return f"throughput_{num_tokens // 1000}k" if num_tokens % 1000 == 0 else f"throughput_{num_tokens}"


def slots(config: ThroughputConfig, tiers: tuple[str, ...]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return config -> tier -> the length of each row that is wanted, in the order in which configs are built."""
    wanted = {config_name(n): dict.fromkeys(tiers, (n,) * config.rows_per_cell) for n in config.buckets}
    if config.sampled is not None:
        lengths = draw_lengths(config.sampled)
        wanted[SAMPLED] = {tier: lengths[i :: len(tiers)] for i, tier in enumerate(tiers)}
    return wanted


def draw_lengths(config: SampledConfig) -> tuple[int, ...]:
    """Return the lengths of `rows` rows, in tokens, in a drawn order.

    One value is drawn from each of `rows` equal parts of the distribution (stratified sampling), so that a small set
    has its shape too; values outside [min_tokens, max_tokens] are moved to the nearer bound.
    """
    rng = np.random.default_rng(config.seed)
    at = (np.arange(config.rows) + rng.random(config.rows)) / config.rows
    values = [_quantile(config, float(u)) for u in at]
    clipped = [min(max(round(value), config.min_tokens), config.max_tokens) for value in values]
    return tuple(clipped[i] for i in rng.permutation(config.rows))


def _quantile(config: SampledConfig, u: float) -> float:
    match config.distribution:
        case "uniform":
            return config.min_tokens + u * (config.max_tokens - config.min_tokens)
        case "lognormal":
            return config.median_tokens * float(
                np.exp(config.sigma * NormalDist().inv_cdf(min(max(u, 1e-12), 1 - 1e-12)))
            )
        case "empirical":
            return sorted(config.values)[int(u * len(config.values))]
