from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dist_cli import export as export_command
from curation.errors import DistError
from curation.export import export_dist, json_line
from curation.folder import new_folder
from curation.ids import question_id, turns_sha256
from curation.schema import SENTINEL, SPLIT_SCHEMA
from curation.store import write_checksums, write_table


def _row(src_id: str, *turns: str, **more: Any) -> dict[str, Any]:
    row = {
        "question_id": question_id("qualitative", "org/bridges", src_id),
        "category": "reasoning",
        "sub_category": "spans",
        "turns": list(turns),
        "source": "org/bridges",
        "src_id": src_id,
        "difficulty": "easy",
        "multiturn": len(turns) > 1,
        "text_status": "full",
        "source_revision": "",
        "license": "mit",
        "template_id": "",
        "record_ids": [f"bridges:{src_id}"],
        "num_tokens": 3,
        "pad_tokens": 0,
        "turns_sha256": turns_sha256(turns),
    }
    return row | more


def _dist(folder: Path, columns: int = len(SPLIT_SCHEMA), **configs: list[dict]) -> Path:
    for name, rows in configs.items():
        table = pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA).select(SPLIT_SCHEMA.names[:columns])
        write_table(folder / "data" / f"{name}.parquet", table)
    write_checksums(folder)
    return folder


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]


ONE = _row("1", "Which bridge is the longest of the three?")
TWO = _row("2", "Name a stone bridge.", "And one of iron?")
HELD = _row("3", SENTINEL, text_status="placeholder")
THEIRS = _row("4", f"{SENTINEL}\n\nTranslate: {{question}}")


def test_messages_hold_the_user_turns_in_order_beside_the_shared_columns(tmp_path):
    export_dist(_dist(tmp_path / "dist", qualitative=[ONE, TWO], throughput_1k=[ONE]), tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["qualitative.jsonl", "throughput_1k.jsonl"]
    first, second = _lines(tmp_path / "out" / "qualitative.jsonl")
    assert second["messages"] == [
        {"role": "user", "content": "Name a stone bridge."},
        {"role": "user", "content": "And one of iron?"},
    ]
    assert {name: first[name] for name in ("question_id", "category", "source", "src_id", "multiturn")} == {
        "question_id": ONE["question_id"],
        "category": "reasoning",
        "source": "org/bridges",
        "src_id": "1",
        "multiturn": False,
    }


def test_turns_hold_the_texts(tmp_path):
    export_dist(_dist(tmp_path / "dist", qualitative=[TWO]), tmp_path / "out", shape="turns")
    (line,) = _lines(tmp_path / "out" / "qualitative.jsonl")
    assert line["turns"] == ["Name a stone bridge.", "And one of iron?"]
    assert "messages" not in line


def test_the_eight_columns_of_nvidias_set_are_enough(tmp_path):
    export_dist(_dist(tmp_path / "dist", columns=8, qualitative=[ONE]), tmp_path / "out")
    assert len(_lines(tmp_path / "out" / "qualitative.jsonl")) == 1


@pytest.mark.parametrize("held", [HELD, THEIRS])
def test_placeholders_are_refused_and_nothing_is_written(tmp_path, held):
    dist = _dist(tmp_path / "dist", qualitative=[ONE], throughput_1k=[ONE, held])
    with pytest.raises(DistError, match="1 of 2 rows of throughput_1k are placeholders"):
        export_dist(dist, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["dist"]


def test_a_partial_export_leaves_placeholders_out_and_counts_them(tmp_path):
    dist = _dist(tmp_path / "dist", qualitative=[ONE, HELD, THEIRS])
    (written,) = export_dist(dist, tmp_path / "out", allow_partial=True)
    assert (written.rows, written.left_out) == (1, 2)
    assert [line["src_id"] for line in _lines(tmp_path / "out" / "qualitative.jsonl")] == ["1"]


def test_placeholder_text_reaches_no_run_and_a_prompt_that_quotes_it_does(tmp_path):
    # Case 03: withheld in the first turn, in the second alone, and a prompt that merely speaks of it.
    rows = [
        _row("a", "Why did the packet boats lose their trade?", category="humanities"),
        _row("b", SENTINEL, category="stem"),
        _row("c", "Give Boyle's law.", "When does it not hold?", category="stem"),
        _row("d", "Three scales disagree. Which one do you trust?", SENTINEL, category="reasoning"),
        _row("e", f"A file says '{SENTINEL}'. Tell its owner what to do.", category="writing"),
    ]
    dist = _dist(tmp_path / "dist", qualitative=rows)
    with pytest.raises(DistError, match=rf"2 of 5 rows .*\(reasoning 1, stem 1; first {rows[1]['question_id']}\)"):
        export_dist(dist, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (written,) = export_dist(dist, tmp_path / "out", allow_partial=True)
    assert (written.rows, written.left_out, written.short) == (3, 2, "reasoning 0 of 1, stem 1 of 2")
    assert [line["src_id"] for line in _lines(tmp_path / "out" / "qualitative.jsonl")] == ["a", "c", "e"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (_row("1", "Fine", "  \n"), "holds a blank turn"),
        (_row("1"), "holds a blank turn"),
        (_row("1", "Fine", question_id="q1"), "question_id of 32 characters"),
    ],
)
def test_a_row_that_the_tools_would_choke_on_is_named(tmp_path, row, message):
    with pytest.raises(DistError, match=f"qualitative: row .*{message}"):
        export_dist(_dist(tmp_path / "dist", qualitative=[row]), tmp_path / "out")


def test_only_the_configs_that_are_named_are_written(tmp_path):
    dist = _dist(tmp_path / "dist", qualitative=[ONE], throughput_1k=[HELD])
    export_dist(dist, tmp_path / "out", configs=["qualitative"])
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["qualitative.jsonl"]
    with pytest.raises(DistError, match="no config 'throughput_2k'"):
        export_dist(dist, tmp_path / "other", configs=["throughput_2k"])


def test_what_lies_at_the_target_is_never_written_over(tmp_path):
    dist = _dist(tmp_path / "dist", qualitative=[ONE])
    out = tmp_path / "out"
    out.mkdir()
    export_dist(dist, out)
    before = (out / "qualitative.jsonl").read_bytes()
    with pytest.raises(DistError, match="exists already"):
        export_dist(dist, out)
    assert (out / "qualitative.jsonl").read_bytes() == before


def test_a_folder_that_fails_half_way_leaves_no_trace(tmp_path):
    def broken() -> None:
        with new_folder(tmp_path / "out") as scratch:
            (scratch / "half").write_text("half", "utf-8")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        broken()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_one_line(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(DistError, match="cannot be written"), new_folder(tmp_path / "file" / "out"):
        pass


def test_a_folder_without_configs_is_no_dist(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DistError, match="no parquet file of a config"):
        export_dist(tmp_path / "empty", tmp_path / "out")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\n\r\x0b\x0c\x1c\x85\u2028\u2029"\\\t')))
def test_any_text_stands_on_one_line_whoever_splits_it(text):
    line = json_line({"content": text})
    assert line.splitlines() == [line[:-1]]
    assert json.loads(line) == {"content": text}


def test_the_command_writes_the_files_and_prints_their_counts(tmp_path):
    dist, out = _dist(tmp_path / "dist", qualitative=[ONE, HELD]), tmp_path / "out"
    result = CliRunner().invoke(export_command, [str(dist), "--out", str(out), "--allow-partial", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == [
        {
            "config": "qualitative",
            "file": "qualitative.jsonl",
            "rows": 1,
            "left_out": 1,
            "short": "reasoning 1 of 2",
        }
    ]
    shutil.rmtree(out)
    table = CliRunner().invoke(export_command, [str(dist), "--out", str(out), "--allow-partial"])
    assert "qualitative.jsonl" in table.stdout
