"""The cache of steps: a result is taken only where all that it rests on is the same, and only if it is whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation import store
from curation.schema import POOL_SCHEMA
from curation.stages.base import Drop, StageResult
from curation.store import StepCache, array_digest, rows_digest

ROW = {
    "record_id": "a:1",
    "source": "a",
    "src_id": "1",
    "category": "qa",
    "sub_category": "",
    "turns": ["one", "two"],
    "text": "one\n\ntwo",
    "language": "en",
    "difficulty": "",
    "template_id": "a/v1",
    "record_ids": ["a:1"],
    "is_code": False,
}
OTHER = {"turns": ["one", "three"], "record_ids": ["a:1", "a:2"], "is_code": True}


def table_of(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=POOL_SCHEMA)


@pytest.mark.parametrize("column", POOL_SCHEMA.names)
def test_every_column_of_a_row_counts(column):
    changed = {**ROW, column: OTHER.get(column, "other")}
    assert rows_digest(table_of(changed)) != rows_digest(table_of(ROW))


def test_rows_have_one_digest_however_they_are_chunked():
    second = {**ROW, "record_id": "a:2"}
    parts = pa.concat_tables([table_of(ROW), table_of(second)])
    assert parts.column("text").num_chunks == 2
    assert rows_digest(parts) == rows_digest(table_of(ROW, second)) != rows_digest(table_of(second, ROW))


def test_the_shape_of_an_array_counts():
    x = np.arange(6, dtype=np.float32)
    assert array_digest(x.reshape(2, 3)) != array_digest(x.reshape(3, 2))
    assert array_digest(x.reshape(2, 3)[:, ::-1]) == array_digest(np.ascontiguousarray(x.reshape(2, 3)[:, ::-1]))


def test_a_step_is_computed_once_and_comes_back_as_it_was(tmp_path):
    result = StageResult(table_of(ROW), (Drop("a:2", "s", "gone", "a:1", 0.5), Drop("a:3", "s", "gone")), {"n": 1})
    steps, calls = StepCache(tmp_path), []

    def compute() -> StageResult:
        calls.append(1)
        return result

    first, again = (steps.run("step", {"k": 1}, compute) for _ in range(2))
    assert first == again == result
    assert len(calls) == 1
    steps.run("step", {"k": 2}, compute)
    steps.run("other", {"k": 1}, compute)
    assert len(calls) == 3


def test_a_step_without_its_last_file_is_computed_again(tmp_path):
    steps = StepCache(tmp_path)
    steps.run("step", {}, lambda: StageResult(table_of(ROW)))
    (facts,) = tmp_path.rglob("facts.json")
    facts.unlink()
    assert steps.run("step", {}, lambda: StageResult(table_of())).table.num_rows == 0


@pytest.mark.parametrize("of", ["code_digest", "package_versions"])
def test_no_step_outlives_the_code_and_the_libraries_that_made_it(monkeypatch, of):
    before = store.step_key("step", {})
    monkeypatch.setattr(store, of, lambda: "another")
    assert store.step_key("step", {}) != before
