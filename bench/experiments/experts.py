"""Which experts of a mixture-of-experts model a load uses, by layer. Pure.

SPEED-Bench (Sec. 8.4) finds that random tokens leave 20-30 % of the experts of some layers unused, so that they are no
stand-in for real text on such a model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LayerCoverage:
    """One layer.

    Attributes
    ----------
    used
        Share of the experts that some token was sent to, in [0, 1].
    effective
        Experts that an even load of the same entropy would use: exp of the entropy of the load.
    busiest
        Load of the busiest expert over the mean load, >= 1; 1 is even.
    """

    layer: int
    experts: int
    routed: int
    used: float
    effective: float
    busiest: float


def expert_counts(router_logits: Floats, top_k: int) -> Ints:
    """Return how many tokens are routed to each expert, shape ``(experts,)``.

    Parameters
    ----------
    router_logits
        Of one layer, shape ``(tokens, experts)``; each token goes to its `top_k` highest, the lower expert at a tie.

    Raises
    ------
    ValueError
        If `top_k` is not in [1, experts].
    """
    experts = router_logits.shape[1]
    if not 1 <= top_k <= experts:
        raise ValueError(f"top_k must be in [1, {experts}], got {top_k}")
    chosen = np.argsort(-router_logits, axis=1, kind="stable")[:, :top_k]
    return np.bincount(chosen.ravel(), minlength=experts).astype(np.int64)


def expert_coverage(counts: Ints) -> list[LayerCoverage]:
    """Return the coverage of each layer; a layer that routed nothing is left out.

    Parameters
    ----------
    counts
        Tokens by layer and expert, shape ``(layers, experts)``, >= 0.
    """
    return [_layer(layer, row) for layer, row in enumerate(np.asarray(counts, np.int64)) if row.sum()]


def _layer(layer: int, row: Ints) -> LayerCoverage:
    shares = row[row > 0] / row.sum()
    entropy = float(-(shares * np.log(shares)).sum())
    return LayerCoverage(
        layer,
        len(row),
        int(row.sum()),
        float((row > 0).mean()),
        float(np.exp(entropy)),
        float(row.max() / row.mean()),
    )
