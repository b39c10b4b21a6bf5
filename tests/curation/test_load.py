from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import speedbench
from curation.errors import DistError
from curation.ids import turns_sha256
from curation.load import is_placeholder, load, placeholder_rows, read_config, read_manifest, resolve_dist
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


def _with(folder: Path, **columns: pa.Array) -> Path:
    """Lay a DIST of two rows into a folder, some of its columns replaced; None takes one away."""
    rows = [_row("k1", "Where do swifts sleep?"), _row("k3", "Name a river.", "Another.")]
    table = pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA)
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    (folder / "data").mkdir(parents=True)
    pq.write_table(table, folder / "data" / "qualitative.parquet")
    return folder


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("turns", pa.array([["a"], None], pa.list_(pa.string())), "row 2: its turns is null"),
        ("turns", pa.array([["a", None], ["b"]]), "row 1: its turns is null or holds null"),
        ("turns", pa.array(["a", "b"]), "column 'turns' is of type string"),
        ("turns", pa.nulls(2), "column 'turns' is of type null"),
        ("turns", pa.array([[1], [2]]), "column 'turns' is of type list<.*int64>"),
        ("category", pa.array([1, 2]), "column 'category' is of type int64"),
        ("question_id", pa.array(["k1", None]), "row 2: its question_id is null"),
        ("src_id", pa.nulls(2, pa.string()), "row 1: its src_id is null"),
    ],
)
def test_a_malformed_column_is_refused_with_file_and_row(tmp_path, column, values, said):
    with pytest.raises(DistError, match=rf"qualitative\.parquet: {said}.*; fetch the DIST again"):
        read_config(_with(tmp_path / "d", **{column: values}), "qualitative")


def test_columns_that_are_null_in_other_sets_and_columns_that_we_do_not_know_are_read(tmp_path):
    folder = _with(tmp_path / "d", sub_category=pa.nulls(2), difficulty=pa.nulls(2, pa.string()))
    path = folder / "data" / "qualitative.parquet"
    pq.write_table(pq.read_table(path, partitioning=None).append_column("more", pa.nulls(2)), path)
    assert read_config(folder, "qualitative").column("more").null_count == 2


def test_turns_of_another_list_type_and_dictionary_texts_are_read(tmp_path):
    turns = pa.array([["a"], ["b"]], pa.large_list(pa.large_string()))
    folder = _with(tmp_path / "d", turns=turns, category=pa.array(["qa", "qa"]).dictionary_encode())
    assert len(read_config(folder, "qualitative")) == 2


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "d" / "data" / "qualitative.parquet").mkdir(parents=True)
    with pytest.raises(DistError, match="a folder where a parquet file belongs"):
        read_config(tmp_path / "d", "qualitative")


def test_shards_of_different_columns_are_refused(tmp_path):
    data = _with(tmp_path / "d") / "data"
    first = data / "qualitative-00000-of-00002.parquet"
    (data / "qualitative.parquet").rename(first)
    table = pq.read_table(first, partitioning=None)
    pq.write_table(table.drop_columns(["license"]), data / "qualitative-00001-of-00002.parquet")
    with pytest.raises(DistError, match="its files differ in columns"):
        read_config(tmp_path / "d", "qualitative")


def test_a_checksum_file_that_is_none_is_refused(dist):
    (dist / "SHA256SUMS").write_bytes(b"\xff\xfe garbage\n")
    with pytest.raises(DistError, match="SHA256SUMS: line 1: not a line of sha256sum"):
        read_config(dist, "qualitative")


def test_a_manifest_that_is_no_json_is_refused(dist):
    (dist.parent / "manifest.json").write_text("{")
    with pytest.raises(DistError, match=r"manifest\.json: not a manifest"):
        read_manifest(dist)


def test_a_whole_build_is_refused_with_the_folders_to_name_instead(tmp_path, dist):
    (dist.parent / "pool").mkdir()
    shutil.copyfile(dist / "data" / "mixed.parquet", dist.parent / "pool" / "candidates.parquet")
    with pytest.raises(DistError, match=r"this is a build; name .*full \(all text\) or .*dist"):
        resolve_dist(dist.parent)
