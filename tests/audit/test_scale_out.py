"""The same bytes however the work is cut, also after a kill; and a corpus in parts merges like one."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from curation.audit import plan as plans
from curation.audit.errors import AuditError
from curation.audit.index import load_index
from curation.audit.plan import make_plan
from curation.audit.reading import read_documents
from curation.audit.row_counts import RowCounts
from curation.audit.run import Job, run_units
from curation.kernels.audit_rules import ADAPTIVE
from speedbench.cli import cli
from tests.audit.conftest import Run
from tests.audit.corpora import FILLER, FOG, MILL, WIRE, hits_of, write_jsonl

RESULTS = ("hits.parquet", "summary.json", "report.html", "statement.md")


def digests(out: Path) -> dict[str, str]:
    return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in RESULTS}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for i in range(9):
        rows = [f"{FILLER * (j % 5)} {(MILL, WIRE, FOG)[j % 3] if j % 7 == i % 7 else ''} {j}" for j in range(40)]
        write_jsonl(tmp_path / "corpus" / f"part-{i}.jsonl", rows)
    return tmp_path / "corpus"


def test_one_two_and_eight_shards_give_the_same_bytes(tmp_path: Path, run_audit: Run, corpus: Path) -> None:
    """Row 19."""
    run_audit(corpus, out="whole")
    for n in (2, 8):
        for i in range(n):
            assert run_audit(corpus, out=f"{n}-{i}", options=["--shard", f"{i}/{n}"]).exit_code == 0
        folders = [str(tmp_path / f"{n}-{i}") for i in reversed(range(n))]
        assert CliRunner().invoke(cli, ["audit", "merge", *folders, "--out", str(tmp_path / f"m{n}")]).exit_code == 0
        merged = digests(tmp_path / f"m{n}")
        assert merged == digests(tmp_path / "whole")


def run_in_process(corpus: Path, dist: Path, out: Path, *options: str, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "speedbench", "audit", "run", str(corpus)]
    command += ["--benchmark", str(dist), "--out", str(out), *options]
    return subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.PIPE)


def test_hash_seed_workers_and_kernel_change_no_byte(tmp_path: Path, benchmark_dist: Path, corpus: Path) -> None:
    ways = (
        (("--workers", "1", "--kernel", "numpy"), "0"),
        (("--workers", "2", "--kernel", "numpy"), "1"),
        (("--workers", "1", "--kernel", "numba"), "2"),
    )
    seen = []
    for i, (options, seed) in enumerate(ways):
        process = run_in_process(corpus, benchmark_dist, tmp_path / str(i), *options, PYTHONHASHSEED=seed)
        assert process.communicate()[1] is not None
        assert process.returncode == 0
        seen.append(digests(tmp_path / str(i)))
    assert seen[0] == seen[1] == seen[2]


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, benchmark_dist: Path, corpus: Path, run_audit: Run) -> None:
    """Row 21: `kill -9` between units, then the same command again."""
    run_audit(corpus, out="whole")
    out = tmp_path / "killed"
    process = run_in_process(corpus, benchmark_dist, out, "--workers", "1")
    assert process.stderr is not None
    for _ in range(3):
        process.stderr.readline()  # a line a unit
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    done = {p.name: p.stat().st_mtime_ns for p in (out / "units").glob("*.json")}
    assert len(done) > 0
    (out / "units" / ".000008.parquet.99.tmp").write_bytes(b"half")
    assert run_audit(corpus, out="killed").exit_code == 0
    assert {name: (out / "units" / name).stat().st_mtime_ns for name in done} == done
    assert digests(out) == digests(tmp_path / "whole")


def test_a_killed_worker_is_a_refusal_that_names_the_unit_and_leaves_no_process(
    tmp_path: Path, benchmark_dist: Path, corpus: Path
) -> None:
    index = load_index(benchmark_dist, ADAPTIVE, tmp_path / "cache")
    plan = make_plan([str(corpus)], {"rule": "adaptive", "text": []})
    out = tmp_path / "out"
    stuck = corpus / "part-4.jsonl"
    stuck.unlink()
    os.mkfifo(stuck)  # whoever opens it waits for a writer that never comes

    def kill_the_last() -> None:
        while len(list(out.glob("units/*.json"))) < 8:
            threading.Event().wait(0.02)
        for child in multiprocessing.active_children():
            child.kill()

    killer = threading.Thread(target=kill_the_last)
    killer.start()
    with pytest.raises(AuditError, match=r"unit 5 of .*part-4\.jsonl"):
        run_units(
            Job(plan, str(tmp_path / "cache" / "audit" / index.key[:32]), str(out), False), plan.units, 2, index.overlap
        )
    killer.join()
    assert multiprocessing.active_children() == []


def test_a_missing_unit_and_a_foreign_shard_are_refused(tmp_path: Path, run_audit: Run, corpus: Path) -> None:
    run_audit(corpus, out="a", options=["--shard", "0/2"])
    run_audit(corpus / "part-0.jsonl", out="b", options=["--shard", "0/2"])

    def merge(*names: str) -> str:
        folders = [str(tmp_path / name) for name in names]
        return str(CliRunner().invoke(cli, ["audit", "merge", *folders, "--out", str(tmp_path / "m")]).exception)

    assert "4 of 9 units are missing (first 1, 3, 5, 7)" in merge("a")
    assert "another audit" in merge("a", "b")


@pytest.mark.parametrize("size", [37, 64, 100, 1000, 10**6])
def test_byte_ranges_hold_every_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(plans, "UNIT_BYTES", size)
    path = tmp_path / "c.jsonl"
    lines = [f'{{"text": "{"é" * (i % 50)}{i}"}}' for i in range(60)]
    path.write_text("\n".join(lines), "utf-8")
    plan = make_plan([str(path)], {})
    texts, rows = [], 0
    for unit in plan.units:
        counts = RowCounts()
        for documents in read_documents(plan.files[0], unit, [], counts):
            texts += documents.texts.to_pylist()
        rows += counts.rows
    assert texts == ["é" * (i % 50) + str(i) for i in range(60)]
    assert rows == 60


def test_rows_count_through_the_ranges_of_a_file(
    tmp_path: Path, run_audit: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "UNIT_BYTES", 500)
    run_audit(write_jsonl(tmp_path / "c.jsonl", [FILLER] * 30 + [MILL] + [FILLER] * 5), options=["--workers", "1"])
    assert [h["row"] for h in hits_of(tmp_path / "out")] == [31]
