"""Sweep files and their points, and what a sweep over the simulator writes; no engine is needed."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from click.testing import CliRunner

from bench.cli import bench
from bench.config import DataConfig, parse_config
from bench.errors import BenchError, ConfigError
from bench.pruned import training_counts
from bench.random_prompts import consecutive_prompt
from bench.report.page import render_report
from bench.report.results import read_results
from bench.results import RunFolder
from bench.simulator.process import Process
from bench.simulator.server import Simulation
from bench.split import load_split
from bench.sweeps.file import experiment_names, experiment_titles, load_sweep, parse_vocabulary
from bench.sweeps.points import TOY_NOTE, points
from bench.sweeps.rows import read_sweep
from bench.sweeps.run import run_sweep
from bench.sweeps.samples import with_samples
from bench.toy.files import hf_folder
from sources.cache_root import cache_root
from tests.bench.experiment_rows import believe_the_client, write_rows


def quiet(*_: int) -> None:
    """Progress that nobody sees."""


def call(*arguments: object):
    return CliRunner().invoke(bench, [str(argument) for argument in arguments], catch_exceptions=True)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Recipes write options files into the cache; not into anybody's own."""
    monkeypatch.setenv("SPEEDBENCH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


# ---- files


@pytest.mark.parametrize("name", experiment_names())
def test_a_shipped_experiment_is_a_sweep_that_names_itself_and_says_what_it_asks(name):
    config = load_sweep(name)
    assert config.sweep is not None
    assert (config.name, config.sweep.experiment) == (name, name)
    assert len(experiment_titles()[name]) > 40
    names = [point.name for point in points(config)]
    assert len(names) == len(set(names))
    assert all(point.config.note == TOY_NOTE for point in points(config)), "the shipped servers are toys"


def test_the_points_of_a_sweep_lie_on_every_axis():
    config = load_sweep("temperature", data="dist", configs=("qualitative", "throughput_1k"))
    assert config.sweep is not None
    sweep = config.sweep.model_copy(update={"repeats": 2, "concurrency": (1, 8)})
    found = points(config.model_copy(update={"sweep": sweep}), port=9000)
    assert len(found) == 3 * 2 * 2 * 3 * 2
    one = next(p for p in found if p.name == "draft-throughput_1k-t0.5-c8-r1")
    assert one.to_json() == {
        "point": one.name,
        "server": "draft",
        "recipe": "toy-llamacpp-draft",
        "data": "",
        "config": "throughput_1k",
        "temperature": 0.5,
        "concurrency": 8,
        "draft_length": 3,
        "repeat": 1,
    }
    command = " ".join(one.config.engine.flags)
    assert "--port 9000" in command
    assert "--parallel 8" in command, "the server has room for every stream"


def test_a_variant_replaces_fields_of_the_data_and_random_prompts_are_as_long_as_the_bucket():
    config = load_sweep("random_tokens", data="dist", configs=("throughput_1k",))
    found = {point.data: point.config.data for point in points(config) if point.server == "draft"}
    assert found["real"].format == "dist"
    assert (found["random"].format, found["random"].random_isl) == ("random", 1000)
    assert found["random"].random_tokenizer == next(iter(points(config))).config.engine.tokenizer
    values = config.model_dump() | {"sweep": {**config.model_dump()["sweep"], "data": {"x": {"limt": 3}}}}
    with pytest.raises(ConfigError, match=r"sweep\.data\.x: limt: Extra inputs"):
        points(parse_config(values, "test"))


def test_recipes_take_the_place_of_the_servers_with_draft_lengths_of_their_own():
    config = load_sweep("speed_up", data="dist", recipes=("toy-llamacpp-plain", "toy-llamacpp-draft=5"))
    found = {point.server: point.config.engine.draft_length for point in points(config)}
    assert found == {"toy-llamacpp-plain": 0, "toy-llamacpp-draft-k5": 5}


def test_a_file_is_read_as_rows_of_turns_and_as_spec_benchs_questions_in_its_experiment(tmp_path):
    path = tmp_path / "question.jsonl"
    path.write_text("", "utf-8")
    assert load_sweep("temperature", data=str(path)).data.format == "jsonl"
    assert load_sweep("spec_bench", data=str(path)).data.format == "spec_bench"
    assert load_sweep("spec_bench", data="org/dist@1").data.format == "dist"


def test_the_rows_that_ship_are_cut_in_the_served_models_tokens(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("bench.demo.rows.demo_rows", lambda tokenizer, out: asked.append(tokenizer) or out / "full")
    config = with_samples(load_sweep("temperature"))
    assert config.data.path.endswith("full")
    assert asked == [hf_folder("target", cache_root()) / "tokenizer.json"]
    own = load_sweep("temperature", data="dist")
    assert with_samples(own) == own
    values = load_sweep("temperature").model_dump() | {"sweep": {"servers": []}}
    values["engine"] = {"dialect": "vllm", "url": "http://h", "tokenizer": str(tmp_path)}
    with pytest.raises(BenchError, match="sample rows are cut by it"):
        with_samples(parse_config(values, "test"))


def test_what_is_wrong_with_a_sweep_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing: No such file .* give a TOML file, or one of categories"):
        load_sweep("nothing")
    with pytest.raises(ConfigError, match="the draft length after = must be a number"):
        load_sweep("speed_up", recipes=("toy-llamacpp-draft=x",))
    path = tmp_path / "own.toml"
    path.write_text('[sweep]\nconcurrency = [1]\n[[sweep.servers]]\nname = "a"\nurl = "http://h"\n', "utf-8")
    with pytest.raises(ConfigError, match="no table \\[engine\\], and not every server of \\[sweep\\] names a recipe"):
        load_sweep(str(path))
    path.write_text('[data]\npath = "x"\n', "utf-8")
    with pytest.raises(ConfigError, match="has no table \\[sweep\\]"):
        load_sweep(str(path))
    path.write_text("= 3", "utf-8")
    with pytest.raises(ConfigError, match="not TOML"):
        load_sweep(str(path))


def test_experiments_are_listed_and_printed_to_be_changed():
    listed = call("sweep", "--list")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == list(experiment_names())
    printed = call("sweep", "temperature", "--print")
    assert printed.stdout.startswith("# What is left of acceptance")
    assert call("sweep").exit_code == 2
    assert call("sweep", "temperature").exit_code == 2


def test_a_sweep_none_of_whose_servers_runs_here_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.sweeps.run.runnable", lambda *_: (False, "needs 8 GPUs"))
    with pytest.raises(BenchError, match="no server of this sweep runs here: plain: needs 8 GPUs; draft: needs 8 GPUs"):
        run_sweep(load_sweep("speed_up", data="dist"), tmp_path / "out", quiet)
    assert not (tmp_path / "out").exists()


# ---- rows


def test_only_the_categories_that_are_asked_for_are_sent(tmp_path):
    rows = write_rows(tmp_path / "rows")
    split = load_split(DataConfig(path=str(rows), config="throughput_256", categories=("mixed",)))
    assert {c.slices["tier"] for c in split.conversations} == {"mixed"}
    assert split.shortfall() == {}, "what was not asked for is not missing"
    with pytest.raises(BenchError, match="no row of 'low'; there are high_entropy, low_entropy, mixed"):
        load_split(DataConfig(path=str(rows), config="throughput_256", categories=("low",)))


def test_spec_benchs_config_has_its_six_tasks_however_it_is_read(tmp_path):
    split = load_split(DataConfig(path=str(write_rows(tmp_path / "rows")), config="spec_bench"))
    tasks = {c.slices["category"] for c in split.conversations}
    assert tasks == {"mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag"}
    assert {c.slices["sub_category"] for c in split.conversations} == {"", "writing", "roleplay"}


class Letters:
    """A vocabulary of letters in which two ids are one sign, so that a text is encoded to fewer ids than it had."""

    def encode(self, text):
        return [ord(c) - 97 for c in text]

    def decode(self, ids):
        return "".join("" if i % 5 == 4 else chr(97 + i) for i in ids)

    def size(self):
        return 26


def test_a_random_prompt_is_consecutive_ids_that_its_tokenizer_can_make():
    text, ids = consecutive_prompt(Letters(), 22, 10)
    assert ids == (22, 23, 25, 0, 1, 2, 3, 5, 6, 7), "what decodes to nothing is gone"
    assert text == "wxzabcdfgh"
    assert len(consecutive_prompt(Letters(), 0, 500)[1]) == 500


def test_random_prompts_over_a_vocabulary_keep_their_length_and_their_text(tokenizer):
    data = DataConfig(format="random", random_rows=3, random_isl=40, random_tokenizer=str(tokenizer), seed=5)
    split = load_split(data)
    assert split.synthetic
    assert [len(c.random_ids) for c in split.conversations] == [40] * 3
    assert all(c.turns[0] for c in split.conversations)
    assert load_split(data).sha256 == split.sha256
    with pytest.raises(BenchError, match=r"no tokenizer\.json"):
        load_split(data.model_copy(update={"random_tokenizer": "/none"}))


# ---- token counts of a training text


def test_counts_come_from_json_from_arrays_and_from_text(tmp_path, tokenizer):
    (tmp_path / "c.json").write_text('{"7": 3, "2": 0}', "utf-8")
    assert training_counts(parse_vocabulary(str(tmp_path / "c.json"), "", "4"), "") == {7: 3, 2: 0}
    (tmp_path / "l.json").write_text("[5, 0, 2]", "utf-8")
    assert training_counts(parse_vocabulary(str(tmp_path / "l.json"), "", "4"), "") == {0: 5, 1: 0, 2: 2}
    np.save(tmp_path / "c.npy", np.array([5, 0, 2]))
    assert training_counts(parse_vocabulary(str(tmp_path / "c.npy"), "", "4"), "") == {0: 5, 1: 0, 2: 2}
    np.save(tmp_path / "ids.npy", np.array([[3, 3], [9, 3]], np.uint32))
    assert training_counts(parse_vocabulary("", str(tmp_path / "ids.npy"), "4"), "") == {3: 3, 9: 1}
    (tmp_path / "t.txt").write_text("aab", "utf-8")
    counts = training_counts(parse_vocabulary("", str(tmp_path / "t.txt"), "4"), str(tokenizer))
    assert sorted(counts.values()) == [1, 2]


@pytest.mark.parametrize(
    ("counts", "corpus", "top_k", "says"),
    [
        ("a", "b", "1", "not both"),
        ("", "", "1", "not both"),
        ("a", "", "x", "numbers with commas"),
        ("a", "", "0", "greater than or equal to 1"),
    ],
)
def test_sources_and_sizes_that_cannot_be_are_refused(counts, corpus, top_k, says):
    with pytest.raises(ConfigError, match=says):
        parse_vocabulary(counts, corpus, top_k)


def test_files_that_are_no_counts_are_refused(tmp_path):
    for name, text in (("a.json", "{"), ("b.json", '{"x": 1}')):
        (tmp_path / name).write_text(text, "utf-8")
        with pytest.raises(ConfigError, match="not a table of id to count"):
            training_counts(parse_vocabulary(str(tmp_path / name), "", "1"), "")
    with pytest.raises(ConfigError, match="No such file"):
        training_counts(parse_vocabulary(str(tmp_path / "none.json"), "", "1"), "")
    np.save(tmp_path / "f.npy", np.array([0.5]))
    with pytest.raises(ConfigError, match="ids and counts are integers"):
        training_counts(parse_vocabulary("", str(tmp_path / "f.npy"), "1"), "")
    with pytest.raises(ConfigError, match=r"no tokenizer\.json"):
        training_counts(parse_vocabulary("", str(tmp_path), "1"), "")


# ---- over the simulator


def test_tensorrt_llms_gauge_splits_the_step_of_each_task(served, configured, process, tmp_path):
    simulation = Simulation("trtllm", process, step_s=0.01, draft_share=0.25)
    with served(simulation) as simulator:
        config = configured(simulator.url, "trtllm")
        sweep = {"experiment": "draft_latency", "concurrency": [4]}
        run_sweep(parse_config(config.model_dump() | {"sweep": sweep}, "test"), tmp_path / "sweep", quiet)
    believe_the_client(tmp_path / "sweep")
    (path,) = (tmp_path / "sweep").glob("*/summary.json")
    summary = json.loads(path.read_text("utf-8"))
    assert summary["server_counters"]["draft_share"] == 0.25
    text = _section(tmp_path / "sweep", "Draft and verify latency")
    step_ms = {
        task: 1e3 * table["figures"]["step_latency_s"]["mean"] for task, table in summary["by"]["category"].items()
    }
    assert set(step_ms) == {"math", "roleplay", "writing"}
    for task, mean in step_ms.items():
        row = re.search(rf"{task} 10 0 .*? ([\d.]+) ([\d.]+) 25% gauge", text)
        assert row is not None, task
        assert float(row[1]) == pytest.approx(mean / 4, rel=0.01)
        assert float(row[2]) == pytest.approx(mean * 3 / 4, rel=0.01)


def test_a_draft_length_sweep_infers_the_slope_that_the_simulator_has(served, configured, tmp_path):
    """Steps of 8 ms and 8 ms a drafted token; the client's own time is in the intercept."""
    sweep = {"experiment": "draft_latency", "concurrency": [1], "servers": []}
    simulators = [Simulation("vllm", Process((0.8,) * k, 20, 30), step_s=0.008 + 0.008 * k) for k in (0, 2, 4)]
    with served(simulators[0]) as a, served(simulators[1]) as b, served(simulators[2]) as c:
        sweep["servers"] = [
            {"name": f"k{k}", "url": s.url, "draft_length": k} for k, s in zip((0, 2, 4), (a, b, c), strict=True)
        ]
        values = configured(a.url, data={"limit": 2}).model_dump() | {"sweep": sweep}
        run_sweep(parse_config(values, "test"), tmp_path / "sweep", quiet)
    believe_the_client(tmp_path / "sweep")
    text = _section(tmp_path / "sweep", "Draft and verify latency")
    found = re.findall(r"(2|4) (?:math|roleplay|writing) 2 0 .*? ([\d.]+) ([\d.]+) \d+% inferred", text)
    assert len(found) == 6
    for length, draft_ms, verify_ms in found:
        assert float(draft_ms) == pytest.approx(8.0 * int(length), rel=0.4)
        assert float(verify_ms) > 4.0


def test_starts_that_are_repeated_have_an_interval_over_them(served, configured, process, tmp_path):
    simulators = [Simulation("vllm", replace(process, acceptance_rates=(0.8,) * k), step_s=0.002) for k in (0, 2)]
    with served(simulators[0]) as plain, served(simulators[1]) as k2:
        servers = [
            {"name": "plain", "url": plain.url, "draft_length": 0},
            {"name": "k2", "url": k2.url, "draft_length": 2},
        ]
        sweep = {"experiment": "draft_length", "concurrency": [8], "servers": servers, "repeats": 2}
        values = configured(plain.url, data={"limit": 3}).model_dump() | {"sweep": sweep}
        run_sweep(parse_config(values, "test"), tmp_path / "sweep", quiet)
    believe_the_client(tmp_path / "sweep")
    rows = read_sweep(tmp_path / "sweep")
    assert [row["point"][-2:] for row in rows] == ["r0", "r1", "r0", "r1"]
    plain_tps = [row["output_tps"] for row in rows if row["draft_length"] == 0]
    assert rows[0]["speed_up"] == pytest.approx(rows[0]["output_tps"] / np.mean(plain_tps))
    text = _section(tmp_path / "sweep", "Draft length by concurrency")
    assert re.search(r"qualitative 8 2 1\.\d+|qualitative 8 2 2\.\d+", text), "two of three tokens are drafts"
    assert re.search(r"\d+ \[-?[\d,.]+, [\d,.]+\]", text)


def test_points_of_another_configuration_are_refused_and_not_taken_for_these(served, configured, process, tmp_path):
    with served(Simulation("vllm", process)) as simulator:
        values = configured(simulator.url, data={"limit": 1}).model_dump() | {"sweep": {"concurrency": [2]}}
        run_sweep(parse_config(values, "test"), tmp_path / "sweep", quiet)
        other = values | {"sampling": {**values["sampling"], "max_tokens": 7}}
        before = (tmp_path / "sweep" / "sweep.json").read_bytes()
        with pytest.raises(BenchError, match="holds a run of another configuration"):
            run_sweep(parse_config(other, "test"), tmp_path / "sweep", quiet)
    assert (tmp_path / "sweep" / "sweep.json").read_bytes() == before


def test_a_speed_up_is_over_the_same_engine_and_model_and_held_back_points_have_no_figure(tmp_path):
    def point(name, dialect, draft_length, output_tps, *, gates=()):
        figures = {"user_tps": {"p50": 1.0}, "step_latency_s": {"mean": 1.0}}
        engine = {"dialect": dialect, "model": "m", "draft_length": draft_length}
        settings = {"data": {"config": "q"}, "load": {"concurrency": 1}, "sampling": {"temperature": 0.0}}
        summary = {
            "run": {"output_tps": {"value": output_tps}},
            "overall": {"figures": figures, "headline": {"acceptance_length": {"value": 2.0}}},
            "published": not gates,
            "gates": [{"name": gate} for gate in gates],
            "synthetic_prompts": False,
        }
        folder = RunFolder(tmp_path / name)
        folder.write_json("run.json", {"config": {**settings, "engine": engine}})
        folder.write_json("summary.json", summary)

    point("a-plain", "llamacpp", 0, 100.0)
    point("b-held", "llamacpp", 0, 1.0, gates=("failures",))
    point("c-draft", "llamacpp", 3, 150.0)
    point("d-other", "inprocess", 3, 20.0)
    rows = {row["point"]: row for row in read_sweep(tmp_path)}
    assert {name: row["speed_up"] for name, row in rows.items()} == {
        "a-plain": 1.0,
        "b-held": None,
        "c-draft": 1.5,
        "d-other": None,
    }
    held = rows["b-held"]
    assert [held[name] for name in ("output_tps", "user_tps", "step_latency_s", "acceptance_length")] == [None] * 4


def test_another_experiment_is_refused_in_the_same_folder(served, configured, process, tmp_path):
    with served(Simulation("vllm", process)) as simulator:
        values = configured(simulator.url, data={"limit": 1}).model_dump()
        sweep = {"experiment": "temperature", "concurrency": [2], "temperature": [0.0]}
        run_sweep(parse_config(values | {"sweep": sweep}, "test"), tmp_path / "sweep", quiet)
        with pytest.raises(BenchError, match="holds the sweep 'temperature'"):
            run_sweep(
                parse_config(values | {"sweep": {**sweep, "experiment": "pareto"}}, "test"), tmp_path / "sweep", quiet
            )


def _section(folder, title: str) -> str:
    html = unescape(render_report(read_results([folder])))
    found = re.search(rf"<section[^>]*>\s*<h2[^>]*>{re.escape(title)}.*?</section>", html, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found.group()).split())
