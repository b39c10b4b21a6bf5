"""The qualitative split of `v1-offline` from real records, as a maintainer builds it (minutes; `make test-mirror`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from curation.load import read_config
from curation.schema import SPLIT_SCHEMA
from sources.base import CATEGORIES

pytestmark = [pytest.mark.mirror, pytest.mark.heavy]

FULL_CATEGORIES = ("coding", "humanities", "math", "multilingual", "reasoning", "roleplay", "stem", "writing")

# Table 3 of arXiv 2604.09557, column SpecBench: mean and median input tokens.
TABLE_3 = {
    "coding": (72.5, 39.0),
    "humanities": (56.1, 36.5),
    "math": (58.5, 45.0),
    "qa": (11.1, 11.0),
    "rag": (683.6, 682.0),
    "reasoning": (86.3, 64.0),
    "roleplay": (74.3, 74.0),
    "stem": (54.3, 55.0),
    "summarization": (710.4, 646.0),
    "translation": (34.8, 32.0),
    "writing": (59.9, 54.0),
}


@pytest.fixture(scope="module")
def built(mirror: Path, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("mirror") / "out"
    cache = os.environ.get("SPEEDBENCH_CACHE") or str(tmp_path_factory.mktemp("cache"))
    command = [sys.executable, "-m", "speedbench", "build", "v1-offline", "--only", "qualitative", "--allow-short"]
    command += ["--mirror", str(mirror), "--out", str(out)]
    subprocess.run(command, check=True, env=os.environ | {"SPEEDBENCH_CACHE": cache})
    return out


@pytest.fixture(scope="module")
def diversity(built: Path) -> dict:
    command = [sys.executable, "-m", "speedbench", "diversity", str(built / "full"), "--json"]
    report: dict = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return report


def test_eight_categories_reach_eighty_and_the_others_as_many_as_the_ledger_leaves(built):
    table = read_config(built / "full", "qualitative")
    assert table.schema == SPLIT_SCHEMA
    rows = Counter(table.column("category").to_pylist())
    assert {c: rows[c] for c in FULL_CATEGORIES} == dict.fromkeys(FULL_CATEGORIES, 80)
    pool = Counter(pq.read_table(built / "pool" / "candidates.parquet").column("category").to_pylist())
    for category in ("qa", "rag", "summarization"):
        assert rows[category] == min(80, pool[category])
        assert rows[category] >= 70, "the mirror holds 80, 90 and 80 of them before dedup"


def test_every_gap_is_at_most_one_and_a_half_per_cent(built):
    categories = json.loads((built / "manifest.json").read_text())["categories"]
    gaps = {name: figures["gap"] for name, figures in categories.items()}
    assert set(gaps) == set(CATEGORIES)
    assert max(gaps.values()) <= 0.015, gaps


def test_every_choice_is_more_diverse_than_a_random_one(diversity):
    for category in diversity["categories"]:
        if category["candidates"] > category["rows"]:
            assert category["own"] < category["random"], category["category"]


def test_the_split_is_at_least_forty_per_cent_under_spec_bench(diversity):
    assert diversity["under_spec_bench"] >= 0.40


def test_spec_benchs_input_lengths_are_those_of_the_paper(diversity):
    lengths = diversity["spec_bench"]["input_lengths"]
    found = {name: (round(lengths[name]["mean_isl"], 1), lengths[name]["median_isl"]) for name in TABLE_3}
    assert found == TABLE_3


def test_spec_bench_names_the_programming_languages_that_the_paper_counts(diversity):
    # The paper counts Python three times; two of the prompts name it.
    assert diversity["spec_bench"]["programming_languages"] == {"Python": 2, "C++": 1, "CSS": 1, "HTML": 1}


def test_load_dataset_reads_what_was_built(built, tmp_path):
    code = (
        "import sys; from datasets import load_dataset;"
        "data = load_dataset(sys.argv[1], 'qualitative', split='test'); print(len(data))"
    )
    environment = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code, str(built / "dist")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert int(done.stdout) == read_config(built / "full", "qualitative").num_rows
