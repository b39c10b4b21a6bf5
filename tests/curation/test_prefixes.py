from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels.prefixes import longest_shared_prefix, ngram_hashes, shared_shares

IDS = st.lists(st.integers(0, 3), max_size=12)


def shared(a: list[int], b: list[int]) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


@given(st.lists(IDS, max_size=8))
def test_longest_shared_prefix_is_that_of_the_best_pair(rows: list[list[int]]) -> None:
    assert longest_shared_prefix(rows) == max((shared(a, b) for a, b in combinations(rows, 2)), default=0)


def test_longest_shared_prefix_by_hand() -> None:
    assert longest_shared_prefix([[1, 2, 3], [2, 2, 3], [1, 2, 4, 5]]) == 2
    assert longest_shared_prefix([[1, 2], [1, 2]]) == 2
    assert longest_shared_prefix([[7, 8, 9]]) == 0


@given(IDS, st.integers(1, 5))
def test_hashes_are_the_distinct_ngrams(ids: list[int], size: int) -> None:
    ngrams = {tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)}
    hashes = ngram_hashes(ids, size)
    assert len(hashes) == len(ngrams)
    assert np.all(np.diff(hashes.astype(object)) > 0)


def test_the_same_ngram_has_the_same_hash_anywhere_and_its_order_counts() -> None:
    (inside,) = set(ngram_hashes([9, 1, 2, 3, 9], 3)) & set(ngram_hashes([1, 2, 3], 3))
    assert inside == ngram_hashes([1, 2, 3], 3)[0]
    assert ngram_hashes([3, 2, 1], 3)[0] != inside
    assert ngram_hashes([0, 0], 2)[0] != ngram_hashes([0, 0, 0], 3)[0]


def test_hash_values_are_pinned() -> None:
    """A change here changes published figures."""
    assert [int(h) for h in ngram_hashes([1, 2, 3], 3)] == [2426958591664405190]


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="size must be >= 1"):
        ngram_hashes([1], 0)


@given(st.lists(IDS, max_size=6))
def test_shared_shares_are_those_of_the_slow_definition(rows: list[list[int]]) -> None:
    sets = [{tuple(row[i : i + 2]) for i in range(len(row) - 1)} for row in rows]
    shares = shared_shares([ngram_hashes(row, 2) for row in rows])
    for i, own in enumerate(sets):
        others = set().union(*sets[:i], *sets[i + 1 :])
        if own:
            assert shares[i] == pytest.approx(len(own & others) / len(own))
        else:
            assert np.isnan(shares[i])


def test_shared_shares_by_hand() -> None:
    rows = [ngram_hashes(ids, 2) for ids in ([1, 2, 3], [2, 3, 4], [7, 8])]
    assert shared_shares(rows).tolist() == [0.5, 0.5, 0.0]
