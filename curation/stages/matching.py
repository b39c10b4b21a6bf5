"""The one rule of nearness between whole records, as the recipe states it: for dedup, and for `audit self`."""

from __future__ import annotations

from curation.errors import RecipeError
from curation.kernels.minhash import choose_bands
from curation.kernels.near import NearIndex
from curation.kernels.shingles import ShingleSets
from curation.recipe import DedupConfig


def near_index(sets: ShingleSets, config: DedupConfig) -> NearIndex:
    """Return what finds the pairs of sets that may be near, by the recipe's threshold.

    Raises
    ------
    RecipeError
        If `num_perm` is too small for the threshold and the allowed probability of a miss.
    """
    try:
        bands = choose_bands(config.jaccard_threshold, config.num_perm, config.max_miss_probability)
    except ValueError as error:
        raise RecipeError(f"recipe: dedup: {error}") from None
    return NearIndex(sets, threshold=config.jaccard_threshold, num_perm=config.num_perm, bands=bands)
