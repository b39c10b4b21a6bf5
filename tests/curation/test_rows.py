from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.pool import pool_table
from curation.rows import source_names, split_rows, with_placeholders
from curation.schema import POOL_SCHEMA, SENTINEL, SPLIT_SCHEMA
from sources.base import FileSpec, Record, SourceSpec
from sources.licenses import MIT, UNKNOWN


def _spec(name: str, license, **more) -> SourceSpec:
    files = {"test": FileSpec("test.jsonl", "jsonl", {"id": "string"})}
    return SourceSpec(name, name.title(), f"org/{name}", license, files, ("qa",), "@misc{x}", **more)


SPECS = {"open": _spec("open", MIT), "closed": _spec("closed", UNKNOWN), "gate": _spec("gate", MIT, gated=True)}


class Words:
    """A tokenizer whose tokens are the words."""

    def encode_ordinary(self, text: str) -> list[int]:
        return list(range(len(text.split())))


REVISIONS = {"open": "a" * 40, "closed": "", "gate": "b" * 40}


def _record(source: str, native_id: str, *turns: str, **more) -> Record:
    return Record(source, native_id, more.pop("category", "qa"), turns, "\n\n".join(turns), **more)


def _rows(*records: Record) -> pa.Table:
    table, drops = pool_table(records)
    assert not drops
    return split_rows(table, "qualitative", SPECS, REVISIONS, Words())


def test_a_row_says_where_it_comes_from_and_what_its_text_was():
    (row,) = _rows(_record("open", "q7", "What is up?", "And down?", difficulty="easy")).to_pylist()
    assert row["question_id"] == hashlib.sha256(b"qualitative\x1forg/open\x1fq7").hexdigest()[:32]
    assert (row["source"], row["source_revision"], row["license"]) == ("org/open", "a" * 40, "mit")
    assert row["record_ids"] == ["open:q7"]
    assert row["multiturn"] is True
    assert row["num_tokens"] == 5
    compact = json.dumps(["What is up?", "And down?"], separators=(",", ":"))
    assert row["turns_sha256"] == hashlib.sha256(compact.encode()).hexdigest()


def test_a_placeholder_holds_as_many_sentinels_as_there_are_turns_and_keeps_the_digest_of_the_text():
    real = _rows(_record("closed", "1", "one", "two"), _record("open", "1", "three"), _record("gate", "1", "four"))
    published = with_placeholders(real, SPECS)
    by_source = {row["source"]: row for row in published.to_pylist()}
    assert by_source["org/closed"]["turns"] == [SENTINEL, SENTINEL]
    assert by_source["org/gate"]["turns"] == [SENTINEL], "a gated source is withheld whatever its licence"
    assert by_source["org/open"]["turns"] == ["three"]
    assert [by_source[s]["text_status"] for s in ("org/closed", "org/gate", "org/open")] == [
        "placeholder",
        "placeholder",
        "full",
    ]
    for column in ("question_id", "turns_sha256", "num_tokens", "record_ids"):
        assert published.column(column) == real.column(column)


def test_a_row_is_withheld_if_any_of_the_sources_of_its_records_is():
    rows = _rows(_record("open", "1", "one")).to_pylist()
    rows[0]["record_ids"] = ["closed:9", "open:1"]
    table = pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA)
    assert with_placeholders(table, SPECS).column("text_status").to_pylist() == ["placeholder"]


def test_rows_stand_in_the_order_of_question_id_within_category():
    records = [_record("open", str(i), f"text {i}", category=c) for i in range(20) for c in ("math",)] + [
        _record("closed", str(i), f"other {i}", category="coding") for i in range(5)
    ]
    keys = [(row["category"], row["question_id"]) for row in _rows(*records).to_pylist()]
    assert keys == sorted(keys)


@given(st.permutations([("a", "x"), ("b", "y"), ("a", "y"), ("a", "x")]))
def test_the_pool_is_the_same_in_any_order_and_names_every_id_that_came_twice(order):
    table, drops = pool_table([_record("open", native_id, text) for native_id, text in order])
    assert table.schema == POOL_SCHEMA
    assert table.column("record_id").to_pylist() == ["open:a", "open:b"]
    assert table.column("text").to_pylist() == ["x", "y"], "the smaller text keeps an id"
    assert [d.record_id for d in drops] == ["open:a", "open:a"]
    assert all(d.against == "open:a" and d.reason for d in drops)


def test_split_columns_hold_no_null_and_no_arrow_null_type():
    for schema in (POOL_SCHEMA, SPLIT_SCHEMA):
        for field in schema:
            assert not field.nullable
            assert not pa.types.is_null(field.type)


@pytest.mark.parametrize(("record_ids", "names"), [(["b:1", "a:2", "b:3"], ["a", "b"]), (["x:with:colons"], ["x"])])
def test_source_names_are_what_stands_before_the_first_colon(record_ids, names):
    assert source_names(record_ids) == names
