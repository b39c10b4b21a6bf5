"""Every fault is found in one pass, with its file and row; a build that is right has none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from curation.ids import turns_sha256
from curation.schema import SENTINEL, SPLIT_SCHEMA
from curation.store import write_json
from curation.verify.registry import CHECKS, Verification, verify_dist
from curation.verify.rows import permits
from sources.registry import SOURCES
from tests.release.tiny_build import BUCKET, ROWS, remake, seal, tiny_build

QUALITATIVE = "data/qualitative.parquet"
THROUGHPUT = f"throughput_{BUCKET}"


def said(found: Verification) -> list[str]:
    return [str(fault) for fault in found.faults]


def only_row(number: int, **values: Any) -> Callable[[dict[str, Any]], None]:
    """Change one row, the first of all being number 0."""
    seen: dict[str, int] = {}

    def change(row: dict[str, Any]) -> None:
        if seen.setdefault(row["src_id"], len(seen)) == number:
            row.update(values)

    return change


def rows_of(dist: Path, config: str = "qualitative") -> list[dict[str, Any]]:
    return pq.read_table(dist / "data" / f"{config}.parquet").to_pylist()


def test_a_right_build_has_no_fault_and_every_check_was_made(dist: Path) -> None:
    found = verify_dist(dist)
    assert said(found) == []
    assert found.made == tuple(check.name for check in CHECKS)
    assert found.left_out == ()


def test_a_revision_of_the_hub_lies_alone_and_is_checked_as_far_as_that_goes(dist: Path, tmp_path: Path) -> None:
    alone = tmp_path / "snapshot"
    shutil.copytree(dist, alone)
    (alone / ".gitattributes").write_text("*.parquet filter=lfs\n")
    found = verify_dist(alone, is_local=True)
    assert said(found) == []
    assert dict(found.left_out) == {
        "counts": "there is no manifest.json beside it",
        "full": "there is no manifest.json beside it",
    }
    (line,) = said(verify_dist(alone))
    assert line.startswith("sources: ../manifest.json: absent")


# ---- files and digests


def test_leftover_files_scripts_and_odd_names_are_faults(dist: Path) -> None:
    (dist / "tiny.py").write_text("raise SystemExit")
    (dist / "data" / "qualitative-old.parquet").write_bytes((dist / QUALITATIVE).read_bytes())
    (dist / "notes:1.txt").write_text("x")
    (dist / ".cache.tmp").write_text("x")
    found = [line for line in said(verify_dist(dist)) if line.startswith("files:")]
    assert [line.split(": ")[1] for line in found] == [
        ".cache.tmp",
        "data/qualitative-old.parquet",
        "notes:1.txt",
        "tiny.py",
    ]
    assert "loading script" in found[3]


def test_a_changed_file_differs_from_the_checksums_and_from_the_manifest(dist: Path) -> None:
    (dist / "LICENSE.md").write_text("all mine")
    lines = said(verify_dist(dist))
    assert [line for line in lines if "LICENSE.md" in line] == [
        "digests: LICENSE.md: its SHA-256 differs from SHA256SUMS; build it again",
        "digests: LICENSE.md: its SHA-256 differs from manifest.json; build it again",
    ]


def test_a_file_that_the_checksums_do_not_list_is_a_fault(dist: Path) -> None:
    sums = dist / "SHA256SUMS"
    sums.write_text("".join(line for line in sums.read_text().splitlines(True) if "LICENSE" not in line))
    assert "digests: LICENSE.md: not listed in SHA256SUMS; delete it, or build again" in said(verify_dist(dist))


@pytest.mark.parametrize("name", ["full/README.md", "ledger.parquet"])
def test_files_beside_the_dist_are_held_to_the_manifest_too(dist: Path, name: str) -> None:
    path = dist.parent / name
    path.write_bytes(path.read_bytes() + b" ")
    assert f"digests: ../{name}: its SHA-256 differs from manifest.json; build it again" in said(verify_dist(dist))
    path.unlink()
    assert f"digests: ../{name}: absent, though manifest.json lists it; build it again" in said(verify_dist(dist))


def test_a_file_that_is_gone_is_a_fault_of_files_and_of_digests(dist: Path) -> None:
    (dist / "LICENSE.md").unlink()
    lines = said(verify_dist(dist))
    assert "files: LICENSE.md: absent; build it again" in lines
    assert "digests: LICENSE.md: absent, though SHA256SUMS lists it; build it again" in lines
    assert any(line.startswith("card: README.md: license_link: names LICENSE.md, which is absent") for line in lines)


# ---- parquet


def test_what_older_versions_of_datasets_choke_on_is_a_fault(dist: Path) -> None:
    path = dist / QUALITATIVE
    table = pq.read_table(path)
    features = {"info": {"features": {"turns": {"_type": "List"}}}}
    table = table.replace_schema_metadata({"huggingface": json.dumps(features)})
    table = table.set_column(2, "sub_category", pa.nulls(len(table)))
    pq.write_table(table, path)
    seal(dist)
    lines = [line for line in said(verify_dist(dist)) if line.startswith(f"parquet: {QUALITATIVE}")]
    assert any("column 'sub_category' has the null type" in line for line in lines)
    assert any("'huggingface'" in line for line in lines)
    assert sum("column 'sub_category' is null" in line for line in lines) == 6, "one a row"


def test_a_null_is_named_by_its_row_also_inside_a_list(dist: Path) -> None:
    path = dist / QUALITATIVE
    rows = rows_of(dist)
    rows[1]["turns"] = ["what?", None]
    rows[4]["difficulty"] = None
    loose = pa.schema([pa.field(f.name, pa.list_(pa.string()) if f.name == "turns" else f.type) for f in SPLIT_SCHEMA])
    pq.write_table(pa.Table.from_pylist(rows, schema=loose), path)
    lines = said(verify_dist(dist, is_local=True))
    assert f"parquet: {QUALITATIVE}: row 1: column 'turns' is null; publish no null" in lines
    assert f"parquet: {QUALITATIVE}: row 4: column 'difficulty' is null; publish no null" in lines


def test_absent_foreign_and_retyped_columns_are_faults(dist: Path) -> None:
    path = dist / QUALITATIVE
    table = pq.read_table(path).drop_columns(["license"]).append_column("note", pa.array([""] * 6))
    at = table.schema.get_field_index("num_tokens")
    pq.write_table(table.set_column(at, "num_tokens", table.column("num_tokens").cast(pa.int64())), path)
    lines = "\n".join(said(verify_dist(dist)))
    assert "column 'license' is absent" in lines
    assert "column 'note' is none of ours" in lines
    assert "column 'num_tokens' has the type int64, not int32" in lines


def test_a_broken_file_is_one_fault_and_the_other_checks_go_on(dist: Path) -> None:
    (dist / QUALITATIVE).write_bytes(b"PAR1" + b"\0" * 90 + b"PAR1")
    remake(dist, THROUGHPUT, only_row(0, difficulty="brutal"))
    lines = said(verify_dist(dist))
    assert sum("not a readable parquet file" in line for line in lines) == 1
    assert any("difficulty 'brutal'" in line for line in lines)


# ---- rows


def test_ids_are_unique_and_are_what_they_are_made_of(dist: Path) -> None:
    first = rows_of(dist)[0]["question_id"]
    remake(dist, "qualitative", only_row(1, question_id=first))
    lines = [line for line in said(verify_dist(dist)) if line.startswith("ids:")]
    assert len(lines) == 2
    assert f"its question_id stands at {QUALITATIVE} row 0 ({first}) too" in lines[0]
    assert f"row 1 ({first}): its question_id is not the one of its config, source and src_id" in lines[1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"category": "cooking"}, "category 'cooking' is none of qualitative"),
        ({"difficulty": "brutal"}, "difficulty 'brutal'"),
        ({"multiturn": True}, "multiturn is True with 1 turns"),
        ({"num_tokens": 0}, "num_tokens 0"),
        ({"turns_sha256": "abc"}, "turns_sha256 is not 64 hex digits"),
        ({"record_ids": []}, "it names no record"),
        ({"record_ids": ["nowhere:1"]}, "its record is of 'nowhere', which is no registered source"),
        ({"record_ids": ["mmlu_pro:1"]}, "is not the one of its records"),
        ({"license": "cc0-1.0"}, "license 'cc0-1.0' is not the one of gsm8k (mit)"),
        ({"source_revision": "0" * 40}, "is not the one that was built from"),
    ],
)
def test_a_value_that_no_build_gives_is_named_by_its_row(dist: Path, values: dict[str, Any], message: str) -> None:
    remake(dist, "qualitative", only_row(0, **values))
    first = rows_of(dist)[0]["question_id"]
    lines = [line for line in said(verify_dist(dist)) if line.startswith("values:")]
    assert any(f"{QUALITATIVE}: row 0 ({first})" in line and message in line for line in lines), lines


@pytest.mark.parametrize(
    ("source", "good", "bad"), [("stackselect", "unknown", ""), ("repobench_python", "mit", "gpl-3.0")]
)
def test_a_row_states_a_licence_of_its_source(source: str, good: str, bad: str) -> None:
    assert permits(SOURCES[source].spec, good)
    assert not permits(SOURCES[source].spec, bad)


def test_rows_out_of_order_are_a_fault(dist: Path) -> None:
    path = dist / QUALITATIVE
    table = pq.read_table(path)
    pq.write_table(table.take([1, 0, 2, 3, 4, 5]), path)
    seal(dist)
    assert any("row 1" in line and "out of order" in line for line in said(verify_dist(dist)))


def test_placeholder_text_in_any_turn_of_a_full_row_is_found_and_the_same_words_elsewhere_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        ("math", "gsm8k", "k1", ["Why did tide mills go out of use, in one number?"]),
        ("math", "gsm8k", "k2", [SENTINEL]),
        ("reasoning", "mt_bench_101", "k3", ["Name Hooke's law.", "Where does it fail?"]),
        ("reasoning", "mt_bench_101", "k4", ["Two clocks differ. Which is right?", SENTINEL + "\n\n{question}"]),
        ("stem", "mmlu_pro", "k5", [f"What does a loader mean by '{SENTINEL}'?"]),
        ("stem", "hle", "k6", ["withheld as it should be"]),
    ]
    dist = tiny_build(tmp_path, {"qualitative": rows})
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(tmp_path / "lock.toml"))
    by_id = {row["question_id"]: row["src_id"] for row in rows_of(dist)}
    faults = [fault for fault in verify_dist(dist).faults if fault.check == "texts"]
    named = {src for fault in faults for i, src in by_id.items() if i in fault.row}
    assert named == {"k2", "k4"}
    assert {fault.message[:27] for fault in faults} == {"placeholder text in turn 0 ", "placeholder text in turn 1 "}


def test_the_licence_policy_holds_in_both_directions(dist: Path) -> None:
    rows = rows_of(dist)
    held = next(i for i, row in enumerate(rows) if row["text_status"] == "placeholder")
    free = next(i for i, row in enumerate(rows) if row["text_status"] == "full")
    full = pq.read_table(dist.parent / "full" / QUALITATIVE).to_pylist()[held]

    def change(row: dict[str, Any]) -> None:
        if row["question_id"] == rows[held]["question_id"]:
            row.update(text_status="full", turns=full["turns"])
        if row["question_id"] == rows[free]["question_id"]:
            row.update(text_status="placeholder", turns=[*row["turns"][1:], "FULL"])

    remake(dist, "qualitative", change)
    lines = [line for line in said(verify_dist(dist)) if line.startswith("texts:")]
    assert len(lines) == 3
    assert any("text of hle, which may not be published" in line for line in lines)
    assert any("a turn is not the sentinel alone" in line for line in lines)
    assert any("though every source of it may be published" in line for line in lines)


def test_text_that_is_not_the_one_of_its_digest_is_a_fault(dist: Path) -> None:
    remake(dist, "qualitative", only_row(0, turns=["Something else entirely"]))
    lines = said(verify_dist(dist))
    assert sum("its text is not the one of its turns_sha256" in line for line in lines) == 1


# ---- counts, lengths, full, sources


def test_cells_are_counted_against_the_recipe(dist: Path) -> None:
    for folder in (dist, dist.parent / "full"):
        path = folder / QUALITATIVE
        pq.write_table(pq.read_table(path).slice(1), path)
    seal(dist)
    (line,) = [line for line in said(verify_dist(dist)) if line.startswith("counts:")]
    assert line.startswith(f"counts: {QUALITATIVE}: math: 1 rows, the recipe asks for 2; ")


def test_a_config_that_the_recipe_does_not_know_and_one_that_is_absent_are_faults(dist: Path) -> None:
    (dist / "data" / f"{THROUGHPUT}.parquet").rename(dist / "data" / "throughput_9k.parquet")
    lines = [line for line in said(verify_dist(dist)) if line.startswith("counts:")]
    assert sum(f"data/{THROUGHPUT}.parquet: " in line for line in lines) == 4, "its three tiers, and the manifest"
    assert any("data/throughput_9k.parquet: the recipe asks for no such config" in line for line in lines)


def test_a_recipe_that_was_changed_afterwards_is_a_fault(dist: Path) -> None:
    path = dist.parent / "manifest.json"
    document = json.loads(path.read_text())
    document["recipe"]["selection"]["quota"] = 3
    write_json(path, document)
    assert any("not the one of its recipe_digest" in line for line in said(verify_dist(dist)))


def test_lengths_are_encoded_again_for_withheld_rows_too(dist: Path) -> None:
    def longer(row: dict[str, Any]) -> None:
        if row["text_status"] == "placeholder" or row["category"] == "mixed":
            row["turns"] = [row["turns"][0] + " on"] if row["turns"][0] != SENTINEL else row["turns"]
            if row["turns"][0] != SENTINEL:
                row["turns_sha256"] = turns_sha256(row["turns"])

    remake(dist, THROUGHPUT, longer, whole=True)
    lines = [line for line in said(verify_dist(dist)) if line.startswith("lengths:")]
    assert len(lines) == 1
    assert f"its text has {BUCKET + 1} tokens of o200k_base, num_tokens says {BUCKET}" in lines[0]


def test_a_row_of_another_length_than_its_bucket_is_a_fault(dist: Path) -> None:
    remake(dist, THROUGHPUT, only_row(0, num_tokens=BUCKET - 1), whole=True)
    lines = [line for line in said(verify_dist(dist)) if line.startswith("lengths:")]
    assert [f"num_tokens is {BUCKET - 1}, its bucket is {BUCKET}" in line for line in lines] == [True, False]


def test_dist_and_full_are_the_same_rows(dist: Path) -> None:
    remake(dist, "qualitative", only_row(0, sub_category="arithmetic"))
    assert any("sub_category differ in full/" in line for line in said(verify_dist(dist)))
    shutil.rmtree(dist.parent / "full")
    assert any(line.startswith("full: ../full: absent") for line in said(verify_dist(dist)))


@pytest.mark.parametrize("origin", ["mirror", "samples"])
def test_a_build_of_a_mirror_or_of_samples_is_good_locally_and_never_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    dist = tiny_build(tmp_path, origin=origin)
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(tmp_path / "absent.toml"))
    assert said(verify_dist(dist, is_local=True)) == []
    lines = said(verify_dist(dist))
    assert f"sources: ../manifest.json: built from {origin}" in lines[0]
    assert sum("not pinned" in line for line in lines) == 6, "every source that lacks a pin, each by name"


def test_another_revision_or_another_file_than_is_pinned_is_a_fault(dist: Path) -> None:
    path = dist.parent / "manifest.json"
    document = json.loads(path.read_text())
    document["sources"]["hle"]["revision"] = "f" * 40
    (name,) = document["sources"]["gsm8k"]["files"]
    document["sources"]["gsm8k"]["files"][name] = "0" * 64
    write_json(path, document)
    lines = said(verify_dist(dist))
    assert any("hle: built from 'ffffffffffff', pinned is '021a3d71f516'" in line for line in lines)
    assert any(f"gsm8k: {name} is not the file that is pinned" in line for line in lines)


def test_two_rows_that_hold_the_same_prompt_are_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A train leaves at noon and drives 80 kilometres an hour; when has it come 200 kilometres far from here?"
    rows = {config: list(listed) for config, listed in ROWS.items()}
    rows["qualitative"][:2] = [("math", "gsm8k", "g1", [text]), ("math", "gsm8k", "g2", [text.upper()])]
    dist = tiny_build(tmp_path, rows)
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(tmp_path / "lock.toml"))
    (line,) = said(verify_dist(dist))
    assert line.startswith(f"self audit: {QUALITATIVE}: row (")
    assert "two rows of one config hold the same prompt" in line


# ---- other sets


def test_a_set_with_speed_benchs_columns_alone_gets_the_checks_that_make_sense(dist: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    table = pq.read_table(dist / QUALITATIVE).select(SPLIT_SCHEMA.names[:8])
    (theirs / "qualitative").mkdir(parents=True)
    table = table.replace_schema_metadata({"huggingface": "{}"})
    pq.write_table(table, theirs / "qualitative" / "test-00000-of-00001.parquet")
    found = verify_dist(theirs, is_local=True)
    assert [fault.check for fault in found.faults] == ["card"], "it has no card here, and nothing else is wrong"
    assert {name for name, _ in found.left_out} == {"values", "texts", "counts", "lengths", "full", "self audit"}


# ---- the command


def test_the_command_prints_every_fault_and_exits_with_one_line(dist: Path) -> None:
    from curation.errors import DistError
    from curation.verify.cli import verify

    remake(dist, "qualitative", only_row(0, difficulty="brutal"))
    (dist / "x.py").write_text("")
    done = CliRunner().invoke(verify, [str(dist), "--json"])
    assert isinstance(done.exception, DistError)
    assert "faults; each line names the file, the row and the remedy" in str(done.exception)
    faults = json.loads(done.stdout)["faults"]
    assert {fault["check"] for fault in faults} >= {"files", "values", "card", "full"}
    assert all(fault["file"] and fault["message"] and fault["remedy"] for fault in faults)
    table = CliRunner().invoke(verify, [str(dist)])
    assert len(table.stdout.splitlines()) == len(faults) + 1, "one line a fault, below the header"


def test_the_command_says_that_a_right_build_is_good(dist: Path) -> None:
    from curation.verify.cli import verify

    done = CliRunner().invoke(verify, [str(dist)])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "good (files, digests" in done.stderr


@pytest.mark.parametrize(("license_id", "holds"), [("PSF-2.0", True), ("mit", True), ("GPL-3.0", False), ("", False)])
def test_a_row_of_code_names_the_permissive_licence_of_its_repository(license_id, holds):
    assert permits(SOURCES["repobench_python"].spec, license_id) is holds
    assert permits(SOURCES["mmath"].spec, "MIT")
    assert not permits(SOURCES["mmath"].spec, "Apache-2.0")
