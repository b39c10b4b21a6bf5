from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import speedbench
from curation.errors import DistError
from curation.ids import turns_sha256
from curation.load import is_placeholder, load, placeholder_rows, read_config, resolve_dist
from curation.schema import SENTINEL, SPLIT_SCHEMA
from curation.store import write_checksums, write_table


def _row(question_id: str, *turns: str, category: str = "qa", status: str = "full") -> dict:
    return {
        "question_id": question_id,
        "category": category,
        "sub_category": "",
        "turns": list(turns),
        "source": "org/x",
        "src_id": question_id,
        "difficulty": "",
        "multiturn": len(turns) > 1,
        "text_status": status,
        "source_revision": "",
        "license": "mit",
        "template_id": "",
        "record_ids": [f"x:{question_id}"],
        "num_tokens": 3,
        "pad_tokens": 0,
        "turns_sha256": turns_sha256(turns),
    }


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    full = [_row("k1", "Where do swifts sleep?"), _row("k3", "Name a river.", "Another.")]
    held = [_row("k2", SENTINEL, category="stem", status="placeholder"), _row("k4", "first", SENTINEL)]
    write_table(folder / "data" / "qualitative.parquet", pa.Table.from_pylist(full, schema=SPLIT_SCHEMA))
    write_table(folder / "data" / "mixed.parquet", pa.Table.from_pylist(full + held, schema=SPLIT_SCHEMA))
    write_checksums(folder)
    return folder


def test_load_gives_a_dataset_of_the_published_columns(dist):
    data = speedbench.load(dist, "qualitative")
    assert data.column_names == SPLIT_SCHEMA.names
    assert data[1]["turns"] == ["Name a river.", "Another."]


def test_placeholders_are_refused_with_their_number_and_categories(dist):
    with pytest.raises(DistError, match=r"2 of 4 rows of mixed are placeholders \(qa 1, stem 1; first k2\)"):
        load(dist, "mixed")
    assert len(load(dist, "mixed", allow_placeholders=True)) == 4


def test_a_sentinel_counts_in_any_turn_and_only_as_a_whole_turn_or_before_a_template():
    assert is_placeholder(["fine", SENTINEL])
    assert is_placeholder([f"{SENTINEL}\n\nTranslate {{text}}"]), "as NVIDIA's rows have it"
    assert not is_placeholder([f"What does '{SENTINEL}' mean?"])
    assert not is_placeholder([SENTINEL.lower()])


def test_a_changed_file_is_refused_by_its_digest(dist):
    path = dist / "data" / "qualitative.parquet"
    table = pa.Table.from_pylist([_row("k1", "Another text")], schema=SPLIT_SCHEMA)
    pq.write_table(table, path)
    with pytest.raises(DistError, match="SHA-256 differs"):
        read_config(dist, "qualitative")


def test_a_file_that_the_checksums_do_not_list_is_refused(dist):
    shutil.copy(dist / "data" / "qualitative.parquet", dist / "data" / "extra.parquet")
    with pytest.raises(DistError, match="not listed"):
        read_config(dist, "extra")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "not a folder, and not ORG/NAME@REVISION"),
        ("org/name", "a revision is always named"),
    ],
)
def test_a_dist_that_is_not_there_is_one_line(name, message):
    with pytest.raises(DistError, match=message):
        resolve_dist(name)


def test_the_folder_of_a_build_is_told_apart_from_its_dist(dist):
    with pytest.raises(DistError, match=r"name .*full"):
        resolve_dist(dist.parent)


def test_an_unknown_config_names_those_that_exist(dist):
    with pytest.raises(DistError, match="it has mixed, qualitative"):
        read_config(dist, "throughput_9k")


def test_a_broken_parquet_file_is_one_line(dist):
    (dist / "data" / "qualitative.parquet").write_bytes(b"PAR1 nothing")
    write_checksums(dist)
    with pytest.raises(DistError, match="not a readable parquet file"):
        read_config(dist, "qualitative")


def test_nvidias_layout_and_columns_are_read_too(tmp_path):
    folder = tmp_path / "theirs"
    table = pa.Table.from_pylist([_row("a" * 32, "Hello there")]).select(SPLIT_SCHEMA.names[:8])
    (folder / "qualitative").mkdir(parents=True)
    pq.write_table(table, folder / "qualitative" / "test-00000-of-00001.parquet")
    assert read_config(folder, "qualitative").column_names == SPLIT_SCHEMA.names[:8]
    assert placeholder_rows(table) == []
