"""Exact, near and semantic duplicates, inside a source and across sources.

Each layer compares the record's own text, without our instruction, and keeps of two records the one of the source with
the lower priority number, then the lower id: whatever the order of the rows, the same records stay.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from curation.errors import BuildError
from curation.kernels.near import greedy_duplicates
from curation.kernels.neighbors import TooManyPairs, Vectors, greedy_neighbors, usable_rows
from curation.kernels.shingles import shingle_sets
from curation.kernels.text import exact_key
from curation.recipe import DedupConfig
from curation.stages.base import Drop, StageResult, without
from curation.stages.matching import near_index

logger = logging.getLogger(__name__)

EXACT, NEAR, SEMANTIC = "dedup_exact", "dedup_near", "dedup_semantic"


def dedup_exact(table: pa.Table, priority: Mapping[str, int]) -> StageResult:
    """Return the records whose text no other record before them has (see `kernels.text.exact_key`).

    Parameters
    ----------
    table
        Records of `POOL_SCHEMA`.
    priority
        Source to its place among sources; the lower keeps a shared text.
    """
    ids, texts = table.column("record_id").to_pylist(), table.column("text").to_pylist()
    keeper_of: dict[str, str] = {}
    drops: dict[str, Drop] = {}
    for i in keeper_order(table, priority):
        key = exact_key(texts[i])
        # A text that shows nothing is the filter's to drop; here it equals no other.
        keeper = keeper_of.setdefault(key, ids[i]) if key else ids[i]
        if keeper != ids[i]:
            drops[ids[i]] = Drop(ids[i], EXACT, "exact_duplicate", keeper, 1.0)
    return _result(table, EXACT, drops)


def dedup_near(table: pa.Table, config: DedupConfig, priority: Mapping[str, int]) -> StageResult:
    """Return the records that are not near to a kept one: Jaccard of shingles at `jaccard_threshold` or above.

    Raises
    ------
    RecipeError
        If `num_perm` is too small for the threshold and the allowed probability of a miss.
    """
    order = keeper_order(table, priority)
    ids = _taken(table, "record_id", order)
    sets = shingle_sets(_taken(table, "text", order), config.ngram_size)
    near = greedy_duplicates(near_index(sets, config))
    logger.debug("%s: %d candidate pairs, %d verified", NEAR, near.num_candidates, near.num_verified)
    drops = {
        ids[item]: Drop(ids[item], NEAR, "near_duplicate", ids[keeper], score)
        for item, keeper, score in zip(near.items.tolist(), near.keepers.tolist(), near.scores.tolist(), strict=True)
    }
    return _result(table, NEAR, drops)


def dedup_semantic(table: pa.Table, vectors: Vectors, config: DedupConfig, priority: Mapping[str, int]) -> StageResult:
    """Return the records whose vector is not within `cosine_threshold` of a kept one of the same language.

    Translations are no duplicates, so only records of one declared language are compared, and only code of one
    `sub_category` (its programming language). Records without a declared language are compared among themselves.

    Parameters
    ----------
    table
        Records of `POOL_SCHEMA`.
    vectors
        Shape (rows of the table, d), in its order; any length, not modified.

    Raises
    ------
    BuildError
        If there is not one vector a record, or a language has more pairs within the threshold than `max_pairs`.
    """
    if len(vectors) != table.num_rows:
        raise BuildError(f"{SEMANTIC}: {table.num_rows} records but {len(vectors)} vectors: embed the pool again")
    ids = table.column("record_id").to_pylist()
    usable = usable_rows(vectors)
    drops = {ids[i]: Drop(ids[i], SEMANTIC, "no_usable_embedding") for i in np.flatnonzero(~usable).tolist()}
    order = [i for i in keeper_order(table, priority) if usable[i]]
    for tongue, rows in _by_language(table, order).items():
        try:
            found = greedy_neighbors(vectors, config.cosine_threshold, config.max_pairs, np.array(rows))
        except TooManyPairs as error:
            raise BuildError(
                f"{SEMANTIC}: language {tongue[0] or 'undeclared'!r}: {error}: raise dedup.max_pairs or the threshold"
            ) from None
        for item, keeper, score in zip(
            found.items.tolist(), found.keepers.tolist(), found.scores.tolist(), strict=True
        ):
            item_id = ids[rows[item]]
            drops[item_id] = Drop(item_id, SEMANTIC, "semantic_duplicate", ids[rows[keeper]], score)
    return _result(table, SEMANTIC, drops)


def keeper_order(table: pa.Table, priority: Mapping[str, int]) -> list[int]:
    """Return the rows of the table in the order in which they may keep a text: source priority, then id.

    A source without a priority comes after all that have one.
    """
    last = max(priority.values(), default=0) + 1
    ids, sources = table.column("record_id").to_pylist(), table.column("source").to_pylist()
    return sorted(range(len(ids)), key=lambda i: (priority.get(sources[i], last), ids[i]))


def _by_language(table: pa.Table, order: Sequence[int]) -> dict[tuple[str, str], list[int]]:
    languages, kinds = table.column("language").to_pylist(), table.column("sub_category").to_pylist()
    is_code = table.column("is_code").to_pylist()
    groups: dict[tuple[str, str], list[int]] = {}
    for i in order:
        groups.setdefault((languages[i], kinds[i] if is_code[i] else ""), []).append(i)
    return groups


def _taken(table: pa.Table, column: str, order: Sequence[int]) -> list[str]:
    values: list[str] = table.column(column).to_pylist()
    return [values[i] for i in order]


def _result(table: pa.Table, stage: str, drops: Mapping[str, Drop]) -> StageResult:
    in_order = tuple(drops[i] for i in table.column("record_id").to_pylist() if i in drops)
    left = without(table, in_order)
    logger.info("%s: %d -> %d records", stage, table.num_rows, left.num_rows)
    return StageResult(left, in_order)
