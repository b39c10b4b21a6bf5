"""The experiments that need what only an engine in process tells: times of draft and verification, and experts."""

import json
import os
import re
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from bench.experiments.draft_latency import step_latencies, timed
from bench.experiments.experts import expert_counts
from bench.finished import read_measured
from bench.recipes.shipped import find_recipe, recipe_engine
from bench.report.page import render_report
from bench.report.results import read_results
from bench.results import RunFolder
from bench.sweeps.run import run_sweep
from tests.bench.experiment_rows import believe_the_client, small, write_rows

ROUTER_LOGITS = """
import json, sys
import numpy as np, torch
from bench.inprocess.models import random_model

config, ids, out = sys.argv[1:]
model = random_model(config, 0, "float32", "cpu")
with torch.no_grad():
    found = model(torch.tensor([json.loads(ids)]), output_router_logits=True).router_logits
np.save(out, np.stack([layer.float().numpy() for layer in found]))
"""


def quiet(*_: int) -> None:
    """Progress that nobody sees."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    return write_rows(tmp_path_factory.mktemp("dist") / "rows")


def section(folder: Path, title: str) -> str:
    html = unescape(render_report(read_results([folder])))
    found = re.search(rf"<section[^>]*>\s*<h2[^>]*>{re.escape(title)}.*?</section>", html, re.DOTALL)
    assert found is not None, title
    return " ".join(re.sub(r"<[^>]+>", " ", found.group()).split())


def test_draft_and_verify_are_timed_apart_by_task(rows, tmp_path):
    config = small("draft_latency", rows, keep="toy-transformers", concurrency=(1,), max_tokens=40)
    run_sweep(config, tmp_path / "sweep", quiet)
    believe_the_client(tmp_path / "sweep")
    (folder,) = (path.parent for path in (tmp_path / "sweep").glob("*/summary.json"))
    requests = read_measured(RunFolder(folder))[1]
    rows_found = timed(requests, 3)
    assert [row.task for row in rows_found] == ["coding", "qa", "writing"]
    gaps = step_latencies(requests)
    for row in rows_found:
        assert row.draft_s > 0
        assert row.verify_s > 0
        assert row.steps == sum(m.acceptance.steps for m in requests if m.trace.slices["category"] == row.task)
        assert row.draft_s + row.verify_s <= gaps[row.task].mean() * 1.02, "both lie inside the step"
        assert row.draft_s + row.verify_s >= gaps[row.task].mean() * 0.5, "and are the most of it"
    text = section(tmp_path / "sweep", "Draft and verify latency")
    for row in rows_found:
        assert re.search(rf"in-process 3 {row.task} 2 0 \d\S* .*?%\s+timed {row.steps}", text), row.task


def test_experts_are_counted_by_layer_for_real_and_for_random_prompts(rows, tmp_path):
    config = small(
        "random_tokens",
        rows,
        keep="toy-experts",
        concurrency=(1,),
        max_tokens=8,
        data={"real": {}, "random": {"format": "random", "random_rows": 6}},
    )
    run_sweep(config, tmp_path / "sweep", quiet)
    believe_the_client(tmp_path / "sweep")
    text = section(tmp_path / "sweep", "Real prompts against random tokens")
    for kind in ("real", "random"):
        folder = tmp_path / "sweep" / f"experts-{kind}-throughput_256-c1"
        page = json.loads((folder / "experts.json").read_text("utf-8"))
        growth = _growth(page)
        assert growth.shape == (4, 32)
        requests = read_measured(RunFolder(folder))[1]
        fed = sum(m.answer.usage.prompt_tokens + m.answer.num_tokens - 1 for m in requests)
        probe = json.loads((folder / "run.json").read_text("utf-8"))["probe"]["usage"]
        fed += probe["prompt_tokens"] + probe["completion_tokens"] - 1
        assert growth.sum(axis=1).tolist() == [2 * fed] * 4, "every token that is fed goes to two experts of each layer"
        for layer in range(4):
            used = f"{(growth[layer] > 0).mean():.0%}"
            assert f"experts {kind} {layer} 32 {2 * fed:,} {used}" in text


def test_counts_are_those_of_output_router_logits(rows, tmp_path):
    python, recipe = os.environ["SPEEDBENCH_VLLM_PYTHON"], find_recipe("toy-experts-plain")
    command = recipe_engine(recipe, url_port=1).serve.command
    options = command[command.index("--random-init") + 1]
    data = {"random": {"format": "random", "random_rows": 1, "random_isl": 64}}
    config = small("random_tokens", rows, keep="toy-experts", concurrency=(1,), max_tokens=1, data=data)
    run_sweep(config, tmp_path / "sweep", quiet)
    folder = tmp_path / "sweep" / "experts-random-throughput_256-c1"
    page = json.loads((folder / "experts.json").read_text("utf-8"))
    ids = np.fromfile(folder / "prompts.u32", np.uint32).tolist()
    probe = json.loads((folder / "run.json").read_text("utf-8"))["probe"]["usage"]
    counts = _router_counts(python, options, ids, tmp_path / "logits.npy")
    assert counts.sum(axis=1).tolist() == [128] * 4
    growth = _growth(page)
    assert (growth >= counts).all(), "the run's own prompt is among what was counted"
    assert (growth - counts).sum(axis=1).tolist() == [2 * (probe["prompt_tokens"] + probe["completion_tokens"] - 1)] * 4


def _router_counts(python: str, options: str, ids: list[int], out: Path) -> np.ndarray:
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    subprocess.run([python, "-c", ROUTER_LOGITS, options, json.dumps(ids), str(out)], check=True, env=environment)
    return np.stack([expert_counts(layer, 2) for layer in np.load(out)])


def _growth(page: dict) -> np.ndarray:
    def total(side: dict | None) -> np.ndarray:
        parts = [side.get(key) for key in ("layers", "prefill_layers")] if side else []
        told = [np.array(part) for part in parts if part and all(part)]
        return sum(told[1:], start=told[0]) if told else np.zeros((4, 32), int)

    return total(page["after"]) - total(page["before"])
