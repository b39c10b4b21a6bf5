from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.diff import ConfigDiff, diff_dists
from curation.dist_cli import diff as diff_command
from curation.errors import DistError
from curation.ids import question_id, turns_sha256
from curation.schema import SENTINEL, SPLIT_SCHEMA
from curation.store import write_checksums, write_table
from curation.versions import STEPS, is_allowed_step, next_version


def _row(src_id: str, *turns: str, **more: Any) -> dict[str, Any]:
    source = more.get("source", "org/rivers")
    row = {
        "question_id": question_id("qualitative", source, src_id),
        "category": "qa",
        "sub_category": "",
        "turns": list(turns),
        "source": source,
        "src_id": src_id,
        "difficulty": "",
        "multiturn": len(turns) > 1,
        "text_status": "full",
        "source_revision": "",
        "license": "mit",
        "template_id": "",
        "record_ids": [f"rivers:{src_id}"],
        "num_tokens": 3,
        "pad_tokens": 0,
        "turns_sha256": turns_sha256(turns),
    }
    return row | more


def _held(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"turns": [SENTINEL] * len(row["turns"]), "text_status": "placeholder"}


def _dist(folder: Path, columns: tuple[str, ...] = (), card: str = "# A card\n", **configs: list[dict]) -> Path:
    folder.mkdir()
    for name, rows in configs.items():
        table = pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA)
        write_table(folder / "data" / f"{name}.parquet", table.select(list(columns) or SPLIT_SCHEMA.names))
    (folder / "README.md").write_text(card, "utf-8")
    write_checksums(folder)
    return folder


A, B, C = (
    _row("a", "Where does the Rhine rise?"),
    _row("b", "Name a lake.", "Another."),
    _row("c", "Why do rivers bend?"),
)


def _only(tmp_path: Path, old: list[dict], new: list[dict]) -> tuple[str, ConfigDiff]:
    found = diff_dists(_dist(tmp_path / "old", qualitative=old), _dist(tmp_path / "new", qualitative=new))
    (config,) = found.configs
    return found.step, config


def test_the_same_dist_asks_for_no_step(tmp_path):
    step, config = _only(tmp_path, [A, B], [A, B])
    assert step == config.step == "none"
    assert (config.old_rows, config.new_rows) == (2, 2)
    assert (config.added, config.removed, config.changed, config.renamed, config.columns) == ((),) * 5


def test_rows_that_come_or_go_ask_for_a_minor_step(tmp_path):
    step, config = _only(tmp_path, [A, B], [B, C])
    assert step == "minor"
    assert (config.added, config.removed) == ((C["question_id"],), (A["question_id"],))


def test_a_changed_text_asks_for_a_minor_step_and_names_its_columns(tmp_path):
    step, config = _only(tmp_path, [A, B], [_row("a", "Where does the Rhone rise?"), B])
    assert step == "minor"
    assert [(row.question_id, row.columns) for row in config.changed] == [
        (A["question_id"], ("turns", "turns_sha256")),
    ]


def test_a_text_that_changed_behind_a_digest_that_did_not_is_seen(tmp_path):
    step, config = _only(tmp_path, [A], [A | {"turns": ["Tampered with"]}])
    assert (step, config.changed[0].columns) == ("minor", ("turns",))


def test_a_withheld_text_that_changed_is_seen_by_its_digest(tmp_path):
    step, config = _only(tmp_path, [_held(A)], [_held(_row("a", "Other words"))])
    assert (step, config.changed[0].columns) == ("minor", ("turns_sha256",))


def test_filling_a_row_changes_its_status_and_not_its_text(tmp_path):
    _, config = _only(tmp_path, [_held(A)], [A])
    assert config.changed[0].columns == ("text_status",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(A, _row("a", *A["turns"], question_id="f" * 32), id="by its record"),
        pytest.param(A, _row("a-2", *A["turns"]), id="by its text"),
        pytest.param(_held(A), _held(_row("a-2", *A["turns"])), id="by the digest of its text"),
    ],
)
def test_a_row_under_a_new_id_asks_for_a_major_step(tmp_path, old, new):
    step, config = _only(tmp_path, [old, B], [new, B])
    assert step == "major"
    assert [(pair.old, pair.new) for pair in config.renamed] == [(old["question_id"], new["question_id"])]
    assert config.added == config.removed == ()


@pytest.mark.parametrize("column", ["src_id", "source"])
def test_another_src_id_under_the_same_question_id_is_a_change_of_ids(tmp_path, column):
    # What NVIDIA's v1.1 did to the throughput rows: a minor version that broke whoever looked rows up.
    step, config = _only(tmp_path, [A], [A | {column: "another"}])
    assert (step, config.changed[0].columns) == ("major", (column,))


def test_placeholders_without_digests_are_never_taken_for_one_text(tmp_path):
    columns = tuple(SPLIT_SCHEMA.names[:8])
    old = _dist(tmp_path / "old", columns, qualitative=[_held(A), _held(B)])
    new = _dist(tmp_path / "new", columns, qualitative=[_held(A), _held(C)])
    (config,) = diff_dists(old, new).configs
    assert (config.renamed, config.step) == ((), "minor")


def test_columns_that_come_go_or_change_type_ask_for_a_major_step(tmp_path):
    old = _dist(tmp_path / "old", tuple(n for n in SPLIT_SCHEMA.names if n != "license"), qualitative=[A])
    new = _dist(tmp_path / "new", tuple(n for n in SPLIT_SCHEMA.names if n != "pad_tokens"), qualitative=[A])
    wider = pa.Table.from_pylist([A], schema=SPLIT_SCHEMA.remove(14).set(13, pa.field("num_tokens", pa.int64(), False)))
    write_table(new / "data" / "qualitative.parquet", wider)
    write_checksums(new)
    found = diff_dists(old, new)
    assert found.configs[0].columns == ("+license", "~num_tokens", "-pad_tokens")
    assert found.step == "major"


def test_a_new_config_is_minor_and_a_config_that_is_gone_is_major(tmp_path):
    small = _dist(tmp_path / "small", qualitative=[A])
    large = _dist(tmp_path / "large", qualitative=[A], spec_bench=[B])
    assert diff_dists(small, large).step == "minor"
    assert diff_dists(large, small).step == "major"


def test_a_card_alone_asks_for_a_patch_and_is_named(tmp_path):
    old = _dist(tmp_path / "old", qualitative=[A])
    new = _dist(tmp_path / "new", qualitative=[A], card="# Another card\n")
    (new / ".gitattributes").write_text("*.parquet filter=lfs\n", "utf-8")
    found = diff_dists(old, new)
    assert (found.step, found.files) == ("patch", ("README.md",))
    assert found.changelog_entry("v1.0.1") == (
        "## 1.0.1\n\n- No row changed.\n- Files whose bytes changed: `README.md`.\n"
    )


def test_the_order_of_rows_is_no_change_of_rows(tmp_path):
    step, config = _only(tmp_path, [A, B], [B, A])
    assert (step, config.step) == ("patch", "none")


def test_a_question_id_that_stands_twice_is_refused(tmp_path):
    with pytest.raises(DistError, match=f"qualitative holds the question_id {A['question_id']} twice"):
        _only(tmp_path, [A, A], [A])


def test_a_folder_without_configs_is_no_dist(tmp_path):
    with pytest.raises(DistError, match="no parquet file of a config"):
        diff_dists(_dist(tmp_path / "old", qualitative=[A]), _dist(tmp_path / "new"))


def test_the_changelog_says_what_changed_and_how_much(tmp_path):
    edited = B | {"difficulty": "hard"}
    old = _dist(tmp_path / "old", qualitative=[A, B])
    new = _dist(tmp_path / "new", qualitative=[edited, C], spec_bench=[A])
    entry = diff_dists(old, new).changelog_entry("1.1.0")
    assert entry.splitlines()[:6] == [
        "## 1.1.0",
        "",
        f"- `qualitative`: 1 row added: {C['question_id']}.",
        f"- `qualitative`: 1 row removed: {A['question_id']}.",
        f"- `qualitative`: 1 row changed (difficulty in 1): {B['question_id']}.",
        "- `spec_bench`: a new config of 1 rows.",
    ]


def test_a_long_list_of_rows_is_cut_and_counted(tmp_path):
    rows = [_row(str(i), f"Question {i}") for i in range(1_234)]
    old, new = _dist(tmp_path / "old", qualitative=[A]), _dist(tmp_path / "new", qualitative=[A, *rows])
    entry = diff_dists(old, new).changelog_entry("1.1.0")
    assert "1,234 rows added" in entry
    assert "and 1,224 more (`speedbench diff` lists all)" in entry


texts = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["one", "two", "three"]), max_size=8)


@settings(max_examples=30, deadline=None)
@given(texts, texts)
def test_every_row_is_accounted_for_once_and_the_way_back_mirrors_the_way_there(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("diff")
    old, new = (
        _dist(folder / name, qualitative=[_row(i, f"{i} {text}") for i, text in rows.items()])
        for name, rows in (("old", before), ("new", after))
    )
    (there,), (back,) = diff_dists(old, new).configs, diff_dists(new, old).configs
    assert len(there.removed) == len(before.keys() - after.keys())
    assert len(there.added) == len(after.keys() - before.keys())
    assert len(there.changed) == sum(before[i] != after[i] for i in before.keys() & after.keys())
    assert (there.added, there.removed, there.changed) == (back.removed, back.added, back.changed)
    assert there.step == back.step == ("none" if before == after else "minor")


@pytest.mark.parametrize(
    ("step", "version"), [("none", "1.2.3"), ("patch", "1.2.4"), ("minor", "1.3.0"), ("major", "2.0.0")]
)
def test_versions_grow_by_the_step(step, version):
    assert next_version("1.2.3", step) == version
    assert is_allowed_step("1.2.3", version, step)
    assert [is_allowed_step("1.2.3", version, other) for other in STEPS] == [
        STEPS.index(other) <= STEPS.index(step) for other in STEPS
    ]
    assert is_allowed_step("1.9.0", "1.10.0", "minor"), "parts compare as numbers"


@pytest.mark.parametrize("version", ["1.2", "1.2.3-rc1", "01.2.3", "latest"])
def test_a_version_is_three_numbers(version):
    with pytest.raises(ValueError, match=r"must be X\.Y\.Z"):
        next_version(version, "minor")


def test_the_command_prints_counts_the_step_and_the_entry(tmp_path):
    old, new = _dist(tmp_path / "old", qualitative=[A]), _dist(tmp_path / "new", qualitative=[A, B])
    result = CliRunner().invoke(diff_command, [str(old), str(new), "--version", "1.1.0"])
    assert result.exit_code == 0
    assert "qualitative" in result.stdout
    assert "step: minor" in result.stdout
    assert "## 1.1.0" in result.stdout
    document = json.loads(CliRunner().invoke(diff_command, [str(old), str(new), "--json"]).stdout)
    assert document["step"] == "minor"
    assert document["configs"][0]["added"] == [B["question_id"]]
