"""aiperf, unchanged and in its own environment, reads and runs what `speedbench export` writes.

Two SPEED-Bench loaders of aiperf 0.13 claim the same file, so the type has to be named: `--custom-dataset-type
speed_bench_qualitative` for every category, `speed_bench_coding` and the like for one.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from curation.tokenizer import _cache_key, _packaged_ranks
from tests.peers.conftest import python_of, run_there
from tests.peers.echo_chat import echo_chat

pytestmark = [pytest.mark.peers, pytest.mark.slow]


@pytest.mark.parametrize(
    ("config", "kind", "category"),
    [
        ("qualitative", "speed_bench_qualitative", None),
        ("qualitative", "speed_bench_coding", "coding"),
        ("throughput_1k", "speed_bench_throughput_1k", None),
        ("throughput_1k", "speed_bench_throughput_1k_mixed", "mixed"),
    ],
)
def test_its_loaders_see_every_turn_of_every_row(exported, config, kind, category):
    given = exported("messages")
    read = run_there(python_of("aiperf"), "read_with_aiperf.py", str(given.folder / f"{config}.jsonl"), kind)
    assert read == [
        [row["question_id"], [["user", turn] for turn in row["turns"]]]
        for row in given.rows[config]
        if category in (None, row["category"])
    ]


def test_a_run_of_it_sends_the_turns_and_threads_the_answers(exported, tmp_path):
    given = exported("messages")
    with echo_chat() as chat:
        done = subprocess.run(
            [
                str(python_of("aiperf").with_name("aiperf")),
                *("profile", "--model", "m", "--url", chat.url, "--endpoint-type", "chat"),
                *("--input-file", str(given.folder / "qualitative.jsonl")),
                *("--custom-dataset-type", "speed_bench_qualitative", "--tokenizer", "builtin"),
                *("--concurrency", "1", "--num-conversations", "3", "--ui", "none"),
                *("--artifact-dir", str(tmp_path / "artifacts")),
            ],
            env={**os.environ, "HF_HUB_OFFLINE": "1", "TIKTOKEN_CACHE_DIR": str(ranks(tmp_path))},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4_000:]
    by_last_turn = {messages[-1]["content"]: messages for messages in chat.requests}
    for row in given.rows["qualitative"]:
        for i, turn in enumerate(row["turns"]):
            users = [m["content"] for m in by_last_turn[turn] if m["role"] == "user"]
            assert users == row["turns"][: i + 1]
            assert [m["role"] for m in by_last_turn[turn]] == ["user", "assistant"] * i + ["user"]
    assert len(chat.requests) == sum(len(row["turns"]) for row in given.rows["qualitative"])
    assert json.loads((tmp_path / "artifacts" / "profile_export_aiperf.json").read_text("utf-8"))


def ranks(folder: Path) -> Path:
    """A cache of tiktoken with the ranks that our package carries, so that aiperf's own tokenizer needs no network."""
    packaged = _packaged_ranks("o200k_base")
    assert packaged is not None
    cache = folder / "ranks"
    cache.mkdir()
    (cache / _cache_key("o200k_base")).write_bytes(gzip.decompress(packaged.read_bytes()))
    return cache
