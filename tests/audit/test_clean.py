"""The cleaned corpus: the rest of the rows as they were, and nothing of the classes left."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.audit.conftest import Run
from tests.audit.corpora import FILLER, MILL, WIRE, hits_of, summary_of, write_benchmark, write_jsonl


def test_rows_go_by_full_path_and_row(tmp_path: Path, run_audit: Run) -> None:
    """Row 10: the same base name in two folders."""
    a = write_jsonl(tmp_path / "c" / "a" / "part-0.jsonl", [MILL, "first", "second"])
    b = write_jsonl(tmp_path / "c" / "b" / "part-0.jsonl", ["third", "fourth", WIRE])
    before = a.read_bytes().split(b"\n"), b.read_bytes().split(b"\n")
    assert run_audit(tmp_path / "c", options=["--clean", tmp_path / "clean"]).exit_code == 0
    clean = tmp_path / "clean"
    assert (clean / "a" / "part-0.jsonl").read_bytes() == b"\n".join(before[0][1:])
    assert (clean / "b" / "part-0.jsonl").read_bytes() == b"\n".join([*before[1][:2], b""])
    ledger = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    assert [(Path(r["file"]).parent.name, r["row"], r["question_id"]) for r in ledger] == [
        ("a", 1, "q0"),
        ("b", 3, "q1"),
    ]


def test_formats_stay_and_a_second_audit_finds_nothing(tmp_path: Path, run_audit: Run) -> None:
    corpus = tmp_path / "c"
    rows = [FILLER, MILL, f"{FILLER} {WIRE.upper()}", FILLER + "end"]
    write_jsonl(corpus / "x.jsonl", [*rows[:1], {"messages": [{"role": "user", "content": MILL}]}, *rows[2:]])
    (corpus / "y.jsonl.gz").write_bytes(gzip.compress((corpus / "x.jsonl").read_bytes()))
    (corpus / "z.jsonl.zst").write_bytes(pa.compress((corpus / "x.jsonl").read_bytes(), "zstd", asbytes=True))
    (corpus / "w.json").write_text(json.dumps([{"text": r} for r in rows]), "utf-8")
    (corpus / "t.txt").write_text(MILL, "utf-8")
    (corpus / "u.txt").write_text(FILLER, "utf-8")
    table = pa.table({"id": [1, 2, 3, 4], "text": rows}).replace_schema_metadata({"kept": "yes"})
    pq.write_table(table, corpus / "p.parquet", compression="gzip", row_group_size=2)
    options = ["--clean", tmp_path / "clean"]
    assert run_audit(corpus, options=options).exit_code == 0
    names = sorted(p.name for p in (tmp_path / "clean").iterdir())
    assert names == ["p.parquet", "u.txt", "w.json", "x.jsonl", "y.jsonl.gz", "z.jsonl.zst"]
    kept = pq.read_table(tmp_path / "clean" / "p.parquet")
    assert kept.column("id").to_pylist() == [1, 4]
    assert kept.schema.metadata[b"kept"] == b"yes"
    assert pq.ParquetFile(tmp_path / "clean" / "p.parquet").metadata.row_group(0).column(0).compression == "GZIP"
    assert run_audit(tmp_path / "clean", out="again").exit_code == 0
    assert hits_of(tmp_path / "again") == []
    assert summary_of(tmp_path / "again")["corpus"]["documents"] == 11


def test_only_the_named_classes_go(tmp_path: Path, run_audit: Run) -> None:
    corpus = write_jsonl(tmp_path / "c.jsonl", [MILL, WIRE.upper(), FILLER])
    run_audit(corpus, options=["--clean", tmp_path / "clean", "--classes", "format"])
    lines = (tmp_path / "clean" / "c.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == [MILL, FILLER]


def test_common_text_that_would_no_longer_be_common_goes_too(tmp_path: Path, run_audit: Run) -> None:
    """What is left must hold none of the classes, although a class depends on how many documents there are."""
    short = "How many sacks are there in total?"
    dist = write_benchmark(tmp_path / "d", [short, MILL])
    rows = [f"{short} {MILL}"] * 4 + [f"{FILLER} {short}"] * 3 + [FILLER]
    run_audit(write_jsonl(tmp_path / "c" / "c.jsonl", rows), dist=dist, options=["--clean", tmp_path / "clean"])
    run_audit(tmp_path / "clean", dist=dist, out="again")
    assert hits_of(tmp_path / "again") == []
    assert len((tmp_path / "clean" / "c.jsonl").read_text("utf-8").splitlines()) == 1


def test_a_folder_in_use_and_two_files_of_one_path_are_refused(tmp_path: Path, run_audit: Run) -> None:
    a, b = write_jsonl(tmp_path / "a" / "x.jsonl", [MILL]), write_jsonl(tmp_path / "b" / "x.jsonl", [MILL])
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").touch()
    assert "in use" in str(run_audit(a, options=["--clean", tmp_path / "used"]).exception)
    refusal = run_audit(a, b, out="two", options=["--clean", tmp_path / "clean"]).exception
    assert "would be written over" in str(refusal)
    assert not (tmp_path / "clean").exists()


def test_a_failure_leaves_no_half_corpus(tmp_path: Path, run_audit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from curation.audit import clean

    def fail(*_: object) -> None:
        raise OSError("disk full")

    write_jsonl(tmp_path / "c" / "a.jsonl", [FILLER])
    write_jsonl(tmp_path / "c" / "b.jsonl", [MILL])
    monkeypatch.setattr(clean, "_write_json", fail)
    assert isinstance(run_audit(tmp_path / "c", options=["--clean", tmp_path / "clean"]).exception, OSError)
    assert [p.name for p in tmp_path.iterdir() if "clean" in p.name] == []
