"""Exact, near and semantic dedup: who stays, who goes, and against whom."""

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import BuildError, RecipeError
from curation.recipe import DedupConfig, FilterConfig
from curation.schema import POOL_SCHEMA
from curation.stages.base import Drop
from curation.stages.clean import filter_records
from curation.stages.dedup import dedup_exact, dedup_near, dedup_semantic, keeper_order

CONFIG = DedupConfig()
NONE: dict[str, int] = {}


def pool(rows):
    """Rows of (source:id, text) and any other columns by name."""
    table = []
    for record_id, text, *rest in rows:
        row = {
            "record_id": record_id,
            "source": record_id.split(":")[0],
            "src_id": record_id.split(":")[-1],
            "category": "qa",
            "sub_category": "",
            "turns": [text],
            "text": text,
            "language": "en",
            "difficulty": "",
            "template_id": "",
            "record_ids": [record_id],
            "is_code": False,
        }
        table.append(row | (rest[0] if rest else {}))
    return pa.Table.from_pylist(table, schema=POOL_SCHEMA)


def against(result):
    return {d.record_id: d.against for d in result.drops}


def ids(result):
    return result.table.column("record_id").to_pylist()


SHORT = [
    ("s:1", "Sketch a valve."),
    ("s:2", "Spell a number."),
    ("s:3", "Weigh two coins."),
    ("s:4", "elm"),
    ("s:5", "yew"),
    ("s:6", "Sketch a valve."),
    ("s:7", "早安"),
    ("s:8", "晚安"),
    ("s:9", "Sketch a valve."),
    ("s:A", "Sketch a valve."),
    ("s:B", ""),
]


@pytest.mark.parametrize("order", [range(11), range(10, -1, -1), [3, 9, 0, 8, 10, 5, 1, 7, 2, 6, 4]])
def test_texts_shorter_than_a_shingle_are_only_equal_to_themselves(order):
    filtered, _ = filter_records(pool([SHORT[i] for i in order]), FilterConfig())
    assert filtered.drops == (Drop("s:B", "filter", "empty"),), "empty, and no duplicate"
    exact = dedup_exact(filtered.table, NONE)
    assert against(exact) == {"s:6": "s:1", "s:9": "s:1", "s:A": "s:1"}
    assert {(d.reason, d.score) for d in exact.drops} == {("exact_duplicate", 1.0)}
    near = dedup_near(exact.table, CONFIG, NONE)
    assert near.drops == ()
    assert sorted(ids(near)) == ["s:1", "s:2", "s:3", "s:4", "s:5", "s:7", "s:8"]


@pytest.mark.parametrize("rows", [[], [("s:1", "The gate sticks in wet weather.")], [("s:1", "one"), ("s:2", "two")]])
def test_pools_without_duplicates_pass_every_layer(rows):
    table = pool(rows)
    vectors = np.eye(len(rows), 4, dtype=np.float32)
    for result in (
        dedup_exact(table, NONE),
        dedup_near(table, CONFIG, NONE),
        dedup_semantic(table, vectors, CONFIG, NONE),
    ):
        assert result.drops == ()
        assert result.table.equals(table)


def test_texts_that_show_nothing_are_never_equal():
    table = pool([("s:1", " "), ("s:2", " "), ("s:3", "！！！"), ("s:4", "  \n")])
    assert dedup_exact(table, NONE).drops == ()
    assert dedup_near(table, CONFIG, NONE).drops == ()


def test_of_two_sources_the_one_of_lower_priority_number_keeps_the_text_then_the_lower_id():
    rows = [
        ("a:9", "The same words."),
        ("b:2", "The same words."),
        ("b:1", "The same words."),
        ("c:0", "The same words."),
    ]
    assert against(dedup_exact(pool(rows), {"a": 5, "b": 1})) == {"a:9": "b:1", "b:2": "b:1", "c:0": "b:1"}
    assert against(dedup_exact(pool(rows), NONE)) == {"b:1": "a:9", "b:2": "a:9", "c:0": "a:9"}
    assert keeper_order(pool(rows), {"a": 5, "b": 1}) == [2, 1, 0, 3], "a source without priority comes last"


SENTENCE = "When the tide turns, the ferry waits at the lower pier until the last cart has crossed the planks"


def test_near_duplicates_are_found_inside_and_across_sources_with_their_score():
    rows = [
        ("a:1", SENTENCE),
        ("a:2", SENTENCE + " again."),
        ("b:1", SENTENCE.upper()),
        ("b:2", "Nothing here is like any of the others, whatever the tide may do at the lower pier."),
    ]
    result = dedup_near(pool(rows), CONFIG, {"a": 2, "b": 1})
    # 19 tokens make 15 shingles, one more token one more shingle.
    assert result.drops == (
        Drop("a:1", "dedup_near", "near_duplicate", "b:1", 1.0),
        Drop("a:2", "dedup_near", "near_duplicate", "b:1", 15 / 16),
    )
    assert ids(result) == ["b:1", "b:2"]


def test_numbers_and_operators_changed_is_another_text():
    rows = [
        ("s:1", "A crate holds 14 jars and a van carries 36 crates so how many jars travel in 5 vans"),
        ("s:2", "A crate holds 92 jars and a van carries 71 crates so how many jars travel in 3 vans"),
        ("s:3", "def f(x): return x<<2"),
        ("s:4", "def f(x): return x>>2"),
    ]
    assert dedup_exact(pool(rows), NONE).drops == ()
    assert dedup_near(pool(rows), CONFIG, NONE).drops == ()


def test_scripts_without_spaces_have_near_duplicates_too():
    base = "河面上的雾气在清晨慢慢散开然后太阳照亮了整座小镇"
    other = "山坡上的羊群在傍晚渐渐聚拢最后牧人带着它们回家"
    result = dedup_near(pool([("s:1", base), ("s:2", base + "。"), ("s:3", base + "啊"), ("s:4", other)]), CONFIG, NONE)
    assert {d.record_id: d.score for d in result.drops} == {"s:2": 1.0, "s:3": 20 / 21}


def test_a_chain_keeps_both_ends_in_any_order():
    words = [f"w{i}" for i in range(60)]
    rows = [(f"s:{k}", " ".join(words[3 * k : 3 * k + 30])) for k in range(3)]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        result = dedup_near(pool([rows[i] for i in order]), CONFIG, NONE)
        assert against(result) == {"s:1": "s:0"}


def test_a_recipe_whose_bands_would_miss_pairs_is_refused():
    with pytest.raises(RecipeError, match=r"num_perm = 16 .* jaccard_threshold = 0\.3 .* raise num_perm"):
        dedup_near(pool([("s:1", "a b")]), DedupConfig(num_perm=16, jaccard_threshold=0.3), NONE)


def test_vectors_without_a_direction_are_dropped_by_id_and_never_indexed():
    vectors = np.array(
        [[3, 0, 0], [1, 0, 0], [0, 0, 0], [np.nan, 0, 1], [1.8, 2.4, 0], [0, 0, 5], [0, 0, 0.1], [np.inf, 0, 0]],
        np.float32,
    )
    before = vectors.copy()
    table = pool([(f"v:{i}", f"text {i}") for i in range(8)])
    result = dedup_semantic(table, vectors, CONFIG, NONE)
    assert {(d.record_id, d.reason, d.against) for d in result.drops} == {
        ("v:1", "semantic_duplicate", "v:0"),
        ("v:2", "no_usable_embedding", ""),
        ("v:3", "no_usable_embedding", ""),
        ("v:6", "semantic_duplicate", "v:5"),
        ("v:7", "no_usable_embedding", ""),
    }
    assert all(d.score is None if d.reason == "no_usable_embedding" else -1 <= d.score <= 1 for d in result.drops)
    assert ids(result) == ["v:0", "v:4", "v:5"]
    assert np.array_equal(vectors, before, equal_nan=True)


def test_translations_are_no_duplicates():
    same = np.ones((6, 3), np.float32)
    rows = [
        ("s:1", "a", {"language": "en"}),
        ("s:2", "b", {"language": "de"}),
        ("s:3", "c", {"language": ""}),
        ("s:4", "d", {"language": ""}),
        ("s:5", "e", {"language": "en", "is_code": True, "sub_category": "python"}),
        ("s:6", "f", {"language": "en", "is_code": True, "sub_category": "rust"}),
    ]
    assert against(dedup_semantic(pool(rows), same, CONFIG, NONE)) == {"s:4": "s:3"}


def test_prose_of_one_language_is_compared_across_sub_categories_and_sources():
    rows = [("a:1", "x", {"sub_category": "law"}), ("b:1", "y", {"sub_category": "art"})]
    assert against(dedup_semantic(pool(rows), np.ones((2, 3)), CONFIG, {"a": 2, "b": 1})) == {"a:1": "b:1"}


def test_too_many_semantic_pairs_are_refused_with_their_language():
    table = pool([(f"s:{i}", str(i), {"language": "fi"}) for i in range(9)])
    with pytest.raises(BuildError, match=r"language 'fi': more than 35 pairs .* raise dedup.max_pairs"):
        dedup_semantic(table, np.ones((9, 2)), DedupConfig(max_pairs=35), NONE)
    assert len(dedup_semantic(table, np.ones((9, 2)), DedupConfig(max_pairs=36), NONE).drops) == 8


def test_vectors_of_another_pool_are_refused():
    with pytest.raises(BuildError, match="2 records but 3 vectors"):
        dedup_semantic(pool([("s:1", "a"), ("s:2", "b")]), np.ones((3, 2)), CONFIG, NONE)
