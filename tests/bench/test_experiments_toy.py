"""Every shipped experiment from its sweep file to its section of the page, at small size on the embedded llama.cpp."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from bench.experiments.draft_length import Measurement, best_lengths
from bench.report.page import render_report
from bench.report.results import read_results
from bench.sweeps.file import experiment_names
from bench.sweeps.rows import read_sweep
from bench.sweeps.run import run_sweep
from tests.bench.experiment_rows import SPEC_BENCH, believe_the_client, small, write_rows

pytestmark = pytest.mark.slow

LLAMA = "toy-llamacpp"


def quiet(*_: int) -> None:
    """Progress that nobody sees."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    return write_rows(tmp_path_factory.mktemp("dist") / "rows")


@pytest.fixture
def page(rows, tmp_path):
    """Runs an experiment at small size and returns its rows, its folder and its section of the page as text."""

    def run(name: str, title: str, *, keep: str = LLAMA, **changes):
        out = tmp_path / name
        points = run_sweep(small(name, rows, keep=keep, **changes), out, quiet)
        believe_the_client(out)
        assert all(set(point["gates"]) <= {"client"} for point in points), points
        html = unescape(render_report(read_results([out])))
        section = re.search(rf"<section[^>]*>\s*<h2[^>]*>{re.escape(title)}.*?</section>", html, re.DOTALL)
        assert section is not None, title
        assert "TOY MODEL" in section.group(), "a toy model is marked on everything shown of it"
        return points, out, " ".join(re.sub(r"<[^>]+>", " ", section.group()).split())

    return run


def test_temperature_costs_a_drafter_that_drafts_greedily(page):
    points, _, text = page("temperature", "Temperature", keep=f"{LLAMA}-draft", max_tokens=48)
    lengths = {point["temperature"]: point["acceptance_length"] for point in points}
    assert sorted(lengths) == [0.0, 0.5, 1.0]
    assert lengths[0.0] > lengths[1.0] >= 1.0
    assert f"{lengths[0.0]:.3f}" in text
    assert "e2e_tps, tokens/s" in text


def test_the_best_draft_length_of_each_concurrency_is_the_fastest_that_was_run(page):
    points, _, text = page("draft_length", "Draft length by concurrency", concurrency=(1, 4), limit=1, but=("k5", "k7"))
    assert {point["draft_length"] for point in points} == {0, 1, 3}
    best = best_lengths(Measurement(p["config"], p["concurrency"], p["draft_length"], p["output_tps"]) for p in points)
    assert [cell.concurrency for cell in best] == [1, 4]
    for cell in best:
        fastest = max((p for p in points if p["concurrency"] == cell.concurrency), key=lambda p: p["output_tps"])
        assert cell.draft_length == fastest["draft_length"]
        assert f"throughput_256 {cell.concurrency} {cell.draft_length}" in text


def test_the_pareto_front_has_points_of_every_length_and_tier(page):
    points, _, text = page(
        "pareto", "Pareto front", concurrency=(1, 4), config=("throughput_256",), limit=2, max_tokens=32
    )
    assert len(points) == 3 * 2 * 2
    assert {point["data"] for point in points} == {"low_entropy", "mixed", "high_entropy"}
    for tier in ("low_entropy", "mixed", "high_entropy"):
        fastest = max((p for p in points if p["data"] == tier), key=lambda p: p["output_tps"])
        assert re.search(rf"throughput_256 {tier} .*? {fastest['server']} {fastest['concurrency']}", text)


def test_acceptance_by_category_has_intervals_and_the_order_of_the_tiers_a_verdict(page):
    _, _, text = page(
        "categories",
        "Acceptance by category and tier",
        keep=f"{LLAMA}-draft",
        limit=None,
        data={"qualitative": {"config": "qualitative"}, "tiers": {"config": "throughput_256"}},
    )
    # Where the conversations of both tiers are alike, nothing is known of their spread, and no interval is stated.
    assert re.search(
        r"low_entropy mixed -?\d\.\d+ (\[-?\d\.\d+, -?\d\.\d+\] (does not hold|holds|not shown)|not shown)", text
    )
    for category in ("coding", "qa", "writing"):
        assert re.search(rf"{category} 8 0 \d\.\d+ \[\d\.\d+, \d\.\d+\]", text), category


def test_spec_benchs_tasks_stand_under_its_definitions(page):
    points, out, text = page("spec_bench", "Spec-Bench's six tasks", limit=None)
    del points
    for task in ("mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag", "overall"):
        questions = {"mt_bench": 4, "overall": 2 * len(SPEC_BENCH)}.get(task, 2)
        assert re.search(rf"{task} {questions} \d", text), task
    assert len(json.loads((out / "sweep.json").read_text("utf-8"))["points"]) == 3


def test_draft_and_verify_latency_are_inferred_from_the_draft_length_and_say_so(page):
    _, _, text = page("draft_latency", "Draft and verify latency", limit=2)
    assert re.search(r"toy-llamacpp-draft 3 coding 2 0 .*? inferred", text)
    assert not re.search(r"\d%? (timed|gauge) \d", text), "llama.cpp tells neither"


def test_random_tokens_are_held_against_real_prompts_and_their_answers_judged(page):
    points, out, text = page(
        "random_tokens",
        "Real prompts against random tokens",
        data={"real": {}, "random": {"format": "random", "random_rows": 6}},
    )
    assert {(p["server"], p["data"]) for p in points} == {
        (s, d) for s in ("plain", "draft") for d in ("real", "random")
    }
    described = json.loads((out / "draft-random-throughput_256-c2" / "run.json").read_text("utf-8"))
    assert described["config"]["data"]["random_isl"] == 256
    answers = json.loads((out / "draft-random-throughput_256-c2" / "answers.json").read_text("utf-8"))
    assert answers["synthetic"]
    assert sum(row["answers"] for row in answers["kinds"]) == 6
    assert re.search(r"draft random 6 0 .*? [+-]\d+%", text)
    assert "SYNTHETIC PROMPTS" in text


def test_a_pruned_vocabulary_costs_less_the_larger_it_is(page):
    _, out, text = page("vocabulary", "Pruned vocabulary", max_tokens=48, limit=4)
    table = json.loads((out / "draft-qualitative-c2" / "vocabulary.json").read_text("utf-8"))
    by_size = {k: [row for row in table["rows"] if row["top_k"] == k] for k in (128, 256, 384)}
    for small_rows, large_rows in ((by_size[128], by_size[256]), (by_size[256], by_size[384])):
        for a, b in zip(small_rows, large_rows, strict=True):
            assert a["category"] == b["category"]
            assert a["outside"]["value"] >= b["outside"]["value"]
            assert a["cost"] >= b["cost"] >= 0.0
            assert a["untold"] == 0, "the embedded server tells every step"
    assert any(row["outside"]["value"] > 0 for row in by_size[128])
    assert "upper bound" in text


def test_the_analytic_speed_up_stands_beside_the_measured_one(page):
    configs = ("throughput_256", "throughput_1k")
    _, _, text = page("speed_up", "Analytic against measured speed-up", config=configs, max_tokens=48)
    rows = 0
    for config in configs:
        for tier in ("low_entropy", "mixed", "high_entropy"):
            # A dash: on a busy machine all of an answer may come in one read, and then nothing lies between its steps.
            cells = r"([\d.]+x|–) ([\d.]+x|–) ([+-]\d+%|–)"
            found = re.search(rf"{config} {tier} draft 2 .*? {cells}", text)
            assert found is not None, (config, tier)
            rows += "–" not in found.groups()
    assert rows, "some of them are told"


def test_no_experiment_is_left_out_here():
    tested = set(re.findall(r'page\(\s*"(\w+)"', Path(__file__).read_text("utf-8")))
    assert tested == set(experiment_names())


def test_a_sweep_is_gone_on_with_where_it_was_left(rows, tmp_path):
    config = small("speed_up", rows, keep=LLAMA, config=("throughput_256",), max_tokens=8)
    first = run_sweep(config, tmp_path / "sweep", quiet)
    port = json.loads((tmp_path / "sweep" / "sweep.json").read_text("utf-8"))["port"]
    (tmp_path / "sweep" / "draft-throughput_256-c2" / "summary.json").unlink()
    before = (tmp_path / "sweep" / "plain-throughput_256-c2" / "traces.jsonl").read_bytes()
    assert read_sweep(tmp_path / "sweep")[0]["server"] == "plain"
    second = run_sweep(config, tmp_path / "sweep", quiet)
    assert [row["point"] for row in second] == [row["point"] for row in first]
    assert json.loads((tmp_path / "sweep" / "sweep.json").read_text("utf-8"))["port"] == port
    assert (tmp_path / "sweep" / "plain-throughput_256-c2" / "traces.jsonl").read_bytes() == before
