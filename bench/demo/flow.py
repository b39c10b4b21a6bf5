"""The demo, from top to bottom: rows, runs, verdicts, gates, page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from bench.comparison.compare import compare
from bench.comparison.golden import judge
from bench.config import BenchConfig, DataConfig, LimitsConfig, LoadConfig, SamplingConfig, ServerVariant, SweepConfig
from bench.demo.models import DemoModel
from bench.demo.rows import demo_rows
from bench.errors import BenchError, EngineError
from bench.finished import read_side
from bench.lossless.runs import judge_runs
from bench.recipes.shipped import find_recipe, recipe_config, runnable
from bench.report.page import write_report
from bench.results import RUN, SUMMARY, RunFolder
from bench.runner import Progress, is_finished, refuse_other_run, run_to_its_end
from bench.server import free_port
from bench.sweeps.run import run_sweep

STATE, PAGE = "demo.json", "report.html"
WARMUP_REQUESTS = 4

Json = dict[str, Any]
Say = Callable[[str], None]
ShownProgress = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to draft: its run over the qualitative rows, and what it was held against.

    Attributes
    ----------
    comparison, lossless
        Against the run that drafts nothing; None for that one.
    gate
        Lines of the golden table; None where `why_no_gate` says why there are none.
    """

    name: str
    folder: Path
    summary: Json
    comparison: Json | None = None
    lossless: Json | None = None
    gate: list[Json] | None = None
    why_no_gate: str = ""


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demo did: where the rows, runs and the page are, and what came out."""

    model: DemoModel
    rows: Path
    modes: tuple[Mode, ...]
    throughput: Path
    points: list[Json]
    page: Path


def run_demo(model: DemoModel, out: Path, *, rows: int | None, dist: str, say: Say, shown: ShownProgress) -> Demo:
    """Run the demo of a model into a folder, and return what came out; what is there already is not done again.

    Parameters
    ----------
    rows
        Rows of each category, instead of the model's own number.
    dist
        DIST whose qualitative rows are sent, "" to build them too.

    Raises
    ------
    Refusal
        If the engine is not installed, or a part of the demo is refused.
    """
    _refuse_missing(model)
    parts = ("throughput",) if dist else ("qualitative", "throughput")
    say(f"rows: {' and '.join(parts)}, from the samples, in the model's own tokens")
    built = demo_rows(model.tokenizer / "tokenizer.json", out / "rows", parts=parts)
    limit, port = rows or model.rows, _port(out, model)
    folders = _qualitative(model, DataConfig(path=dist or str(built), limit=limit), out, port, say, shown)
    data = DataConfig(path=str(built), limit=limit)
    throughput = _sweep(model, data, port)
    say(f"throughput: {', '.join(model.throughput)}, {model.concurrency} streams, {', '.join(model.recipes)}")
    with shown("throughput") as progress:
        points = run_sweep(throughput, out / "throughput", progress)
    modes = tuple(_judged(name, folder, next(iter(folders.values())), model) for name, folder in folders.items())
    page = out / PAGE
    write_report([*folders.values(), out / "throughput"], page)
    return Demo(model, built, modes, out / "throughput", points, page)


def _refuse_missing(model: DemoModel) -> None:
    for name in model.recipes.values():
        able, why = runnable(find_recipe(name), dict(model.paths))
        if not able:
            raise EngineError(f"recipe {name}: {why}; install speedbench[llamacpp]")


def _port(out: Path, model: DemoModel) -> int:
    """Return the port of the demo in a folder: part of what its runs were, so kept for the next call."""
    folder = RunFolder(out)
    if (out / STATE).is_file():
        before = folder.read_json(STATE)
        if not isinstance(before, dict) or not isinstance(before.get("port"), int):
            raise BenchError(f"{out / STATE}: names no port; it was edited: remove {out}, or choose another --out")
        if before.get("model") != model.name:
            raise BenchError(f"{out}: holds the demo of {before.get('model')}; choose another --out for {model.name}")
        return int(before["port"])
    port = free_port()
    folder.write_json(STATE, {"model": model.name, "port": port})
    return port


def _qualitative(
    model: DemoModel, data: DataConfig, out: Path, port: int, say: Say, shown: ShownProgress
) -> dict[str, Path]:
    """Run every mode over the qualitative rows, all turns, one stream; return the folders."""
    folders = dict[str, Path]()
    for mode, recipe in model.recipes.items():
        folder = folders[mode] = out / mode
        config = _config(model, recipe, data, port, f"{model.name}-{mode}")
        refuse_other_run(RunFolder(folder), config)
        if is_finished(folder):
            continue
        say(f"qualitative: {recipe}, all turns")
        with shown(config.name) as progress:
            run_to_its_end(config, folder, progress)
    return folders


def _config(model: DemoModel, recipe: str, data: DataConfig, port: int, name: str) -> BenchConfig:
    config = recipe_config(
        find_recipe(recipe),
        url_port=port,
        data=data,
        load=LoadConfig(warmup_requests=WARMUP_REQUESTS),
        sampling=SamplingConfig(max_tokens=model.max_tokens, ignore_eos=model.ignore_eos),
        paths=model.paths,
        name=name,
    )
    return config.model_copy(update={"note": model.note, "limits": LimitsConfig(allow=model.allow)})


def _sweep(model: DemoModel, data: DataConfig, port: int) -> BenchConfig:
    config = _config(model, next(iter(model.recipes.values())), data, port, f"{model.name}-throughput")
    servers = tuple(
        ServerVariant(name=mode, recipe=recipe, paths=dict(model.paths)) for mode, recipe in model.recipes.items()
    )
    sweep = SweepConfig(concurrency=(model.concurrency,), config=model.throughput, servers=servers)
    return config.model_copy(update={"sweep": sweep})


def _judged(name: str, folder: Path, plain: Path, model: DemoModel) -> Mode:
    """Return a mode with its comparison, verdict and gate."""
    results = RunFolder(folder)
    summary, described = results.read_json(SUMMARY), results.read_json(RUN)
    if folder == plain or not summary["published"]:
        return Mode(name, folder, summary)
    gate, why_not = _gate(f"{model.name}-{name}", summary, described)
    comparison = compare(read_side(plain), read_side(folder))
    return Mode(name, folder, summary, comparison, judge_runs(plain, folder), gate, why_not)


def _gate(name: str, summary: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[list[Json] | None, str]:
    table = resources.files("bench") / "demo" / "golden" / f"{name}.json"
    if not table.is_file():
        return None, "no golden table ships for it"
    golden = json.loads(table.read_text("utf-8"))
    if golden["split_sha256"] != described["split"]["sha256"]:
        return None, "the golden table is over other rows"
    return judge(summary, described, golden), ""
