"""Each category gets its quota of diverse rows, every other row is accounted for, and order and faults show."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import BuildError
from curation.kernels.selection import squared_norm_of_sum
from curation.recipe import SelectionConfig, load_recipe, shipped_recipes
from curation.schema import POOL_SCHEMA
from curation.stages.base import ledger_table
from curation.stages.select import select_categories
from sources.base import CATEGORIES


def unit_rows(n: int, d: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + rng.standard_normal(d)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def pool_of(sizes: dict[str, int]) -> pa.Table:
    rows = []
    for category, size in sizes.items():
        for i in range(size):
            record = f"made_up:{category}-{i:03d}"
            rows.append(
                {
                    "record_id": record,
                    "source": "made_up",
                    "src_id": f"{category}-{i:03d}",
                    "category": category,
                    "sub_category": "",
                    "turns": [f"prompt {i} of {category}"],
                    "text": f"prompt {i} of {category}",
                    "language": "en",
                    "difficulty": "",
                    "template_id": "",
                    "record_ids": [record],
                    "is_code": False,
                }
            )
    return pa.Table.from_pylist(rows, schema=POOL_SCHEMA)


SIZES = {"math": 40, "qa": 25, "coding": 30}
CONFIG = SelectionConfig(
    quota=10, nested=(6, 3), starts=3, tabu_steps=50, core_rows=20, bound_rounds=1, categories=("coding", "math", "qa")
)


def test_every_record_is_chosen_or_accounted_for_once():
    table, x = pool_of(SIZES), unit_rows(95)
    result = select_categories(table, x, CONFIG)
    ids = table.column("record_id").to_pylist()
    chosen = result.table.column("record_id").to_pylist()
    assert sorted(chosen + [drop.record_id for drop in result.drops]) == sorted(ids)
    assert {(d.stage, d.reason, d.against, d.score) for d in result.drops} == {("select", "not_selected", "", None)}
    assert result.table.select(POOL_SCHEMA.names).schema == POOL_SCHEMA
    assert result.table.column("category").to_pylist() == ["coding"] * 10 + ["math"] * 10 + ["qa"] * 10
    assert chosen == sorted(chosen[:10]) + sorted(chosen[10:20]) + sorted(chosen[20:])
    assert ledger_table(result.drops).num_rows == 65


@given(st.permutations(range(95)))
@settings(max_examples=5, deadline=None)
def test_the_order_of_the_table_changes_nothing(order: list[int]):
    table, x = pool_of(SIZES), unit_rows(95)
    expected = select_categories(table, x, CONFIG)
    shuffled = select_categories(table.take(pa.array(order)), x[order], CONFIG)
    assert shuffled.table == expected.table
    assert shuffled.facts == expected.facts


def test_the_figures_are_those_of_the_chosen_rows():
    table, x = pool_of(SIZES), unit_rows(95)
    result = select_categories(table, x, CONFIG)
    place = {record_id: i for i, record_id in enumerate(table.column("record_id").to_pylist())}
    for category, size in SIZES.items():
        facts = result.facts["categories"][category]
        rows = [place[row["record_id"]] for row in result.table.to_pylist() if row["category"] == category]
        assert facts["objective"] == pytest.approx(squared_norm_of_sum(x[rows]), abs=1e-6)
        assert (facts["candidates"], facts["wanted"], facts["chosen"]) == (size, 10, 10)
        assert facts["bound"] <= facts["objective"] <= facts["greedy_objective"] + 1e-6
        assert facts["gap"] == pytest.approx(1 - facts["bound"] / facts["objective"], abs=1e-8)


def test_a_smaller_set_lies_inside_the_larger_and_is_the_most_diverse_there():
    table, x = pool_of(SIZES), unit_rows(95)
    result = select_categories(table, x, CONFIG)
    place = {record_id: i for i, record_id in enumerate(table.column("record_id").to_pylist())}
    for category in SIZES:
        rows = [row for row in result.table.to_pylist() if row["category"] == category]
        sets = {k: [place[row["record_id"]] for row in rows if row["nested_size"] <= k] for k in (3, 6, 10)}
        assert {k: len(members) for k, members in sets.items()} == {3: 3, 6: 6, 10: 10}
        nested = result.facts["categories"][category]["nested"]
        assert nested["3"] == pytest.approx(squared_norm_of_sum(x[sets[3]]), abs=1e-6)
        drawn = np.random.default_rng(0)
        for _ in range(20):
            other = drawn.choice(sets[10], 6, replace=False)
            assert squared_norm_of_sum(x[sets[6]]) <= squared_norm_of_sum(x[other]) + 1e-6
    plain = select_categories(table, x, CONFIG.model_copy(update={"nested": ()}))
    assert plain.table.column("record_id") == result.table.column("record_id"), "a subset does not change the set"
    assert set(plain.table.column("nested_size").to_pylist()) == {10}


def test_a_pool_under_the_quota_is_refused_with_category_wanted_and_found():
    table = pool_of({"math": 12, "qa": 8, "rag": 3})
    config = CONFIG.model_copy(update={"categories": ("math", "qa", "rag"), "quota": 12})
    with pytest.raises(BuildError, match=r"qa: wanted 12, found 8; rag: wanted 12, found 3;.*--allow-short") as caught:
        select_categories(table, unit_rows(23), config)
    assert "math" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_short_delivers_what_there_is_and_says_so(caplog):
    table = pool_of({"math": 12, "qa": 4, "rag": 1})
    config = CONFIG.model_copy(update={"categories": ("math", "qa", "rag", "stem")})
    result = select_categories(table, unit_rows(17), config, allow_short=True)
    assert result.table.column("category").to_pylist() == ["math"] * 10 + ["qa"] * 4 + ["rag"]
    assert "qa: wanted 10, found 4" in caplog.text
    facts = result.facts["categories"]
    assert [facts[c]["chosen"] for c in config.categories] == [10, 4, 1, 0]
    assert facts["qa"]["gap"] == 0
    assert "objective" not in facts["stem"], "no figure where nothing was chosen"
    sizes = result.table.column("nested_size").to_pylist()
    assert sorted(sizes[10:14]) == [3, 3, 3, 6]
    assert sizes[14] == 3


def test_a_row_without_a_vector_cannot_be_chosen_and_does_not_fill_a_quota():
    table, x = pool_of({"math": 11}), unit_rows(11)
    x[4] = np.nan
    config = CONFIG.model_copy(update={"categories": ("math",)})
    result = select_categories(table, x, config)
    assert [(d.record_id, d.reason) for d in result.drops] == [("made_up:math-004", "no_vector")]
    x[5] = np.nan
    with pytest.raises(BuildError, match="math: wanted 10, found 9"):
        select_categories(table, x, config)


def test_without_a_list_of_categories_all_eleven_are_filled():
    table = pool_of(dict.fromkeys(CATEGORIES, 3))
    config = SelectionConfig(quota=2, starts=1, tabu_steps=0, core_rows=0)
    result = select_categories(table, unit_rows(33), config)
    assert result.table.column("category").to_pylist() == [c for c in CATEGORIES for _ in range(2)]


def test_the_shipped_recipes_load_and_v1_offline_differs_in_the_embedder_alone():
    recipes = {name: load_recipe(name) for name in shipped_recipes()}
    v1, offline = recipes["v1"], recipes["v1-offline"]
    assert v1.selection.quota == 80
    assert v1.selection.nested == (20,)
    assert v1.model_copy(update={"name": "", "embedder": None}) == offline.model_copy(
        update={"name": "", "embedder": None}
    )
    assert recipes["demo"].selection.quota == 8


def test_the_number_of_processes_changes_nothing():
    table, x = pool_of(SIZES), unit_rows(95)
    one, two = (select_categories(table, x, CONFIG, workers=workers) for workers in (1, 2))
    assert two.table == one.table
    assert two.facts == one.facts
    assert two.drops == one.drops
