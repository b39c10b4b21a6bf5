"""The lossless check over folders and configurations, against the simulator."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bench.cli import bench
from bench.config import SamplingConfig
from bench.engines.registry import find_engine
from bench.errors import UnlikeRuns
from bench.lossless.runs import LOSSLESS
from bench.probe import make_composer
from bench.prompts import Prompt
from bench.results import RunFolder
from bench.runner import run
from bench.simulator.server import Simulation
from sources.errors import Refusal


def quiet(*_: int) -> None:
    """Progress that nobody sees."""


def call(*arguments: object):
    return CliRunner().invoke(bench, ["lossless", *(str(argument) for argument in arguments)])


@pytest.fixture
def ran(served, configured, process, tmp_path):
    """Run a simulated engine into a folder; without rates it does not speculate."""

    def make(name: str, *, rates: tuple[float, ...], seed: int = 0, dialect: str = "vllm", **sections: dict):
        simulated = replace(process, acceptance_rates=rates, seed=seed)
        with served(Simulation("openai" if dialect == "openai" else dialect, simulated)) as simulator:
            engine = {"draft_length": len(rates)}
            run(configured(simulator.url, dialect, engine=engine, **sections), tmp_path / name, quiet)
        return tmp_path / name

    return make


def test_folders_of_finished_runs_get_their_verdict(ran, process):
    plain, spec = ran("plain", rates=()), ran("spec", rates=process.acceptance_rates)
    result = call(plain, spec)
    assert result.exit_code == 0, result.output
    assert "t0\tshare_equal\t1.0000" in result.output
    written = json.loads((spec / LOSSLESS).read_text("utf-8"))
    assert (written["verdict"], written["t0"]["conversations"]) == ("equal", 30)
    assert written["t0"]["speculation"]["verify_steps"] > 100
    assert written["t1"] == {"verdict": "not shown", "reason": "no sampled runs were given"}
    assert not (plain / LOSSLESS).exists()
    assert json.loads(call(plain, spec, "--json").output) == written


def test_an_engine_that_answers_otherwise_differs_and_fails_where_asked(ran, process):
    plain, spec = ran("plain", rates=()), ran("spec", rates=process.acceptance_rates, seed=5)
    result = call(plain, spec, "--fail-on", "differs")
    assert result.exit_code == 3
    assert "conversation_id\trepeat\tturn\tposition" in result.output
    assert json.loads((spec / LOSSLESS).read_text("utf-8"))["t0"]["equal"] == 0
    assert call(plain, spec, "--fail-on", "not-shown").exit_code == 0


def test_an_engine_without_ids_is_compared_by_text(ran, process):
    plain, spec = ran("plain", rates=(), dialect="openai"), ran("spec", rates=(0.5,), dialect="openai")
    result = call(plain, spec, "--json")
    found = json.loads(result.output)["t0"]
    assert (found["verdict"], found["by"], found["speculation"]) == ("equal", "text", None)


def test_runs_that_are_not_a_pair_are_refused_in_one_line(ran, process):
    plain, spec = ran("plain", rates=()), ran("spec", rates=(0.5,))
    warm = ran("warm", rates=(0.5,), sampling={"temperature": 0.7})
    with pytest.raises(UnlikeRuns, match=r"draft_length is 1; give a run with 0 first"):
        raise call(spec, plain).exception
    with pytest.raises(UnlikeRuns, match=r"draft_length is 0; give the run with speculation second"):
        raise call(plain, plain).exception
    with pytest.raises(UnlikeRuns, match=r"differ in config.sampling.temperature: 0.0 and 0.7; run them alike"):
        raise call(plain, warm).exception
    with pytest.raises(Refusal, match=r"--sampled takes runs of the other kind"):
        raise call(plain, spec, "--sampled", plain, spec).exception
    with pytest.raises(Refusal, match=r"run.json: not there; is .* the folder of a finished run"):
        raise call(plain.parent, spec).exception
    (spec / "summary.json").unlink()
    with pytest.raises(Refusal, match=r"summary.json: not there; is .* the folder of a finished run"):
        raise call(plain, spec).exception


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{plain}", "{config}"], "two folders of finished runs, or two CONFIG files"),
        (["{config}", "{config}"], "two CONFIG files need --out"),
        (["{plain}", "{plain}", "--out", "x"], "--out is for two CONFIG files"),
        (["{plain}", "{plain}", "--alpha", "1"], "--alpha must be in (0, 1)"),
        (["{plain}", "{plain}", "--prompts", "0"], "--prompts at least 1"),
    ],
)
def test_wrong_usage_says_what_is_right(arguments, said, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("", "utf-8")
    places = {"plain": str(tmp_path), "config": str(config)}
    result = call(*(argument.format(**places) for argument in arguments))
    assert result.exit_code == 2
    assert said in result.output


def toml(url: str, rows, tokenizer, k: int) -> str:
    return (
        f'[engine]\ndialect = "vllm"\nurl = "{url}"\ntokenizer = "{tokenizer}"\ndraft_length = {k}\n'
        f'[data]\nformat = "jsonl"\npath = "{rows}"\n[load]\nconcurrency = 8\n[client]\nworkers = 1\n'
    )


def test_two_configurations_are_run_greedy_and_sampled(served, process, rows, tokenizer, tmp_path):
    base, fast = tmp_path / "plain.toml", tmp_path / "spec.toml"
    with (
        served(Simulation("vllm", replace(process, acceptance_rates=()))) as plain,
        served(Simulation("vllm", process)) as spec,
    ):
        base.write_text(toml(plain.url, rows, tokenizer, 0), "utf-8")
        fast.write_text(toml(spec.url, rows, tokenizer, 3), "utf-8")
        result = call(base, fast, "--out", tmp_path / "out", "--samples", 30, "--prompts", 3, "--json")
        sent = len(spec.server.log)
        again = call(base, fast, "--out", tmp_path / "out", "--samples", 30, "--prompts", 3, "--json")
        resent = len(spec.server.log) - sent
    assert result.exit_code == 0, result.exception
    found = json.loads(result.output)
    assert (found["verdict"], found["t0"]["verdict"]) == ("equal", "equal")
    # The simulator takes no seed, and so gives copies of one answer: no sample, and the check says so.
    assert found["t1"]["verdict"] == "not shown"
    assert "one seed" in found["t1"]["reason"]
    folder = RunFolder(tmp_path / "out" / "speculative-sampled")
    prompts = [trace.prompt_sha256 for trace in folder.traces() if not trace.warmup]
    assert (len(prompts), len(set(prompts))) == (30, 3)
    assert folder.read_json("run.json")["config"]["sampling"]["temperature"] == 1.0
    for name in ("", "speculative-greedy", "speculative-sampled"):
        assert json.loads((tmp_path / "out" / name / LOSSLESS).read_text("utf-8")) == found
    assert json.loads(again.output) == found
    assert resent < sent / 4, "what is there is not sent again"


def test_one_server_that_neither_starts_cannot_be_both(rows, tokenizer, tmp_path):
    base, fast = tmp_path / "plain.toml", tmp_path / "spec.toml"
    base.write_text(toml("http://127.0.0.1:9", rows, tokenizer, 0), "utf-8")
    fast.write_text(toml("http://127.0.0.1:9", rows, tokenizer, 3), "utf-8")
    with pytest.raises(Refusal, match=r"both configurations speak to http://127\.0\.0\.1:9"):
        raise call(base, fast, "--out", tmp_path / "out").exception


def test_every_sampled_request_has_a_seed_of_its_own_and_greedy_ones_share_theirs(configured):
    def seeds(temperature: float, draft_length: int) -> list[int]:
        config = configured("http://x", engine={"draft_length": draft_length})
        config = config.model_copy(update={"sampling": SamplingConfig(temperature=temperature, seed=4)})
        composer = make_composer(config, find_engine("vllm"), "")
        prompt = Prompt((), (1, 2, 3))
        return [json.loads(composer.body(prompt, f"q-{repeat}"))["seed"] for repeat in range(50)]

    assert set(seeds(0.0, 3)) == {4}
    drawn = seeds(1.0, 3)
    assert len(set(drawn)) == 50
    assert all(0 <= seed < 2**31 for seed in drawn)
    assert drawn == seeds(1.0, 3), "the same run draws the same"
    assert not set(drawn) & set(seeds(1.0, 0)), "a run without speculation draws independently"
