"""From sources on a Hub to rows in a user's hands, with the real clients, each in a process of its own."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.hub.fakehub import FakeHub, Fault, running
from tests.release.served import NAMES, QUESTIONS, Workplace, questions, serve

REPO = "acme/tiny"
RELEASE = ("--repo", REPO, "--version")

LOAD = """
import json, sys
from datasets import load_dataset
repo, config, revision, streaming = sys.argv[1:5]
rows = load_dataset(repo, config, split="test", revision=revision, streaming=streaming == "yes")
print(json.dumps([[row["question_id"], row["turns"], row["text_status"]] for row in rows]))
"""
STRICT = """
import sys
import speedbench
rows = speedbench.load(sys.argv[1], sys.argv[2], allow_placeholders=True)
print(len(rows), rows.column_names[:2])
"""
REFUSED = """
import sys
import speedbench
from sources.errors import Refusal
try:
    speedbench.load(sys.argv[1], sys.argv[2])
except Refusal as refusal:
    print(refusal)
"""

# One worker for all of them: the builds that they share take most of the time.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("whole flow")]


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    with running() as hub:
        yield hub


@pytest.fixture(scope="module")
def first(hub: FakeHub, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A machine on which v1.0.0 was built and released."""
    serve(hub)
    place = Workplace(tmp_path_factory.mktemp("first"), hub)
    place.run("sources", "lock", *NAMES, "spec_bench")
    place.run("build", "served.toml", "--out", "one", "--workers", "1")
    place.run("verify", "one/dist")
    place.run("release", "one/dist", *RELEASE, "1.0.0")
    return place


@pytest.fixture(scope="module")
def second(hub: FakeHub, first: Workplace) -> Workplace:
    """The same machine, v1.1.0 released after one question had changed at its source, by a process that was killed."""
    rows = pq.read_table(first.root / "one/dist/data/qualitative.parquet").to_pylist()
    chosen = next(row for row in rows if row["record_ids"][0].startswith("gsm8k:"))
    project = hub.project("hemingkx/Spec-Bench")
    project.commit({QUESTIONS: questions({int(chosen["src_id"]): chosen["turns"][0] + " Show each step."})})
    first.run("sources", "lock", "--update", "gsm8k", "spec_bench")
    first.run("build", "served.toml", "--out", "two", "--workers", "1")
    refusal = first.run("release", "two/dist", *RELEASE, "1.0.1", status=1)
    assert "rows or their text changed since v1.0.0, so it is 1.1.0 at least" in refusal

    process = first.start("release", "two/dist", *RELEASE, "1.1.0")
    hub.faults.append(Fault("POST", "/tag/", 503, meanwhile=process.kill))
    process.communicate(timeout=300)
    assert process.returncode == -9
    repo = hub.dataset(REPO)
    assert [title for _, title in repo.history][-1] == "Release v1.1.0"
    assert list(repo.tags) == ["v1.0.0"], "killed after the commit, before the tag"
    first.run("release", "two/dist", *RELEASE, "1.1.0")
    return first


def rows_of(place: Workplace, revision: str, config: str = "qualitative", *, streaming: bool = False) -> list:
    printed = place.python(LOAD, REPO, config, revision, "yes" if streaming else "no")
    return json.loads(printed.splitlines()[-1])


def dist_rows(place: Workplace, build: str, config: str = "qualitative") -> list:
    rows = pq.read_table(place.root / build / "dist" / "data" / f"{config}.parquet").to_pylist()
    return [[row["question_id"], row["turns"], row["text_status"]] for row in rows]


def test_after_a_kill_the_release_goes_on_without_a_second_commit(hub: FakeHub, second: Workplace) -> None:
    repo = hub.dataset(REPO)
    assert [title for _, title in repo.history] == ["initial commit", "Release v1.0.0", "Release v1.1.0"]
    assert repo.tags == {"v1.0.0": repo.history[1][0], "v1.1.0": repo.history[2][0]}


def test_each_tag_loads_its_own_rows_with_datasets(second: Workplace) -> None:
    old, new = rows_of(second, "v1.0.0"), rows_of(second, "v1.1.0")
    assert old == dist_rows(second, "one")
    assert new == dist_rows(second, "two")
    assert old != new


def test_every_config_loads_and_one_streams(second: Workplace) -> None:
    for config in ("qualitative_2", "spec_bench", "throughput_256"):
        assert rows_of(second, "v1.0.0", config) == dist_rows(second, "one", config)
    assert rows_of(second, "v1.0.0", "throughput_256", streaming=True) == dist_rows(second, "one", "throughput_256")


def test_our_loader_takes_no_other_revision_from_the_cache_and_no_placeholder_for_a_prompt(second: Workplace) -> None:
    assert second.python(STRICT, f"{REPO}@v1.0.0", "qualitative").startswith("12 ['question_id', 'category']")
    offline = (("HF_HUB_OFFLINE", "1"),)
    assert second.python(STRICT, f"{REPO}@v1.0.0", "qualitative", environment=offline).startswith("12 ")
    never = second.python(REFUSED, f"{REPO}@v9.9.9", "qualitative", environment=offline)
    assert "the Hub cannot be reached and the cache lacks this revision" in never
    held = second.python(REFUSED, f"{REPO}@v1.0.0", "qualitative")
    assert "of 12 rows of qualitative are placeholders (" in held


def test_a_revision_of_the_hub_verifies_and_differs_as_the_changelog_says(second: Workplace) -> None:
    second.run("verify", f"{REPO}@v1.1.0", "--local")
    diff = json.loads(second.run("diff", f"{REPO}@v1.0.0", f"{REPO}@v1.1.0", "--json"))
    assert diff["step"] == "minor"
    log = (second.root / "two/dist/CHANGELOG.md").read_text()
    assert log.index("## 1.1.0") < log.index("## 1.0.0")


def test_a_build_of_samples_is_good_locally_and_its_release_is_refused_in_one_report(
    second: Workplace, hub: FakeHub
) -> None:
    second.run("build", "served.toml", "--out", "three", "--samples", "--allow-short", "--workers", "1")
    second.run("verify", "three/dist", "--local")
    before = hub.dataset(REPO).head
    report = second.run("release", "three/dist", *RELEASE, "2.0.0", "--dry-run", status=1)
    assert report.count("\n  ") >= 2
    assert "built from samples" in report
    assert "built with --allow-short" in report
    assert hub.dataset(REPO).head == before


def test_a_dry_run_prints_each_file_and_what_would_become_of_it(second: Workplace) -> None:
    printed = json.loads(second.run("release", "two/dist", *RELEASE, "1.1.0", "--dry-run", "--json"))
    assert {row["change"] for row in printed} == {"none"}
    assert {row["file"] for row in printed} >= {"README.md", "CHANGELOG.md", "data/qualitative.parquet"}


def test_before_a_build_the_cost_of_embedding_is_estimated_and_a_key_is_asked_for(second: Workplace) -> None:
    paid = '[embedder]\nname = "openai"\nmodel = "text-embedding-3-large"\ndimensions = 3072\n'
    (second.root / "paid.toml").write_text(f'extends = "served.toml"\nname = "paid"\n\n{paid}')
    check = ("release", "none/dist", *RELEASE, "3.0.0", "--before-build", "paid.toml")
    refusal = second.run(*check, status=1)
    assert "1 refusals:\n  recipe paid: OPENAI_API_KEY is not set" in refusal
    second.environment["OPENAI_API_KEY"] = "sk-of-nobody"
    second.run(*check)
    assert re.search(r"text-embedding-3-large: about 0\.\d+ USD, \d+ of \d+ texts, [\d,]+ tokens", second.output[-1])
    assert "nothing stands in the way of paid.toml as acme/tiny v3.0.0" in second.output[-1]
    assert "sk-of-nobody" not in second.output[-1]


def test_the_token_is_never_printed(second: Workplace) -> None:
    token = second.environment["HF_TOKEN"]
    shutil.rmtree(second.root / "again", ignore_errors=True)
    assert second.output
    assert not any(token in text for text in second.output)
    written = (p for p in Path(second.root).rglob("*") if p.is_file() and p.stat().st_size < 1_000_000)
    assert not any(token.encode() in path.read_bytes() for path in written)
