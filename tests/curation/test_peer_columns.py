"""What other tools read of a DIST's parquet files, read in the way in which they read it.

The readers are ours, written after these (read on 2026-11-30):

- specdec_bench: NVIDIA/Model-Optimizer, examples/specdec_bench/specdec_bench/datasets/speed.py at 12d434e. A config of
  the Hub, or every `*.parquet` below a folder, or one file; `turns`, `category`, `question_id` of each row; it stops at
  a turn that begins with the sentinel.
- llama.cpp: ggml-org/llama.cpp, tools/server/bench/speed-bench/speed_bench.py (pull request 23869). The configs by
  name, split `test`; blank turns and the blanks around a turn fall away; it knows no sentinel.
- SGLang: sgl-project/sglang, python/sglang/benchmark/datasets/speed_bench.py at 17b6716. One object a line with `turns`
  and `category`, as `speedbench export --format turns` writes; the first turn of each row, none is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import get_dataset_config_names, load_dataset

from curation.export import export_dist
from curation.load import read_config
from curation.schema import SENTINEL
from tests.release.tiny_build import CONFIGS, tiny_build

Rows = list[tuple[str, str, list[str]]]
"""question_id, category and turns of each row."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build with its `dist/` and `full/`."""
    return tiny_build(tmp_path_factory.mktemp("build")).parent


@pytest.fixture
def hub_cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


def rows_of(dist: Path, config: str) -> Rows:
    rows = read_config(dist, config, allow_placeholders=True).to_pylist()
    return [(row["question_id"], row["category"], row["turns"]) for row in rows]


def read_as_specdec_bench(path: Path, cache: str) -> Rows:
    files = sorted(map(str, path.rglob("*.parquet"))) if path.is_dir() else [str(path)]
    rows = load_dataset("parquet", data_files={"test": files}, split="test", cache_dir=cache)
    for row in rows:
        if any(turn.startswith(SENTINEL) for turn in row["turns"]):
            raise ValueError(f"placeholder in {row['question_id']}")
    return [(row["question_id"], row["category"], row["turns"]) for row in rows]


def read_as_llama_cpp(repo: str, config: str, cache: str) -> Rows:
    assert config in get_dataset_config_names(repo)
    found: Rows = []
    for row in load_dataset(repo, name=config, split="test", cache_dir=cache):
        assert isinstance(row["question_id"], str)
        assert row["question_id"].strip()
        assert isinstance(row["category"], str)
        assert row["category"].strip()
        turns = [str(turn).strip() for turn in row["turns"] if turn and str(turn).strip()]
        assert turns
        found.append((row["question_id"], row["category"], turns))
    return found


def read_as_sglang(path: Path, category: str = "") -> list[str]:
    prompts = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if not category or row.get("category") == category:
                prompts.append(row["turns"][0])
    return prompts


@pytest.mark.parametrize("config", CONFIGS)
def test_specdec_bench_reads_the_file_of_a_config(build, hub_cache, config):
    full = build / "full"
    assert read_as_specdec_bench(full / "data" / f"{config}.parquet", hub_cache) == rows_of(full, config)


def test_specdec_bench_reads_a_folder_as_all_of_its_configs(build, hub_cache):
    # Why a user names the file: a DIST has one schema in all configs, so they join without a fault or a word.
    full = build / "full"
    assert read_as_specdec_bench(full, hub_cache) == [
        row for config in sorted(CONFIGS) for row in rows_of(full, config)
    ]


def test_specdec_bench_stops_at_our_placeholders(build, hub_cache):
    with pytest.raises(ValueError, match="placeholder in"):
        read_as_specdec_bench(build / "dist" / "data" / "qualitative.parquet", hub_cache)


@pytest.mark.parametrize("config", CONFIGS)
def test_llama_cpp_reads_a_config_by_its_name(build, hub_cache, config):
    full = build / "full"
    stripped = [(i, category, [turn.strip() for turn in turns]) for i, category, turns in rows_of(full, config)]
    assert read_as_llama_cpp(str(full), config, hub_cache) == stripped


def test_llama_cpp_takes_a_placeholder_for_a_prompt(build, hub_cache):
    # It has no check, so whoever runs it on a release measures the sentinel: the card sends them to `fill` first.
    read = read_as_llama_cpp(str(build / "dist"), "qualitative", hub_cache)
    assert any(SENTINEL in turns for _, _, turns in read)


@pytest.mark.parametrize(("config", "category"), [("qualitative", ""), ("qualitative", "math"), (CONFIGS[1], "mixed")])
def test_sglang_reads_the_export_of_turns(build, tmp_path, config, category):
    full = build / "full"
    export_dist(full, tmp_path / "out", shape="turns")
    wanted = [turns[0] for _, theirs, turns in rows_of(full, config) if category in ("", theirs)]
    assert read_as_sglang(tmp_path / "out" / f"{config}.jsonl", category) == wanted


READERS: dict[str, Callable[[Path, str], Any]] = {
    "specdec_bench": lambda full, cache: read_as_specdec_bench(full / "data" / "qualitative.parquet", cache),
    "llama.cpp": lambda full, cache: read_as_llama_cpp(str(full), "qualitative", cache),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_turn_of_a_conversation_is_lost(build, hub_cache, reader):
    turns = [len(turns) for _, _, turns in READERS[reader](build / "full", hub_cache)]
    assert max(turns) > 1
    assert turns == [len(turns) for _, _, turns in rows_of(build / "full", "qualitative")]
