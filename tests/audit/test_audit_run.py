"""`speedbench audit run` on files of every kind: what is read, what is found, and what is said of the rest."""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from curation.schema import SENTINEL
from speedbench.cli import cli
from tests.audit.conftest import Run
from tests.audit.corpora import FILLER, FOG, MILL, WIRE, hits_of, summary_of, write_benchmark, write_jsonl


def found(tmp_path: Path, out: str = "out") -> list[tuple[Any, ...]]:
    return [(Path(h["file"]).name, h["row"], h["question_id"], h["class"]) for h in hits_of(tmp_path / out)]


def test_a_hit_names_file_row_id_question_and_the_words(tmp_path: Path, run_audit: Run) -> None:
    """Case 17, with texts of our own."""
    words = MILL.split()
    wrapped = "\n".join(" ".join(words[i : i + 6]) for i in range(0, len(words), 6))
    rows = [
        {"doc_id": "a", "text": f"{FILLER}\n\n{MILL}\n\n{FILLER}"},
        {"doc_id": "b", "text": wrapped},
        {"doc_id": "c", "text": f"{FILLER * 20} {WIRE} {FILLER * 20}"},
        {"doc_id": "d", "text": "\u201c" + WIRE.upper().replace(" ", "  ", 7).replace(" ", "\u00a0", 3) + "\u201d"},
        {"doc_id": "e", "text": MILL.replace("working day", "working-day").replace(" and ", ", and ")},
        {
            "doc_id": "f",
            "text": "How many sacks of flour leave a mill in summer, if it mills less before feasts?",
        },
        {"doc_id": "g", "text": f"{FILLER} {' '.join(words[:8])} {FILLER}"},
        {"doc_id": "h", "text": FILLER},
    ]
    corpus = write_jsonl(tmp_path / "corpus.jsonl", rows)
    assert run_audit(corpus).exit_code == 0
    hits = hits_of(tmp_path / "out")
    assert [(h["document_id"], h["question_id"]) for h in hits] == [
        ("a", "q0"), ("b", "q0"), ("c", "q1"), ("d", "q1"), ("e", "q0"),
    ]  # fmt: skip
    assert [h["class"] for h in hits] == ["exact", "exact", "exact", "format", "format"]
    for hit in hits:
        text = rows["abcdefgh".index(hit["document_id"])]["text"]
        assert hit["snippet"][hit["snippet_begin"] : hit["snippet_end"]] == text[hit["begin"] : hit["end"]]
    counts = summary_of(tmp_path / "out")
    assert (counts["corpus"]["documents"], counts["benchmark"]["prompts"]) == (8, 3)


def test_the_thirteen_gram_preset_gives_the_hits_of_case_17(tmp_path: Path, run_audit: Run) -> None:
    words = MILL.split()
    rows = [
        {"id": "yes", "text": " ".join(words[4:17]) + " zebra"},
        {"id": "no", "text": " ".join(words[4:16]) + " zebra"},
    ]
    run_audit(write_jsonl(tmp_path / "c.jsonl", rows), options=["--rule", "lm-eval"])
    assert [h["document_id"] for h in hits_of(tmp_path / "out") if h["class"] == "ngram"] == ["yes"]


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "jsonl.bz2", "parquet", "txt", "json"])
def test_formats(tmp_path: Path, run_audit: Run, kind: str) -> None:
    path = tmp_path / f"corpus.{kind}"
    texts = [FILLER, f"{FILLER} {MILL}"]
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts}), path)
    elif kind == "txt":
        path.write_text("\n".join(texts), "utf-8")
    elif kind == "json":
        path.write_text(json.dumps([{"text": t} for t in texts], indent=1), "utf-8")
    else:
        raw = write_jsonl(tmp_path / "plain", texts).read_bytes()
        pack = {"gz": gzip.compress, "bz2": bz2.compress, "zst": lambda b: pa.compress(b, "zstd", asbytes=True)}
        path.write_bytes(pack[kind.split(".")[1]](raw) if "." in kind else raw)
    assert run_audit(path).exit_code == 0
    assert found(tmp_path) == [(path.name, 1 if kind == "txt" else 2, "q0", "exact")]


@pytest.mark.parametrize(
    "row",
    [
        {"content": MILL},
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": MILL}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": MILL}, {"type": "image_url"}]}]},
        {"conversations": [{"from": "human", "value": MILL}, {"from": "gpt", "value": "Many."}]},
        {"instruction": MILL, "input": "", "output": "Many."},
        {"prompt": MILL},
        MILL,
    ],
)
def test_the_text_of_a_row_is_found(tmp_path: Path, run_audit: Run, row: Any) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    run_audit(path)
    assert [h[2] for h in found(tmp_path)] == ["q0"]


def test_messages_in_parquet_are_found(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"messages": [{"role": "user", "content": FILLER}, {"role": "assistant", "content": MILL}]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    run_audit(tmp_path / "c.parquet")
    assert [h[2] for h in found(tmp_path)] == ["q0"]


def test_a_named_text_is_read_at_any_depth_and_nothing_else(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"text": WIRE, "data": {"turns": [{"say": FILLER}, {"say": MILL}]}}]
    run_audit(write_jsonl(tmp_path / "c.jsonl", rows), options=["--text", "data.turns.say"])
    assert [h[2] for h in found(tmp_path)] == ["q0"]


def test_folders_globs_and_addresses_are_read(tmp_path: Path, run_audit: Run) -> None:
    import fsspec

    write_jsonl(tmp_path / "c" / "a" / "one.jsonl", [MILL])
    write_jsonl(tmp_path / "c" / "b" / "two.jsonl", [FILLER, WIRE])
    (tmp_path / "c" / "notes.bin").write_bytes(b"\x00")
    run_audit(tmp_path / "c", out="folder")
    run_audit(f"{tmp_path}/c/*/*.jsonl", out="glob")
    with fsspec.open("memory://corpus/a/one.jsonl", "wb") as stream:
        stream.write((tmp_path / "c" / "a" / "one.jsonl").read_bytes())
    run_audit("memory://corpus", out="remote")
    assert found(tmp_path, "folder") == found(tmp_path, "glob")
    assert [h[2] for h in found(tmp_path, "folder")] == ["q0", "q1"]
    assert found(tmp_path, "remote") == [("one.jsonl", 1, "q0", "exact")]
    passed = summary_of(tmp_path / "folder")["corpus"]["passed_over"]
    assert [(Path(p["file"]).name, p["reason"]) for p in passed] == [("notes.bin", "unknown format")]


def test_every_row_that_is_no_document_is_counted_with_its_reason(tmp_path: Path, run_audit: Run) -> None:
    """Row 12: unread is not clean."""
    lines = [
        json.dumps({"text": MILL}), '{"text": "broken', "", json.dumps({"text": "！！！"}), json.dumps({"n": 3}),
        json.dumps({"text": "half a pair \ud835 here " + WIRE}), json.dumps({"text": None}), json.dumps({"text": "  "}),
    ]  # fmt: skip
    (tmp_path / "c.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    pq.write_table(pa.table({"text": ["", None, FILLER]}), tmp_path / "p.parquet")
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "n.parquet")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(json.dumps({"text": FILLER}).encode() * 99)[:-20])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing of the kind")
    run_audit(*(tmp_path / n for n in ("c.jsonl", "p.parquet", "n.parquet", "cut.jsonl.gz", "bad.parquet")))
    by_file = {Path(e["file"]).name: e for e in summary_of(tmp_path / "out")["corpus"]["by_file"]}
    assert by_file["c.jsonl"]["skipped"] == {
        "not JSON": [1, 2], "blank line": [1, 3], "empty": [2, 4], "no text": [2, 5],
    }  # fmt: skip
    assert by_file["c.jsonl"]["repaired"] == {"lone surrogate": [1, 6]}
    assert by_file["p.parquet"]["skipped"] == {"empty": [1, 1], "no text": [1, 2]}
    assert by_file["n.parquet"]["skipped"] == {"no text column": [2, 1]}
    assert any(r.startswith("unreadable") for r in by_file["cut.jsonl.gz"]["skipped"])
    assert any(r.startswith("unreadable") for r in by_file["bad.parquet"]["skipped"])
    for entry in by_file.values():
        read = entry["documents"] + sum(n for r, (n, _) in entry["skipped"].items() if not r.startswith("unreadable"))
        assert read == entry["rows"]
    assert [h[2] for h in found(tmp_path)] == ["q0", "q1"]


def test_bytes_that_are_not_utf8_are_read_with_replacement_and_said_so(tmp_path: Path, run_audit: Run) -> None:
    raw = pa.array([MILL.encode() + b" \xff\xfe", FILLER.encode()], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(pa.table({"text": texts}), tmp_path / "c.parquet")
    run_audit(tmp_path / "c.parquet")
    assert found(tmp_path) == [("c.parquet", 1, "q0", "exact")]
    assert summary_of(tmp_path / "out")["corpus"]["by_file"][0]["repaired"] == {"not UTF-8": [1, 1]}


def test_prompts_that_cannot_be_audited_are_listed_and_not_clean(tmp_path: Path, run_audit: Run) -> None:
    dist = write_benchmark(tmp_path / "d", [MILL, "Go on", {"turns": [SENTINEL]}, {"turns": [f"{SENTINEL}\n\n{WIRE}"]}])
    run_audit(write_jsonl(tmp_path / "c.jsonl", ["Go on", WIRE]), dist=dist)
    benchmark = summary_of(tmp_path / "out")["benchmark"]
    assert benchmark["not_auditable"] == {"placeholder": 2, "too_short": 1}
    assert (benchmark["prompts"], benchmark["auditable_prompts"]) == (4, 1)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Prompts that cannot be audited" in page
    assert "too few tokens" in page
    assert "3 prompts could not be audited" in (tmp_path / "out" / "statement.md").read_text("utf-8")


def test_each_turn_is_looked_for_and_the_same_text_in_two_configs_is_two_rows(tmp_path: Path, run_audit: Run) -> None:
    dist = write_benchmark(tmp_path / "d", [{"turns": [MILL, WIRE]}])
    write_benchmark(dist, [{"turns": [WIRE], "question_id": "other"}], config="qualitative_20")
    run_audit(write_jsonl(tmp_path / "c.jsonl", [WIRE]), dist=dist)
    rows = [(h["config"], h["question_id"], h["turn"]) for h in hits_of(tmp_path / "out")]
    assert rows == [("qualitative", "q0", 1), ("qualitative_20", "other", 0)]


def test_a_phrase_of_many_documents_is_common_text(tmp_path: Path, run_audit: Run) -> None:
    dist = write_benchmark(tmp_path / "d", ["How many sacks are there in total?", MILL])
    run_audit(
        write_jsonl(tmp_path / "c.jsonl", [f"{FILLER}{i} How many sacks are there in total?" for i in range(6)]),
        dist=dist,
    )
    assert {(h["class"], h["class_alone"]) for h in hits_of(tmp_path / "out")} == {("common_text", "exact")}


def test_a_document_of_one_huge_line_is_scanned_in_pieces(tmp_path: Path, run_audit: Run) -> None:
    """Row 21; a prompt across the border of two pieces is one hit with the right span."""
    piece = 1 << 20
    grey = "grey " * ((piece - 40) // 5)
    text = f"{grey}{MILL} {'stone ' * (piece // 4)}{FOG} {'x' * piece} {WIRE}"
    run_audit(write_jsonl(tmp_path / "c.jsonl", [text, FILLER]))
    hits = {h["question_id"]: h for h in hits_of(tmp_path / "out")}
    assert {name: h["class"] for name, h in hits.items()} == {"q0": "exact", "q1": "exact", "q2": "exact"}
    for name, prompt in (("q0", MILL), ("q1", WIRE), ("q2", FOG)):
        assert text[hits[name]["begin"] : hits[name]["end"]] == prompt


def test_fail_on_and_json(tmp_path: Path, run_audit: Run) -> None:
    corpus = write_jsonl(tmp_path / "c.jsonl", [MILL])
    assert run_audit(corpus, options=["--fail-on", "exact"]).exit_code == 3
    result = run_audit(corpus, options=["--fail-on", "near", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["by_class"]["exact"]["documents"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["{c}", "--shard", "2/2"], "from 0 to N - 1"),
        (["{c}", "--clean", "{t}/clean", "--shard", "0/2"], "audit merge"),
        (["{c}", "--semantic"], "not calibrated"),
        (["{c}", "--classes", "exact,odd"], "'odd' is none of"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    tmp_path: Path, benchmark_dist: Path, arguments: list[str], message: str
) -> None:
    corpus = write_jsonl(tmp_path / "c.jsonl", [MILL])
    filled = [a.format(c=corpus, t=tmp_path) for a in arguments]
    result = CliRunner().invoke(
        cli, ["audit", "run", *filled, "--benchmark", str(benchmark_dist), "--out", str(tmp_path / "o")]
    )
    assert result.exit_code != 0
    told = str(result.exception) if result.exit_code == 1 else result.output
    assert message in told
    assert "Traceback" not in result.output


def test_another_corpus_does_not_go_into_a_folder_in_use(tmp_path: Path, run_audit: Run) -> None:
    assert run_audit(write_jsonl(tmp_path / "a.jsonl", [MILL])).exit_code == 0
    result = run_audit(write_jsonl(tmp_path / "b.jsonl", [MILL, WIRE]))
    assert "holds a run over other files" in str(result.exception)


def test_an_index_is_built_once_and_again_for_another_benchmark_or_rule(
    tmp_path: Path, run_audit: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Row 20: an index of another benchmark, version or limit is another index."""
    caplog.set_level("INFO")
    corpus = write_jsonl(tmp_path / "c.jsonl", [MILL])
    run_audit(corpus, out="1")
    run_audit(corpus, out="2")
    run_audit(corpus, out="3", options=["--rule", "lm-eval"])
    run_audit(corpus, out="4", dist=write_benchmark(tmp_path / "d", [WIRE]))
    assert sum("index of" in r.message for r in caplog.records) == 3
    assert len(list((tmp_path / "cache" / "audit").iterdir())) == 3


def test_an_audit_loads_no_library_that_it_does_not_need(tmp_path: Path, benchmark_dist: Path) -> None:
    """A small corpus takes a second, of which these would take more than half. (pyarrow loads pandas by itself.)"""
    corpus = write_jsonl(tmp_path / "c.jsonl", [MILL, FILLER, FOG])
    code = (
        "import sys; from speedbench.cli import cli; "
        f"cli({['audit', 'run', str(corpus), '--benchmark', str(benchmark_dist), '--out', str(tmp_path / 'o')]!r}, "
        "standalone_mode=False); "
        "print([m for m in ('datasets', 'matplotlib', 'faiss', 'numba', 'ray', 'fsspec', 'requests', "
        "'huggingface_hub', 'pydantic') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[-1] == "[]"
