"""The commands `bench recipes …`, and the file of a run that they write."""

import json
import shlex
import tomllib

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bench.commands.recipes import recipes as command
from bench.config import BenchConfig, DataConfig, parse_config
from bench.recipes.shipped import list_recipes, recipe_config, recipe_names
from bench.recipes.text import as_toml
from tests.bench.test_recipes import ANY_PATHS

RECIPES = {recipe.name: recipe for recipe in list_recipes()}


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    """Options files go to a cache of the test's own."""
    monkeypatch.setenv("SPEEDBENCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", RECIPES)
def test_the_written_configuration_is_read_back_as_it_was(name):
    config = recipe_config(RECIPES[name], url_port=8123, data=DataConfig(path="rows"), paths=ANY_PATHS)
    assert parse_config(tomllib.loads(as_toml(config)), name) == config


# What a TOML file can hold: no surrogates. Keys are any text.
_texts = st.text(st.characters(codec="utf-8"), max_size=12)
_values = st.recursive(
    _texts | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)


@given(
    kwargs=st.dictionaries(_texts, _values, max_size=3), path=_texts, command=st.lists(_texts, min_size=1, max_size=3)
)
def test_any_configuration_survives_its_toml(kwargs, path, command):
    engine = {"dialect": "vllm", "url": "http://h", "chat_template_kwargs": kwargs, "serve": {"command": command}}
    config = BenchConfig.model_validate({"engine": engine, "data": {"path": path}, "sampling": {"top_p": 0.5}})
    assert parse_config(tomllib.loads(as_toml(config)), "x") == config


def run_command(*arguments):
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_print_gives_the_exact_commands():
    printed = run_command("--print", "speed-bench-qwen3-next-mtp")
    assert printed == run_command("show", "speed-bench-qwen3-next-mtp")
    server = next(line for line in printed.splitlines() if "sglang.launch_server" in line)
    assert shlex.split(server)[1:3] == ["-m", "sglang.launch_server"]
    assert "speedbench bench run speed-bench-qwen3-next-mtp.toml" in printed
    config = parse_config(tomllib.loads(printed.partition("# speed-bench-qwen3-next-mtp.toml\n")[2]), "printed")
    assert list(config.engine.serve.command) == shlex.split(server)


def test_what_is_not_named_yet_is_printed_as_such():
    assert "--checkout '<checkout>'" in run_command("show", "spec-bench-vicuna-7b-eagle")


def test_the_list_has_a_line_for_each_recipe_and_says_why_not():
    lines = run_command("list").splitlines()
    assert [line.split("\t")[0] for line in lines[1:]] == list(recipe_names())
    assert all(line.split("\t")[3] == "yes" or line.split("\t")[4] for line in lines[1:])
    rows = json.loads(run_command("list", "--json"))
    assert [row["name"] for row in rows] == list(recipe_names())
    assert all(row["runs"] == (not row["missing"]) for row in rows)


def test_a_path_of_a_name_that_no_recipe_takes_is_refused_with_those_that_it_does():
    refused = CliRunner().invoke(command, ["show", "spec-bench-vicuna-7b-sps", "--path=modle=x"])
    assert refused.exit_code == 2
    assert "nothing is named 'modle'; names are model, draft, tokenizer, checkout" in refused.stderr
    # REST's datastore is a name in the list of all, and none of another recipe's.
    assert CliRunner().invoke(command, ["list", "--path=datastore=x"]).exit_code == 0
    assert CliRunner().invoke(command, ["show", "spec-bench-vicuna-7b-sps", "--path=datastore=x"]).exit_code == 2


def test_a_written_configuration_names_its_recipe_and_what_is_missing_here(tmp_path):
    out = tmp_path / "new" / "run.toml"
    needs = RECIPES["spec-bench-vicuna-7b-sps"].engine.needs
    arguments = [f"--path={name}={ANY_PATHS[name]}" for name in (*needs, "tokenizer") if name in ANY_PATHS]
    result = CliRunner().invoke(
        command, ["write", "spec-bench-vicuna-7b-sps", "--out", str(out), "--dist", "D", *arguments]
    )
    assert result.exit_code == 0, result.output
    config = parse_config(tomllib.loads(out.read_text()), "written")
    assert (config.engine.recipe, config.data.path) == ("spec-bench-vicuna-7b-sps", "D")
    assert "not on this host" in result.stderr
