from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.throughput.cells import BATCH_ROWS, ConfigState, fill, in_turns
from curation.throughput.composition import Target
from curation.throughput.rows import Built, Measures, Refused


def target(i: int, source: str = "s", identity: str = "", *, preferred: bool = True) -> Target:
    return Target(source, f"{i}", identity or f"{source}:{i}", preferred)


def built(t: Target, n: int, prefix: tuple[int, ...]) -> Built:
    row: dict[str, Any] = {"question_id": f"q{t.src_id}", "num_tokens": n, "record_ids": [t.record_id]}
    return Built(row, prefix, np.empty(0, np.uint64), Measures(None, None))


class Attempts:
    """Builds every target that fits its length, and remembers what was tried."""

    def __init__(self, fits: Any = None, prefix: Any = None) -> None:
        self.fits = fits or (lambda _target, _n: True)
        self.prefix = prefix or (lambda t: (int(t.src_id),))
        self.tried = Counter[str]()

    def __call__(self, batch: Sequence[tuple[Target, int]]) -> list[Built | Refused]:
        self.tried.update(t.record_id for t, _ in batch)
        return [built(t, n, self.prefix(t)) if self.fits(t, n) else Refused(t.record_id, "too long") for t, n in batch]


def ids(rows: list[Built]) -> list[str]:
    return [row.row["record_ids"][0] for row in rows]


def test_targets_are_tried_in_their_order_until_the_cell_is_full() -> None:
    rows, refused = fill(
        [10] * 3, [target(i) for i in range(200)], ConfigState(), Attempts(lambda t, _: int(t.src_id) % 2)
    )
    assert ids(rows) == ["s:1", "s:3", "s:5"]
    assert [r.record_id for r in refused] == ["s:0", "s:2"]  # s:4 was for a length that s:1 had filled


def test_a_cell_stays_short_when_the_targets_are_used_up() -> None:
    rows, refused = fill([10] * 5, [target(i) for i in range(4)], ConfigState(), Attempts(lambda t, _: t.src_id != "2"))
    assert ids(rows) == ["s:0", "s:1", "s:3"]
    assert refused == [Refused("s:2", "too long")]


def test_an_identity_gives_one_row_a_config() -> None:
    state = ConfigState()
    first, _ = fill([10] * 2, [target(0, identity="q"), target(1, identity="q"), target(2)], state, Attempts())
    second, refused = fill([10] * 2, [target(3, identity="q"), target(4)], state, Attempts())
    assert (ids(first), ids(second), refused) == (["s:0", "s:2"], ["s:4"], [])


def test_a_row_that_shares_the_prefix_of_another_is_refused_with_its_id() -> None:
    state = ConfigState()
    rows, refused = fill(
        [10] * 3, [target(i) for i in range(5)], state, Attempts(prefix=lambda t: (int(t.src_id) % 4, 7))
    )
    assert ids(rows) == ["s:0", "s:1", "s:2"]
    rows, refused = fill(
        [10] * 2, [target(i) for i in (8, 3)], state, Attempts(prefix=lambda t: (int(t.src_id) % 4, 7))
    )
    assert ids(rows) == ["s:3"]
    assert refused == [Refused("s:8", "its first tokens are those of another row", 2, "q0")]


@given(
    lengths=st.lists(st.integers(1, 9), max_size=12),
    sizes=st.lists(st.integers(1, 9), max_size=200),
)
def test_laws_of_filling(lengths: list[int], sizes: list[int]) -> None:
    """At most one row a length, each long enough for it; nothing is used twice; a short cell has tried everything."""
    targets = [target(i) for i in range(len(sizes))]
    attempts = Attempts(lambda t, n: sizes[int(t.src_id)] >= n)
    rows, refused = fill(lengths, targets, ConfigState(), attempts)
    found = Counter(row.row["num_tokens"] for row in rows)
    assert found <= Counter(lengths)
    assert len(set(ids(rows))) == len(rows)
    assert not {*ids(rows)} & {r.record_id for r in refused}
    if len(rows) < len(lengths):
        assert len(rows) + len(refused) == len(targets)
    assert max(attempts.tried.values(), default=0) <= 1 + len(sizes) // BATCH_ROWS + len(lengths)


def test_sources_take_turns_and_those_unlikely_to_fit_come_last() -> None:
    a = [target(i, "a", preferred=i > 1) for i in range(4)]
    b = [target(i, "b") for i in range(3)]
    order = in_turns([a, b], "0", "c")
    assert [t.source for t in order] == ["a", "b", "a", "b", "b", "a", "a"]
    assert [t.preferred for t in order] == [True] * 5 + [False] * 2


def test_the_order_depends_on_ids_seed_and_config_alone() -> None:
    targets = [target(i) for i in range(50)]
    shuffled = random.Random(1).sample(targets, 50)
    assert in_turns([targets], "0", "c") == in_turns([shuffled], "0", "c")
    assert in_turns([targets], "0", "c") != in_turns([targets], "1", "c")
    assert in_turns([targets], "0", "c") != in_turns([targets], "0", "d")
