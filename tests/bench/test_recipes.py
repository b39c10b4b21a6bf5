"""Every shipped recipe: what it says, the run that it becomes, what its flags were held against, what is refused."""

import re
from pathlib import Path

import pytest

from bench import spec_bench_loaders
from bench.config import DataConfig, LoadConfig, SamplingConfig
from bench.embedded.__main__ import main as embedded
from bench.engines.registry import ENGINES
from bench.errors import ConfigError
from bench.inprocess.commands import make_parser as in_process_parser
from bench.recipes import host as recipe_host
from bench.recipes.shipped import find_recipe, list_recipes, parse_recipe, recipe_config, recipe_engine, runnable

RECIPES = {recipe.name: recipe for recipe in list_recipes()}
ANY_PATHS = {
    name: f"/somewhere/{name}"
    for name in (
        "checkout", "datastore", "tokenizer", "model", "draft",
        "toy_target_hf", "toy_draft_hf", "toy_target_gguf", "toy_draft_gguf",
    )
}  # fmt: skip


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    """Options files go to a cache of the test's own."""
    monkeypatch.setenv("SPEEDBENCH_CACHE", str(tmp_path / "cache"))


def command_of(name, **more):
    serve = recipe_engine(RECIPES[name], url_port=8123, paths=ANY_PATHS, **more).serve
    assert serve is not None
    return list(serve.command)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_makes_a_run_of_a_known_dialect_with_every_placeholder_filled(name):
    config = recipe_config(RECIPES[name], url_port=8123, data=DataConfig(path="rows"), paths=ANY_PATHS)
    serve = config.engine.serve
    assert config.engine.dialect in ENGINES
    assert config.engine.recipe == name
    assert "8123" in serve.command
    assert not [part for part in (*serve.command, *serve.env.values()) if re.search(r"(?<!\")\{[a-z_]+\}", part)]
    assert config.load.concurrency == RECIPES[name].batch_size
    assert config.engine.speculative == RECIPES[name].speculative


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_without_drafting_starts_a_server_without_a_word_of_it(name):
    recipe = RECIPES[name]
    text = " ".join([*recipe.engine.command, recipe.engine.options]).replace("spec_bench", "").replace("specbench", "")
    speaks = bool(re.search(r"spec[a-z]*[-_](config|algorithm)|--draft|--ngram|inference_(?!baseline)", text))
    assert speaks == recipe.speculative


@pytest.mark.parametrize("name", RECIPES)
def test_the_kinds_agree_with_each_other(name):
    method = RECIPES[name].method
    assert (method.verification == "none") == (method.drafting == "none")
    assert method.strict_greedy == "yes"
    if method.verification == "strict_greedy":
        assert method.stochastic == "no", "a method that only compares with the likeliest token cannot sample"


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].draft_length])
def test_another_draft_length_reaches_the_server(name):
    changed = set(command_of(name, draft_length=2)) ^ set(command_of(name))
    assert changed, "neither a flag nor the name of the options file changed"
    engine = recipe_engine(RECIPES[name], url_port=8123, paths=ANY_PATHS, draft_length=2)
    assert engine.draft_length == 2


def test_the_options_file_holds_what_the_command_cannot_and_its_name_changes_with_it():
    command = command_of("speed-bench-llama-3.3-70b-eagle3")
    path = Path(command[command.index("--extra_llm_api_options") + 1])
    text = path.read_text()
    assert "  max_draft_len: 3\n  speculative_model_dir: /somewhere/draft\n" in text
    assert "max_batch_size: 32" in text
    assert path.name != Path(command_of("speed-bench-llama-3.3-70b-eagle3", draft_length=4)[-1]).name


def test_every_target_has_a_baseline_on_the_same_engine_and_command():
    for name, recipe in RECIPES.items():
        plain = RECIPES[re.sub(r"-[a-z0-9]+$", "-plain", name)]
        assert (plain.target, plain.engine.dialect, plain.parallelism) == (
            recipe.target,
            recipe.engine.dialect,
            recipe.parallelism,
        )
        assert not plain.speculative


def test_an_older_engine_gets_its_own_names_of_flags():
    command = command_of("speed-bench-qwen3-235b-eagle3", engine_version="0.5.7")
    assert "--stream-output" in command
    assert "--incremental-streaming-output" not in command
    with pytest.raises(ConfigError, match=r"no flags of version 0\.1; it knows those of 0\.5\.7"):
        command_of("speed-bench-qwen3-235b-eagle3", engine_version="0.1")


def test_the_name_of_a_recipe_is_no_part_of_a_runs_digest():
    config = recipe_config(RECIPES["toy-llamacpp-plain"], url_port=1, data=DataConfig(path="x"), paths=ANY_PATHS)
    unnamed = config.model_copy(update={"engine": config.engine.model_copy(update={"recipe": ""})})
    other = config.model_copy(update={"engine": config.engine.model_copy(update={"model": "another"})})
    assert config.digest() == unnamed.digest() != other.digest()


def test_load_and_sampling_of_the_caller_take_the_place_of_the_recipes():
    load, sampling = LoadConfig(concurrency=7), SamplingConfig(max_tokens=9, temperature=0.5)
    config = recipe_config(
        RECIPES["toy-llamacpp-draft"],
        url_port=1,
        data=DataConfig(path="x"),
        load=load,
        sampling=sampling,
        paths=ANY_PATHS,
    )
    assert (config.load, config.sampling) == (load, sampling)


# -- flags

# Read in tensorrt_llm/commands/serve.py at 00209af149e7; nobody here can install the package and have it parsed.
TRTLLM_OPTIONS = {
    "--backend", "--host", "--port", "--tp_size", "--ep_size", "--max_batch_size", "--max_num_tokens",
    "--extra_llm_api_options",
}  # fmt: skip
# Read in its documentation of speculative decoding at 04c8822cc42f, which takes the older names too.
TRTLLM_SPECULATION = {
    "NGram": {"max_draft_len", "max_matching_ngram_size", "is_keep_all", "is_use_oldest", "is_public_pool"},
    "DraftTarget": {"max_draft_len", "speculative_model_dir"},
    "Eagle": {"max_draft_len", "speculative_model_dir"},
    "MTP": {"num_nextn_predict_layers"},
}


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].engine.dialect == "trtllm"])
def test_trtllms_flags_are_among_those_that_were_read_and_say_so(name):
    recipe = RECIPES[name]
    assert {part for part in recipe.engine.command if part.startswith("--")} <= TRTLLM_OPTIONS
    assert recipe.flags.how == "read"
    below = recipe.engine.options.partition("speculative_config:\n")[2]
    keys = dict(line.strip().split(": ") for line in below.splitlines())
    assert (below == "") == (not recipe.speculative)
    if below:
        assert set(keys) - {"decoding_type"} == TRTLLM_SPECULATION[keys["decoding_type"]]


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].engine.dialect == "inprocess"])
def test_the_in_process_servers_own_parser_takes_the_commands(name):
    command = command_of(name)
    options = in_process_parser().parse_args(command[2:])
    assert Path(command[1], "__main__.py").is_file()
    assert options.port == 8123
    if options.command == "specbench":
        assert options.method.startswith("evaluation.inference_")
        loader = getattr(spec_bench_loaders, options.loader.partition(":")[2])
        given = {pair.partition("=")[0] for pair in options.load_arg}
        assert given <= set(loader.__kwdefaults__ or {}) | {"draft", "datastore"}
        assert options.chain == (RECIPES[name].method.verification != "token_tree" and "lookahead" not in name)


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].engine.dialect == "llamacpp"])
def test_the_embedded_servers_own_parser_takes_the_commands(name):
    # Parsed only: nothing is served.
    assert embedded.make_context("embedded", command_of(name)[3:]).params["port"] == 8123


# -- refusals


def test_an_unknown_recipe_is_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"no recipe 'toy-nothing'; `speedbench bench recipes list` shows them"):
        find_recipe("toy-nothing")


def test_a_plain_recipe_takes_no_draft_length():
    with pytest.raises(ConfigError, match="toy-llamacpp-plain: drafts nothing"):
        recipe_engine(RECIPES["toy-llamacpp-plain"], url_port=1, paths=ANY_PATHS, draft_length=3)


def test_what_only_the_user_can_name_is_asked_for():
    with pytest.raises(
        ConfigError, match=r"spec-bench-vicuna-7b-rest: nothing fills \{checkout\}; give it with --path"
    ):
        recipe_engine(RECIPES["spec-bench-vicuna-7b-rest"], url_port=1)


def values_of(name):
    return RECIPES[name].model_dump(mode="json", exclude_none=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, r"colour: Extra inputs"),
        ({"method": {"name": "x"}}, r"method\.drafting: Field required"),
        ({"flags": {"how": "parsed"}}, r"flags: .*flags\.against and flags\.version must be given"),
        ({"draft_length": 3}, r"recipe: .*without drafting has draft_length = 0"),
        ({"name": "Not A Name"}, r"name: String should match"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_refused_by_its_field(change, message):
    with pytest.raises(ConfigError, match=message):
        parse_recipe({**values_of("toy-llamacpp-plain"), **change}, "recipe x")


# -- this host


def host(monkeypatch, *gigabytes, packages=True, on_disk=True):
    monkeypatch.setattr(recipe_host, "_gpu_memory_gb", lambda: gigabytes)
    monkeypatch.setattr(recipe_host, "_has_package", lambda *_: packages)
    monkeypatch.setattr(recipe_host, "local_model", lambda _: "/models" if on_disk else None)
    monkeypatch.setattr(recipe_host.shutil, "which", lambda program: f"/bin/{program}" if packages else None)


def test_a_host_with_all_that_it_needs_runs_a_recipe(monkeypatch):
    host(monkeypatch, 192.0)
    assert runnable(RECIPES["speed-bench-llama-3.3-70b-eagle3"]) == (True, "")


def test_all_that_a_host_lacks_is_told_at_once(monkeypatch):
    host(monkeypatch, packages=False, on_disk=False)
    runs, why = runnable(RECIPES["speed-bench-llama-3.3-70b-eagle3"])
    assert not runs
    assert why == (
        "needs 1 GPU with more than 141 GB (weights alone), this host has none; trtllm-serve is not on the path; "
        "meta-llama/Llama-3.3-70B-Instruct is not on this disk; "
        "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B is not on this disk"
    )


def test_a_gpu_that_is_too_small_does_not_count(monkeypatch):
    host(monkeypatch, 80.0)
    assert runnable(RECIPES["speed-bench-llama-3.3-70b-plain"])[1].endswith(
        "(weights alone), the largest here has 80 GB"
    )
    host(monkeypatch, *[80.0] * 7, 24.0)
    assert not runnable(RECIPES["speed-bench-qwen3-235b-plain"])[0]
    host(monkeypatch, *[80.0] * 8)
    assert runnable(RECIPES["speed-bench-qwen3-235b-plain"])[0]


def test_what_the_user_names_is_not_missing(monkeypatch):
    host(monkeypatch, 24.0, on_disk=False)
    assert "needs --path checkout=…" in runnable(RECIPES["spec-bench-vicuna-7b-pld"])[1]
    assert runnable(RECIPES["spec-bench-vicuna-7b-pld"], ANY_PATHS) == (True, "")


def test_an_engines_own_interpreter_is_named_by_the_environment(monkeypatch):
    monkeypatch.setenv("SPEEDBENCH_VLLM_PYTHON", "engines/bin/python")
    assert command_of("toy-vllm-draft")[0] == str(Path("engines/bin/python").absolute())
    assert command_of("toy-llamacpp-draft")[0] != command_of("toy-vllm-draft")[0]
    assert "set SPEEDBENCH_VLLM_PYTHON" in runnable(RECIPES["toy-vllm-draft"])[1], "there is no such interpreter"
