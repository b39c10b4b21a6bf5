"""Whole builds from the samples: the same bytes whatever the order, the workers or the interruption."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import speedbench
from curation.building import LOCK
from curation.errors import BuildError, DistError
from curation.load import read_config
from curation.options import Options
from curation.pipeline import build_splits
from curation.recipe import Recipe, load_recipe
from curation.schema import LEDGER_SCHEMA, POOL_SCHEMA, SENTINEL, SPLIT_SCHEMA
from curation.store import file_digests
from curation.verify.registry import verify_dist
from sources.base import CATEGORIES
from sources.errors import SourceError
from sources.origins import MirrorOrigin, SamplesOrigin
from sources.registry import SOURCES
from tests.curation.shuffled_mirror import shuffled_mirror


def _build(
    out: Path, origin=None, *, recipe: str | Recipe = "demo", workers: int = 2, allow_short: bool = False
) -> Path:
    options = Options(origin or SamplesOrigin(), ("qualitative",), allow_short=allow_short, workers=workers)
    build_splits(load_recipe(recipe) if isinstance(recipe, str) else recipe, out, options)
    return out


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One cache for the module, so that each text is embedded once."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("SPEEDBENCH_CACHE")
    os.environ["SPEEDBENCH_CACHE"] = str(folder)
    yield folder
    os.environ.pop("SPEEDBENCH_CACHE")
    if before is not None:
        os.environ["SPEEDBENCH_CACHE"] = before


@pytest.fixture(scope="module")
def built(cache, tmp_path_factory) -> Path:
    return _build(tmp_path_factory.mktemp("built") / "out")


def test_every_category_has_its_quota_and_every_row_its_columns(built):
    table = read_config(built / "full", "qualitative")
    assert table.schema == SPLIT_SCHEMA
    counts = {c: table.column("category").to_pylist().count(c) for c in CATEGORIES}
    assert counts == dict.fromkeys(CATEGORIES, 8)
    ids = table.column("question_id").to_pylist()
    assert len(set(ids)) == len(ids)
    assert all(n > 0 for n in table.column("num_tokens").to_pylist())


def test_the_smaller_set_is_contained_in_the_larger(built):
    large = read_config(built / "full", "qualitative").to_pylist()
    small = read_config(built / "full", "qualitative_4").to_pylist()
    assert len(small) == 4 * len(CATEGORIES)
    key = ("source", "src_id", "turns_sha256")
    assert {tuple(row[k] for k in key) for row in small} <= {tuple(row[k] for k in key) for row in large}


def test_dist_withholds_exactly_what_may_not_be_published(built):
    full = {row["question_id"]: row for row in read_config(built / "full", "qualitative").to_pylist()}
    dist = read_config(built / "dist", "qualitative", allow_placeholders=True).to_pylist()
    statuses = set()
    for row in dist:
        spec = SOURCES[row["record_ids"][0].partition(":")[0]].spec
        statuses.add(row["text_status"])
        real = full[row["question_id"]]["turns"]
        assert row["turns"] == (real if spec.may_publish else [SENTINEL] * len(real)), row["question_id"]
        assert row["turns_sha256"] == full[row["question_id"]]["turns_sha256"]
    assert statuses == {"full", "placeholder"}


def test_every_record_that_was_read_is_chosen_or_accounted_for_once(built):
    ledger = pq.read_table(built / "ledger.parquet")
    assert ledger.schema == LEDGER_SCHEMA
    pool = pq.read_table(built / "pool" / "candidates.parquet")
    assert pool.schema == POOL_SCHEMA
    manifest = json.loads((built / "manifest.json").read_text())
    rows = ledger.to_pylist()
    dropped = [row["record_id"] for row in rows if row["stage"] not in ("read", "embed", "select")]
    assert pool.num_rows + len(dropped) == manifest["clean"]["records"]
    assert not set(dropped) & set(pool.column("record_id").to_pylist())
    not_selected = [row for row in rows if row["stage"] == "select"]
    assert len(not_selected) == pool.num_rows - 8 * len(CATEGORIES)
    assert all(row["reason"] for row in rows)


def test_the_manifest_explains_every_file_and_every_choice(built):
    manifest = json.loads((built / "manifest.json").read_text())
    known = manifest["files"]
    here = {k: v for k, v in file_digests(built).items() if k not in ("manifest.json", LOCK)}
    assert known == here
    assert manifest["origin"] == "samples"
    assert set(manifest["categories"]) == set(CATEGORIES)
    for figures in manifest["categories"].values():
        assert figures["bound"] <= figures["objective"]
        assert figures["gap"] == pytest.approx((figures["objective"] - figures["bound"]) / figures["objective"])


def test_the_card_shows_pictures_that_are_there_and_claims_what_the_files_hold(built):
    card = (built / "dist" / "README.md").read_text("utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", card)
    assert sorted(shown) == sorted(k for k in file_digests(built / "dist") if k.endswith(".png"))
    assert "plots/isl.png" in shown
    assert card == (built / "full" / "README.md").read_text("utf-8")
    assert verify_dist(built / "dist", is_local=True).faults == ()


def test_a_build_with_one_worker_and_an_empty_cache_gives_the_same_bytes(built, tmp_path, monkeypatch):
    monkeypatch.setenv("SPEEDBENCH_CACHE", str(tmp_path / "cache"))
    again = _build(tmp_path / "again", workers=1)
    assert file_digests(again / "dist") == file_digests(built / "dist")
    assert file_digests(again / "full") == file_digests(built / "full")


def _shuffled_mirror(root: Path, seed: int) -> MirrorOrigin:
    return shuffled_mirror(SamplesOrigin(), root, seed)


def test_the_order_of_the_rows_in_the_files_changes_no_published_byte(built, tmp_path):
    shuffled = _build(tmp_path / "out", _shuffled_mirror(tmp_path / "mirror", 3))
    assert _data(shuffled / "dist") == _data(built / "dist")
    assert _data(shuffled / "full") == _data(built / "full")
    twice = _build(tmp_path / "out2", _shuffled_mirror(tmp_path / "mirror2", 4))
    assert file_digests(twice / "dist") == file_digests(shuffled / "dist"), "the card too, from one origin"


def _data(folder: Path) -> dict[str, str]:
    return {k: v for k, v in file_digests(folder).items() if k.startswith("data/")}


def test_load_refuses_placeholders_and_loads_the_full_text(built):
    with pytest.raises(DistError, match="placeholders"):
        speedbench.load(built / "dist", "qualitative")
    assert len(speedbench.load(built / "full", "qualitative")) == 8 * len(CATEGORIES)


def test_a_pool_under_the_quota_is_refused_by_category_and_delivered_short_on_request(cache, tmp_path):
    recipe = load_recipe("demo")
    wanted = recipe.model_copy(update={"selection": recipe.selection.model_copy(update={"quota": 500, "nested": ()})})
    with pytest.raises(BuildError, match=r"coding.*500.*\d+"):
        _build(tmp_path / "refused", recipe=wanted)
    assert not (tmp_path / "refused" / "manifest.json").exists()
    short = _build(tmp_path / "short", recipe=wanted, allow_short=True)
    pool = pq.read_table(short / "pool" / "candidates.parquet")
    assert read_config(short / "full", "qualitative").num_rows == pool.num_rows


def test_an_absent_file_is_refused_or_stands_in_the_ledger(cache, tmp_path):
    mirror = _shuffled_mirror(tmp_path / "mirror", 5)
    gone = mirror.root / SOURCES["livecodebench"].spec.mirror_folder / "test2.jsonl"
    gone.unlink()
    with pytest.raises(SourceError, match=r"livecodebench: test2\.jsonl is absent"):
        _build(tmp_path / "refused", mirror)
    built = _build(tmp_path / "short", mirror, allow_short=True)
    rows = pq.read_table(built / "ledger.parquet").to_pylist()
    assert [r for r in rows if r["record_id"] == "livecodebench:test2.jsonl" and r["reason"] == "the file is absent"]


@pytest.mark.slow
def test_a_build_that_is_killed_goes_on_to_the_same_bytes(built, tmp_path):
    """Killed at several moments of a cold build, in whatever act it was."""
    environment = os.environ | {"SPEEDBENCH_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "speedbench", "build", "demo", "--samples", "--only", "qualitative"]
    command += ["--out", str(tmp_path / "out")]
    for seconds in (2.0, 4.0, 6.0):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert file_digests(tmp_path / "out" / "dist") == file_digests(built / "dist")
    assert not list((tmp_path / "out").rglob("*.tmp"))
