"""Placeholder rows get the text that the build had, or none; each is found by its src_id and checked by its digest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

from curation import dist_cli
from curation.errors import DistError
from curation.fill.fill import FillReport, fill_dist
from curation.fill.reading import Unpinned, pinned
from curation.fill.wanted import wanted_rows
from curation.load import load, read_config, verify_checksums
from curation.pool import pool_table
from curation.reading import OpenSource, read_passages
from curation.recipe import Recipe
from curation.rows import split_rows, with_placeholders
from curation.schema import SENTINEL, SPLIT_SCHEMA
from curation.stages.clean import normalize_records
from curation.store import write_checksums, write_table, write_text
from curation.throughput.build import build_throughput
from curation.throughput.rows import provenance_of
from sources import http
from sources.base import Rejected
from sources.errors import SourceError
from sources.fetch import HubOrigin
from sources.lock import Lock
from sources.origins import MirrorOrigin, Origin, SamplesOrigin, open_source, resolve
from sources.registry import QUALITATIVE, SOURCES, THROUGHPUT
from tests.hub.fakehub import FakeHub, running

SPECS = {name: source.spec for name, source in SOURCES.items()}
RECIPE = Recipe.model_validate({"name": "small", "throughput": {"buckets": [256], "rows_per_cell": 6}})
CARD = """---
configs:
- config_name: qualitative
  data_files:
  - split: test
    path: data/qualitative.parquet
---

# A release
"""


class Words:
    """A tokenizer of words."""

    def encode_ordinary(self, text: str) -> list[int]:
        return list(range(len(text.split())))


def rows_of(name: str, origin: Origin, revision: str = "") -> pa.Table:
    """The rows of a source as the build publishes them, text in place."""
    source = SOURCES[name]
    items = source.parse(open_source(source.spec, resolve(origin, source.spec, allow_short=True), lambda _: None))
    pool, _ = pool_table(normalize_records(i for i in items if not isinstance(i, Rejected)))
    return split_rows(pool, "qualitative", SPECS, {name: revision}, Words())


def write_dist(folder: Path, **configs: pa.Table) -> Path:
    for config, rows in configs.items():
        write_table(folder / "data" / f"{config}.parquet", with_placeholders(rows, SPECS))
    write_text(folder / "README.md", CARD)
    write_text(folder / "LICENSE.md", "by source\n")
    write_checksums(folder)
    return folder


def kinds(report: FillReport) -> dict[str, str]:
    return {problem.row.src_id: problem.kind for problem in report.problems}


# -- what a build made, a fill makes again --------------------------------------------------------


@pytest.fixture(scope="module")
def qualitative() -> pa.Table:
    return pa.concat_tables([rows_of(source.spec.name, SamplesOrigin()) for source in QUALITATIVE])


@pytest.fixture(scope="module")
def throughput(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    rows: list[Mapping[str, Any]] = []
    build_throughput(
        read_passages([OpenSource(s, resolve(SamplesOrigin(), s.spec)) for s in THROUGHPUT], []),
        provenance_of(THROUGHPUT, {}),
        RECIPE,
        lambda _, built: rows.extend(built),
        folder=tmp_path_factory.mktemp("passages"),
        allow_short=True,
    )
    return pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA)


def test_every_placeholder_of_both_splits_gets_the_text_of_the_build(tmp_path, qualitative, throughput):
    dist = write_dist(tmp_path / "dist", qualitative=qualitative, throughput_256=throughput)
    report = fill_dist(dist, tmp_path / "filled", SamplesOrigin(), recipe=RECIPE)
    withheld = [row.source for row in wanted_rows(dist)]
    assert len(set(withheld)) >= 7, "the samples hold many sources that are given by reference"
    assert (report.filled, report.verified, report.problems) == (len(withheld), len(withheld), ())
    assert read_config(tmp_path / "filled", "qualitative").equals(qualitative)
    assert read_config(tmp_path / "filled", "throughput_256").equals(throughput)


def test_the_copy_is_a_dist_of_its_own_that_says_what_it_is(tmp_path, qualitative):
    dist = write_dist(tmp_path / "dist", qualitative=qualitative)
    (dist / ".cache").mkdir()
    (dist / ".cache" / "lock").write_text("", "utf-8")
    filled = tmp_path / "filled"
    fill_dist(dist, filled, SamplesOrigin())
    assert sorted(p.name for p in filled.iterdir()) == ["LICENSE.md", "README.md", "SHA256SUMS", "data"]
    verify_checksums(filled, [filled / "README.md", filled / "LICENSE.md", filled / "data" / "qualitative.parquet"])
    card = (filled / "README.md").read_text("utf-8")
    assert card.startswith(CARD[: CARD.index("\n# A release")])
    assert "do not upload this folder" in card
    assert len(load(filled, "qualitative")) == len(qualitative)


def test_datasets_reads_the_copy(tmp_path, qualitative):
    from datasets import load_dataset

    fill_dist(write_dist(tmp_path / "dist", qualitative=qualitative), tmp_path / "filled", SamplesOrigin())
    data = load_dataset(str(tmp_path / "filled"), "qualitative", split="test", cache_dir=str(tmp_path / "cache"))
    assert data["turns"] == qualitative.column("turns").to_pylist()


def test_a_row_is_rebuilt_alone(tmp_path, throughput):
    # With no other row beside it: neither its place nor its neighbours play a part.
    whole = throughput.filter(pc.equal(throughput.column("license"), "unknown"))
    last = whole.slice(len(whole) - 1)
    dist = write_dist(tmp_path / "dist", throughput_256=last)
    report = fill_dist(dist, tmp_path / "filled", SamplesOrigin(), recipe=RECIPE)
    assert report.filled == 1
    assert read_config(tmp_path / "filled", "throughput_256").equals(last)


def test_a_dist_without_placeholders_is_copied(tmp_path, qualitative):
    free = qualitative.filter(pc.equal(qualitative.column("source"), "https://github.com/X-PLUG/WritingBench"))
    dist = write_dist(tmp_path / "dist", qualitative=free)
    report = fill_dist(dist, tmp_path / "filled", SamplesOrigin())
    assert (report.wanted, report.filled, report.written) == (0, 0, True)
    assert read_config(tmp_path / "filled", "qualitative").equals(free)


# -- case 01: a source drifts under a frozen release -----------------------------------------------

PINNED = SPECS["livecodebench"].revision
PROBLEMS = {
    f"task-{n}": f"Sort the {n} crates of a harbour by weight and print the heaviest {n - 1}." for n in range(2, 10)
}


def lines(problems: Mapping[str, str]) -> bytes:
    rows = (
        {"question_id": src_id, "question_content": text, "starter_code": "", "difficulty": "easy"}
        for src_id, text in problems.items()
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def mirror_of(folder: Path, problems: Mapping[str, str]) -> MirrorOrigin:
    path = folder / "livecodebench" / "code_generation_lite" / "test.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(problems))
    return MirrorOrigin(folder)


def drifted() -> dict[str, str]:
    """One row put in front, one taken out, one edited; every place has moved."""
    later = {"task-0": "Print nothing at all."} | PROBLEMS
    del later["task-4"]
    later["task-7"] = later["task-7"].replace("crates", "sealed crates")
    return later


CHOSEN = ("task-2", "task-4", "task-6", "task-7")


@pytest.fixture
def first(tmp_path: Path) -> MirrorOrigin:
    return mirror_of(tmp_path / "r1", PROBLEMS)


@pytest.fixture
def release(tmp_path: Path, first: MirrorOrigin) -> Path:
    rows = rows_of("livecodebench", first, PINNED)
    kept = rows.filter(pc.is_in(rows.column("src_id"), pa.array(CHOSEN)))
    return write_dist(tmp_path / "dist", qualitative=kept)


def test_all_rows_are_filled_from_the_snapshot_that_they_were_made_of(tmp_path, release, first):
    report = fill_dist(release, tmp_path / "out", first)
    assert (report.wanted, report.filled, report.problems) == (4, 4, ())


@pytest.mark.parametrize("in_front", [True, False])
def test_of_two_records_with_one_id_the_one_is_taken_that_the_build_kept(tmp_path, in_front):
    twin = {"task-2": "Another task under the same id."}
    origin = mirror_of(tmp_path / "twins", PROBLEMS)
    path = origin.root / "livecodebench" / "code_generation_lite" / "test.jsonl"
    path.write_bytes(lines(twin) + path.read_bytes() if in_front else path.read_bytes() + lines(twin))
    rows = rows_of("livecodebench", origin, PINNED)
    report = fill_dist(write_dist(tmp_path / "dist", qualitative=rows), tmp_path / "out", origin)
    assert (report.filled, report.problems) == (len(PROBLEMS), ())


def test_missing_and_changed_rows_are_reported_together_and_nothing_is_written(tmp_path, release):
    report = fill_dist(release, tmp_path / "out", mirror_of(tmp_path / "r2", drifted()))
    assert kinds(report) == {"task-4": "missing", "task-7": "changed"}
    assert report.filled == 2, "rows whose place has moved are found all the same"
    assert not report.written
    assert not (tmp_path / "out").exists()
    for problem in report.problems:
        told = problem.as_row()
        assert (told["source"], told["revision"]) == ("livecodebench/code_generation_lite", PINNED)


def test_a_part_is_written_on_request_and_counted(tmp_path, release):
    origin = mirror_of(tmp_path / "r2", drifted())
    report = fill_dist(release, tmp_path / "out", origin, allow_partial=True)
    assert report.summary == "2 of 4 placeholder rows have their text, 2 have not (1 changed, 1 missing)"
    rows = {
        row["src_id"]: row for row in read_config(tmp_path / "out", "qualitative", allow_placeholders=True).to_pylist()
    }
    assert {src_id: row["text_status"] for src_id, row in rows.items()} == {
        "task-2": "full",
        "task-4": "placeholder",
        "task-6": "full",
        "task-7": "placeholder",
    }
    assert rows["task-4"]["turns"] == rows["task-7"]["turns"] == [SENTINEL]
    assert "2 of 4 placeholder rows" in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_the_command_lists_what_is_wrong_and_fails(tmp_path, release):
    mirror_of(tmp_path / "r2", drifted())
    args = [str(release), "--out", str(tmp_path / "out"), "--mirror", str(tmp_path / "r2"), "--json"]
    result = CliRunner().invoke(dist_cli.fill, args)
    assert isinstance(result.exception, DistError)
    assert "2 of 4 placeholder rows have their text" in str(result.exception)
    assert "nothing was written" in str(result.exception)
    assert {(p["problem"], p["src_id"]) for p in json.loads(result.stdout)} == {
        ("missing", "task-4"),
        ("changed", "task-7"),
    }
    partial = CliRunner().invoke(dist_cli.fill, [*args, "--allow-partial"])
    assert partial.exit_code == 0
    assert (tmp_path / "out" / "SHA256SUMS").is_file()


def test_where_something_lies_nothing_is_written(tmp_path, release, first):
    with pytest.raises(DistError, match="exists already"):
        fill_dist(release, release, first)


def test_another_wording_of_ours_is_told_apart_from_another_text_of_theirs(tmp_path, release, first):
    rows = read_config(release, "qualitative", allow_placeholders=True).to_pylist()
    for row in rows:
        row |= {"template_id": "livecodebench/v0", "turns_sha256": "0" * 64}
    dist = write_dist(tmp_path / "older", qualitative=pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA))
    problem, *_ = fill_dist(dist, tmp_path / "out", first).problems
    assert problem.kind == "changed"
    assert "livecodebench/v0, this version of speedbench has livecodebench/v1" in problem.detail


def test_a_source_that_cannot_be_read_leaves_the_others_be(tmp_path, release, first, qualitative):
    news = qualitative.filter(pc.equal(qualitative.column("source"), "abisee/cnn_dailymail"))
    rows = pa.concat_tables([read_config(release, "qualitative", allow_placeholders=True), news])
    broken = first.root / "abisee" / "cnn_dailymail" / "3.0.0" / "test-00000-of-00001.parquet"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"PAR1 and no more")
    report = fill_dist(write_dist(tmp_path / "both", qualitative=rows), tmp_path / "out", first)
    assert report.filled == 4
    assert {p.kind for p in report.problems} == {"unread"}
    assert len(report.problems) == len(news)


def test_a_file_that_is_absent_is_named_with_the_rows_it_leaves_open(tmp_path, release, first):
    path = first.root / "livecodebench" / "code_generation_lite" / "test.jsonl"
    path.rename(path.with_name("test2.jsonl"))
    assert fill_dist(release, tmp_path / "out", first).filled == 4, "a row is sought in every file"
    path.with_name("test2.jsonl").unlink()
    report = fill_dist(release, tmp_path / "other", first)
    assert {p.kind for p in report.problems} == {"missing"}
    assert "test.jsonl is absent" in report.problems[0].detail


@pytest.mark.parametrize(
    "change", [{"record_ids": ["no_such_source:1"]}, {"source": "org/moved"}, {"record_ids": ["bamboo:task-2"]}]
)
def test_a_row_of_a_source_that_this_version_does_not_have_is_reported(tmp_path, release, first, change):
    rows = read_config(release, "qualitative", allow_placeholders=True).to_pylist()
    rows[0] |= change
    folder = tmp_path / "other"
    write_table(folder / "data" / "qualitative.parquet", pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA))
    write_checksums(folder)
    report = fill_dist(folder, tmp_path / "out", first)
    assert [p.kind for p in report.problems] == ["unsupported"]
    assert report.filled == 3


def test_a_throughput_row_of_another_length_or_recipe_is_changed_not_wrong(tmp_path, throughput):
    rows = [row for row in throughput.to_pylist() if row["license"] == "unknown"]
    rows[0]["num_tokens"] = 300
    rows[1]["src_id"] = "no-such-question@2k"
    folder = write_dist(tmp_path / "dist", throughput_256=pa.Table.from_pylist(rows[:2], schema=SPLIT_SCHEMA))
    report = fill_dist(folder, tmp_path / "out", SamplesOrigin(), recipe=RECIPE)
    assert [p.kind for p in report.problems] == ["changed", "missing"]


# -- the revision that a row names is the one that is asked for ------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[FakeHub]:
    with running() as hub:
        yield hub


@pytest.fixture
def hub(server: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeHub:
    server.reset()
    monkeypatch.setattr(http, "FIRST_WAIT_S", 0.0)
    for name, value in (server.environment() | {"SPEEDBENCH_CACHE": str(tmp_path / "cache")}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
    return server


@pytest.mark.parametrize("revision", [PINNED, "1" * 40])
def test_the_hub_is_asked_for_the_revision_of_the_row_whatever_is_newest(tmp_path, hub, first, revision):
    repo = hub.dataset("livecodebench/code_generation_lite")
    repo.commit({"test.jsonl": lines(PROBLEMS)}, revision)
    repo.commit({"test.jsonl": lines(drifted())})
    dist = write_dist(tmp_path / "dist", qualitative=rows_of("livecodebench", first, revision))
    report = fill_dist(dist, tmp_path / "out", HubOrigin(lock=Lock()))
    assert (report.filled, report.problems) == (len(PROBLEMS), ())
    files = [asked.path for asked in hub.data_requests()]
    assert files
    assert all(revision in path for path in files)


def test_nothing_is_asked_of_a_source_without_a_revision(tmp_path, hub, qualitative):
    # No pin in the spec, none in the lock, none in the row.
    rows = qualitative.filter(pc.equal(qualitative.column("source"), "abisee/cnn_dailymail"))
    hub.dataset("abisee/cnn_dailymail").commit({"3.0.0/test-00000-of-00001.parquet": b"PAR1"})
    dist = write_dist(tmp_path / "dist", qualitative=rows)
    report = fill_dist(dist, tmp_path / "out", HubOrigin(lock=Lock()))
    assert {p.kind for p in report.problems} == {"unpinned"}
    assert "sources lock" in report.problems[0].detail
    assert not hub.data_requests()


def test_sources_that_cannot_be_read_are_named_together_before_a_byte_is_fetched(tmp_path, hub, qualitative, first):
    hub.dataset("livecodebench/code_generation_lite").commit({"test.jsonl": lines(PROBLEMS)}, PINNED)
    hub.dataset("cais/hle").commit({"data/test-0.parquet": b"PAR1"}, SPECS["hle"].revision)
    hub.dataset("cais/hle").gated = True
    hub.denied["cais/hle"] = 403
    both = qualitative.filter(pc.is_in(qualitative.column("source"), pa.array(["cais/hle", "nvidia/ChatRAG-Bench"])))
    rows = pa.concat_tables([both, rows_of("livecodebench", first, PINNED)])
    dist = write_dist(tmp_path / "dist", qualitative=rows)
    with pytest.raises(SourceError, match=r"2 of 3 sources cannot be read, nothing was fetched") as refusal:
        fill_dist(dist, tmp_path / "out", HubOrigin(lock=Lock()))
    assert "cais/hle" in str(refusal.value)
    assert "nvidia/ChatRAG-Bench" in str(refusal.value)
    assert not hub.data_requests()
    report = fill_dist(dist, tmp_path / "out", HubOrigin(lock=Lock()), allow_partial=True)
    assert report.filled == len(PROBLEMS)
    assert {p.kind for p in report.problems} == {"unread"}


def test_a_web_source_that_is_not_locked_is_not_fetched():
    with pytest.raises(Unpinned, match="not locked"):
        pinned(HubOrigin(lock=Lock()), SPECS["stackselect"], "")


def test_a_spec_that_has_moved_on_does_not_move_the_rows():
    spec = replace(SPECS["hle"], revision="2" * 40)
    assert pinned(HubOrigin(lock=Lock()), spec, "3" * 40).revision == "3" * 40
    assert pinned(HubOrigin(lock=Lock()), spec, "").revision == "2" * 40


def test_a_changed_file_of_the_dist_is_refused_before_anything_is_read(tmp_path, release, first):
    shutil.copy(release / "README.md", release / "data" / "qualitative.parquet")
    with pytest.raises(DistError, match="SHA-256 differs"):
        fill_dist(release, tmp_path / "out", first)


def test_the_recipe_of_the_manifest_beside_a_dist_is_used(tmp_path, throughput: pa.Table):
    tail = replace_recipe(tmp_path, {"name": "small", "tokenizer": {"name": "cl100k_base"}})
    rows: Sequence[Mapping[str, Any]] = [r for r in throughput.to_pylist() if r["license"] == "unknown"]
    write_dist(tail / "dist", throughput_256=pa.Table.from_pylist(rows[:1], schema=SPLIT_SCHEMA))
    report = fill_dist(tail / "dist", tmp_path / "out", SamplesOrigin())
    assert {p.kind for p in report.problems} == {"changed"}, "another tokenizer makes another text"


def replace_recipe(folder: Path, recipe: Mapping[str, Any]) -> Path:
    build = folder / "build"
    write_text(build / "manifest.json", json.dumps({"recipe": recipe}))
    return build
