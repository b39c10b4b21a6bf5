"""Laws that every filter stage keeps, on pools that Hypothesis draws."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.recipe import CandidatesConfig, DecontaminateConfig, DedupConfig, FilterConfig
from curation.schema import POOL_SCHEMA
from curation.stages.base import StageResult, ledger_table
from curation.stages.clean import cap_candidates, filter_records
from curation.stages.decontaminate import ReferenceText, decontaminate
from curation.stages.dedup import dedup_exact, dedup_near, dedup_semantic

PRIORITY = {"a": 2, "b": 1}
DEDUP = DedupConfig(ngram_size=2, jaccard_threshold=0.6)
REFERENCES = [
    ReferenceText("r", str(i), text) for i, text in enumerate(["oak elm", "oak ash yew fir oak", "你好 世界", "!"])
]


def vectors_of(table: pa.Table) -> np.ndarray:
    """Each text's counts of a few words: a text without them has no usable vector."""
    words = ("oak", "elm", "ash", "yew", "你")
    return np.array([[t.count(w) for w in words] for t in table.column("text").to_pylist()], float).reshape(
        -1, len(words)
    )


STAGES: dict[str, Callable[[pa.Table], StageResult]] = {
    "filter": lambda t: filter_records(t, FilterConfig(min_chars=3, max_chars=24, language_max_judged=0))[0],
    "exact": lambda t: dedup_exact(t, PRIORITY),
    "near": lambda t: dedup_near(t, DEDUP, PRIORITY),
    "cap": lambda t: cap_candidates(t, CandidatesConfig(max_per_source_language=2)),
    "decontaminate": lambda t: decontaminate(t, REFERENCES, DecontaminateConfig())[0],
    "semantic": lambda t: dedup_semantic(t, vectors_of(t), DedupConfig(cosine_threshold=0.8), PRIORITY),
}

text = st.one_of(
    st.lists(st.sampled_from(["oak", "elm", "ash", "yew", "fir"]), max_size=7).map(" ".join),
    st.sampled_from(["", " ", "!", "Oak  Elm", "OAK, ELM!", "你好世界", "你好 世界", "x<<2", "x>>2"]),
)


@st.composite
def pools(draw):
    rows = draw(
        st.lists(st.tuples(st.sampled_from("abc"), text, st.sampled_from(["en", "zh", ""]), st.booleans()), max_size=14)
    )
    return pa.Table.from_pylist(
        [
            {
                "record_id": f"{source}:{i:02}",
                "source": source,
                "src_id": f"{i:02}",
                "category": "qa",
                "sub_category": "py" if is_code else "",
                "turns": [words],
                "text": words,
                "language": language,
                "difficulty": "",
                "template_id": "",
                "record_ids": [f"{source}:{i:02}"],
                "is_code": is_code,
            }
            for i, (source, words, language, is_code) in enumerate(rows)
        ],
        schema=POOL_SCHEMA,
    )


def ids(table: pa.Table) -> list[str]:
    return table.column("record_id").to_pylist()


@pytest.mark.parametrize("stage", STAGES)
@given(data=st.data())
@settings(max_examples=60)
def test_a_filter_stage_keeps_the_laws(stage, data):
    run, table = STAGES[stage], data.draw(pools())
    result = run(table)
    left, dropped = ids(result.table), [d.record_id for d in result.drops]

    assert result.table.schema == POOL_SCHEMA, "columns stay"
    assert sorted(left + dropped) == sorted(ids(table)), "every record is kept or accounted for, once"
    assert left == [i for i in ids(table) if i in set(left)], "order stays"
    assert dropped == [i for i in ids(table) if i in set(dropped)], "drops are told in the order of the table"
    assert result.table.equals(table.filter(pa.array([i in set(left) for i in ids(table)], pa.bool_()))), "rows stay"

    records = set(ids(table))
    assert all(d.against in left for d in result.drops if d.against in records), "evidence survives"
    assert all(d.reason and d.stage for d in result.drops)
    assert all(d.score is not None for d in result.drops if "duplicate" in d.reason or "contaminated" in d.reason)
    assert ledger_table(result.drops).num_rows == len(dropped)
    assert run(result.table).drops == (), "a second run drops nothing"

    order = data.draw(st.permutations(range(table.num_rows)))
    shuffled = run(table.take(pa.array(order, pa.int64())))
    assert set(shuffled.drops) == set(result.drops), "the order of rows decides nothing"


@given(pools())
@settings(max_examples=60)
def test_each_layer_of_dedup_leaves_less_to_the_next(table):
    exact = dedup_exact(table, PRIORITY)
    near = dedup_near(exact.table, DEDUP, PRIORITY)
    shown = [t for t in near.table.column("text").to_pylist() if t.strip()]
    assert len(shown) == len(set(shown)), "no two records with one text are left"


@given(pools())
@settings(max_examples=30)
def test_a_keeper_comes_before_what_it_drops(table):
    place = {i: (PRIORITY.get(i[0], 3), i) for i in ids(table)}
    for run in (STAGES["exact"], STAGES["near"], STAGES["semantic"]):
        assert all(place[d.against] < place[d.record_id] for d in run(table).drops if d.against)
