"""The lossless check from two configurations to its verdict, on a real engine that the check starts itself."""

import json
import socket
from contextlib import contextmanager

import pytest

from bench.config import DataConfig, LoadConfig, SamplingConfig
from bench.lossless.paired_runs import run_and_judge
from bench.lossless.runs import LOSSLESS
from bench.recipes.shipped import find_recipe, recipe_config

TEXTS = (
    "def area(width, height):\n    return",
    "Tell me about a mill that grinds only at night.",
    "for line in lines:\n    key, value = line.split('=')\n    ",
    "The harbour lay under fog, and the ferryman",
)


@contextmanager
def unseen(_: str):
    yield lambda *_: None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.slow
def test_llamacpp_with_a_drafter_is_lossless_greedy_and_sampled(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in TEXTS), "utf-8")
    configs = [
        recipe_config(
            find_recipe(f"toy-llamacpp-{mode}"),
            url_port=free_port(),
            data=DataConfig(format="jsonl", path=str(rows)),
            load=LoadConfig(concurrency=1, warmup_requests=1),
            sampling=SamplingConfig(max_tokens=60),
        )
        for mode in ("plain", "draft")
    ]
    found = run_and_judge(*configs, tmp_path / "out", unseen, samples=500, prompts=1)
    assert found["verdict"] == "equal", found
    assert (found["t0"]["equal"], found["t0"]["by"]) == (len(TEXTS), "token_ids")
    assert found["t0"]["speculation"]["requests"] == len(TEXTS)
    # An answer that ends inside a character has no ids, and one that ends with its first token no step.
    assert min(found["t1"]["n"]) > 475
    assert found["t1"]["speculation"]["requests"] > 475, "second tokens came from a step with a draft"
    assert found["t1"]["p_value"] > found["t1"]["alpha"]
    assert json.loads((tmp_path / "out" / LOSSLESS).read_text("utf-8"))["verdict"] == "equal"
    described = json.loads((tmp_path / "out" / "speculative-greedy" / "run.json").read_text("utf-8"))
    assert "--draft-length" in described["config"]["engine"]["flags"], "the run says how its server was started"
