"""Our recipes' commands, parsed by SGLang's own parser: today's, and the paper's version under its names of flags."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from bench.recipes.shipped import list_recipes, recipe_engine
from tests.peers.conftest import python_of

pytestmark = pytest.mark.peers

RECIPES = [recipe for recipe in list_recipes() if recipe.engine.dialect == "sglang"]
WRONG = {
    "flag": ["--model-path", "m", "--nonsense"],
    "name": ["--model-path", "m", "--speculative-algorithm", "NOSUCH"],
}


SIZES = (("tp_size", "tensor_parallel_size"), ("ep_size", "expert_parallel_size"))


def arguments_of(recipe, engine_version=""):
    """What follows the module in a recipe's command."""
    paths = {"model": "m", "draft": "d", "tokenizer": "t"}
    serve = recipe_engine(recipe, url_port=8123, paths=paths, engine_version=engine_version).serve
    assert serve.command[1:3] == ("-m", "sglang.launch_server")
    return list(serve.command[3:])


def parse(project, commands):
    """The parser of a project's wheel, in the environment of vLLM, where torch and transformers are."""
    (root,) = python_of(project).parents[1].glob("lib/python3*/site-packages")
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [python_of("vllm"), Path(__file__).with_name("parse_with_sglang.py"), root],
        input=json.dumps(commands),
        env={**keep, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def today():
    return parse("sglang", {recipe.name: arguments_of(recipe) for recipe in RECIPES} | WRONG)


@pytest.fixture(scope="module")
def papers():
    known = [recipe for recipe in RECIPES if "0.5.7" in recipe.engine.renamed]
    assert len(known) == 6, "the paper's Qwen columns and their baselines"
    return parse("sglang057", {recipe.name: arguments_of(recipe, "0.5.7") for recipe in known} | WRONG)


def check(recipe, result):
    """A command is taken whole, and its values arrive under the names that they should."""
    assert "error" not in result, result
    values = result["values"]
    # The older parser keeps them under its longer names.
    sizes = [values.get(short, values.get(long)) for short, long in SIZES]
    assert sizes == [recipe.parallelism.tp, recipe.parallelism.ep]
    assert values["max_running_requests"] == recipe.batch_size
    assert values["disable_radix_cache"] is True
    assert (values["speculative_algorithm"] is not None) == recipe.speculative
    if recipe.draft:
        assert values["speculative_draft_model_path"] == "d"
    if values.get("speculative_num_steps"):
        chain = values["speculative_num_steps"], values["speculative_eagle_topk"]
        assert chain == (recipe.draft_length, 1)
        assert values["speculative_num_draft_tokens"] == recipe.draft_length + 1


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_todays_parser_takes_the_command(today, recipe):
    check(recipe, today[recipe.name])
    assert today[recipe.name]["values"]["incremental_streaming_output"] is True


def test_todays_algorithms_are_the_methods(today):
    found = {recipe.name: today[recipe.name].get("algorithm") for recipe in RECIPES if recipe.speculative}
    assert found == {
        "qwen3-8b-sglang-dflash": "DFLASH",
        "qwen3-8b-sglang-dspark": "DSPARK",
        "speed-bench-qwen3-235b-draft": "STANDALONE",
        "speed-bench-qwen3-235b-eagle3": "EAGLE3",
        "speed-bench-qwen3-next-eagle3": "EAGLE3",
        # SGLang's name of native MTP is one of EAGLE's.
        "speed-bench-qwen3-next-mtp": "EAGLE",
    }
    values = today["qwen3-8b-sglang-dspark"]["values"], today["qwen3-8b-sglang-dflash"]["values"]
    assert (values[0]["speculative_dspark_block_size"], values[1]["speculative_dflash_block_size"]) == (7, 16)


def test_the_papers_version_takes_the_command_under_its_names(papers):
    for recipe in RECIPES:
        if recipe.name in papers:
            check(recipe, papers[recipe.name])
            assert papers[recipe.name]["values"]["stream_output"] is True
            assert papers[recipe.name]["values"]["cuda_graph_max_bs"] == recipe.batch_size


def test_the_parsers_refuse_what_they_do_not_know(today, papers):
    assert "--nonsense" in today["flag"]["error"]
    assert "--nonsense" in papers["flag"]["error"]
    assert "NOSUCH" in today["name"]["error"]
    assert "NOSUCH" in papers["name"]["error"]
