"""Our recipes' commands, parsed by vLLM's own parser; their speculation checked as vLLM checks it before it loads."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from bench.recipes.shipped import list_recipes, recipe_engine

RECIPES = [recipe for recipe in list_recipes() if recipe.engine.dialect == "vllm"]

# Small configurations of the same architectures: what vLLM's check reads.
QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 512, "hidden_size": 64, "head_dim": 32,
    "num_hidden_layers": 6, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 128,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "hidden_act": "silu", "torch_dtype": "float32",
}  # fmt: skip
DRAFTS = {
    "dflash": {
        "architectures": ["DFlashDraftModel"],
        "block_size": 16,
        "dflash_config": {"mask_token_id": 3, "target_layer_ids": [1, 3]},
    },
    "dspark": {
        "architectures": ["Qwen3DSparkModel"],
        "block_size": 7,
        "mask_token_id": 3,
        "target_layer_ids": [1, 3],
        "markov_rank": 8,
        "markov_head_type": "vanilla",
    },
    "pard": {"pard_token": 3},
}
# Method, length, and whether vLLM drafts all of a step at once.
METHODS = {
    "qwen3-8b-vllm-dflash": ("dflash", 15, True),
    "qwen3-8b-vllm-dspark": ("dspark", 7, True),
    "qwen3-8b-vllm-pard": ("draft_model", 12, True),
    "qwen3-8b-vllm-suffix": ("suffix", 24, False),
    "toy-vllm-draft": ("draft_model", 3, False),
    "toy-vllm-ngram": ("ngram", 3, False),
}


def write_config(folder, **changes):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**QWEN3, **changes}))
    return str(folder)


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Every recipe's arguments with models of configurations alone, and three that vLLM must refuse."""
    root = tmp_path_factory.mktemp("configurations")
    target = write_config(root / "target")
    drafts = {name: write_config(root / name, num_hidden_layers=2, **more) for name, more in DRAFTS.items()}
    found = {}
    for recipe in RECIPES:
        draft = drafts.get(recipe.name.rpartition("-")[2], drafts["pard"])
        paths = {"model": target, "draft": draft, "toy_target_hf": target, "toy_draft_hf": draft, "tokenizer": target}
        if recipe.name.startswith("toy-"):
            paths |= {"toy_draft_hf": write_config(root / f"{recipe.name}-draft", num_hidden_layers=2)}
        serve = recipe_engine(recipe, url_port=8123, paths=paths).serve
        assert serve.command[1:3] == ("-m", "vllm.entrypoints.openai.api_server")
        arguments = list(serve.command[3:])
        if recipe.name.startswith("toy-"):
            arguments[arguments.index("--max-model-len") + 1] = str(QWEN3["max_position_embeddings"])
        found[recipe.name] = arguments
    plain = found["qwen3-8b-vllm-plain"]
    found["wrong flag"] = [*plain, "--nonsense"]
    found["wrong method"] = [*plain, "--speculative-config", '{"method": "nosuch", "num_speculative_tokens": 3}']
    found["wrong field"] = [*plain, "--speculative-config", '{"method": "ngram", "nosuch": 3}']
    return found


@pytest.fixture(scope="module")
def understood(commands):
    """What vLLM understood; its own environment, one import of it for all."""
    named = os.environ.get("SPEEDBENCH_VLLM_PYTHON")
    assert named, "SPEEDBENCH_VLLM_PYTHON names the interpreter; `make test-engines`"
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [Path(named).absolute(), Path(__file__).with_name("parse_with_vllm.py")],
        input=json.dumps(commands),
        env={**keep, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_vllm_takes_the_command_and_understands_it(recipe, understood, commands):
    result = understood[recipe.name]
    assert "error" not in result, result
    assert (result["host"], result["port"]) == ("127.0.0.1", 8123)
    assert (result["tensor_parallel_size"], result["max_num_seqs"]) == (recipe.parallelism.tp, recipe.batch_size)
    assert result["prefix_caching"] is False
    spec = result["speculation"]
    assert (spec is not None) == recipe.speculative
    if spec is not None:
        assert (spec["method"], spec["length"], spec["parallel_drafting"]) == METHODS[recipe.name]
        assert result["metrics"] == "detailed"
    if recipe.draft:
        assert json.dumps({"model": spec["draft"]})[1:-1] in commands[recipe.name][-1]


@pytest.mark.parametrize("wrong", ["wrong flag", "wrong method", "wrong field"])
def test_vllm_refuses_what_it_does_not_know(understood, wrong):
    assert "nosuch" in understood[wrong]["error"] or "--nonsense" in understood[wrong]["error"]
