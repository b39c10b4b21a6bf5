"""The writer of every published file: its types come from the schema, whatever the rows hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.schema import SPLIT_SCHEMA
from curation.store import parquet_writer, write_table
from curation.verify.columns import has_null_type
from tests.release.served import Workplace

SCHEMA = pa.schema(
    [
        pa.field("question_id", pa.string(), nullable=False),
        pa.field("turns", pa.list_(pa.string())),
        pa.field("note", pa.string()),
        pa.field("level", pa.int64()),
    ]
)
EMPTY = [{"question_id": f"a{i}", "turns": [f"Add {i} and 5."], "note": None, "level": None} for i in range(3)]
FILLED = [{"question_id": f"b{i}", "turns": [f"Add {i} and 6."], "note": "by hand", "level": 2} for i in range(3)]

READ = """
import json, sys
from datasets import load_dataset
data = load_dataset("parquet", data_files=sys.argv[1:], split="train")
print(json.dumps([{k: str(v) for k, v in data.features.items()}, data.to_list()]))
"""


@pytest.mark.slow
def test_a_column_that_is_empty_in_one_file_loads_with_another_in_either_order(tmp_path: Path) -> None:
    from tests.hub.fakehub import FakeHub

    shards = {tmp_path / "shard0.parquet": EMPTY, tmp_path / "shard1.parquet": FILLED}
    for path, rows in shards.items():
        write_table(path, pa.Table.from_pylist(rows, schema=SCHEMA))
    schemas = [pq.read_schema(path) for path in shards]
    assert schemas[0] == schemas[1] == SCHEMA
    assert not any(has_null_type(field.type) for field in schemas[0])
    place = Workplace(tmp_path / "home", FakeHub(url="http://127.0.0.1:9"))
    read = []
    for order in (list(shards), list(shards)[::-1]):
        features, rows = json.loads(place.python(READ, *map(str, order)).splitlines()[-1])
        assert rows == [row for path in order for row in shards[path]], "null is null, and 2 is no float"
        read.append(features)
    assert read[0] == read[1]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "question_id": st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
            "turns": st.none() | st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), max_size=3),
            "note": st.none() | st.just("x"),
            "level": st.none() | st.integers(-5, 5),
        }
    ),
    max_size=8,
)


@given(rows=ROWS)
def test_what_is_written_is_read_and_the_types_never_depend_on_the_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("written") / "rows.parquet"
    write_table(path, pa.Table.from_pylist(rows, schema=SCHEMA))
    assert pq.read_schema(path) == SCHEMA
    assert pq.read_table(path).to_pylist() == rows


def test_no_foreign_metadata_is_written_and_a_null_where_none_may_be_is_refused(tmp_path: Path) -> None:
    schema = SCHEMA.with_metadata({"huggingface": "{}"})
    with parquet_writer(tmp_path / "a.parquet", schema) as writer:
        writer.write_table(pa.Table.from_pylist(FILLED, schema=SCHEMA))
    assert pq.read_schema(tmp_path / "a.parquet").metadata is None
    held = dict.fromkeys(SPLIT_SCHEMA.names, "") | {"turns": [], "record_ids": [], "multiturn": False}
    row = {**held, "num_tokens": 1, "pad_tokens": 0, "category": None}
    with pytest.raises(pa.ArrowInvalid, match="category"):
        write_table(tmp_path / "b.parquet", pa.Table.from_pylist([row], schema=SPLIT_SCHEMA))
    assert not (tmp_path / "b.parquet").exists(), "not even half of it"
