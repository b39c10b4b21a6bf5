"""Finished runs for the tests of the report: small, against the simulator, whose acceptance is known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.config import parse_config
from bench.runner import run
from bench.simulator.process import Process
from bench.simulator.server import Simulation
from bench.simulator.vocabulary import write_tokenizer
from tests.bench.conftest import Served

HOSTILE = (
    '<script>window.pwned=1</script><img src=x onerror="window.pwned=1">',
    "\u202eevil\u202c שלום",
    "x" * 1_000_000,
    "a & b </td></svg></style>",
)
PLAIN = Simulation("vllm", Process((), 20, 50), step_s=0.004)
DRAFT = Simulation("vllm", Process((0.8, 0.6, 0.5), 20, 50, prompt_spread=0.5, plain_share=0.2), step_s=0.005)
FAILING = Simulation("vllm", Process((0.8, 0.6, 0.5), 20, 50, failed_share=0.4), step_s=0.004)


def make_run(root: Path, name: str, simulation: Simulation, categories: Sequence[str], **sections: Any) -> Path:
    """Return the folder of a run of nine conversations a category."""
    tokenizer = write_tokenizer(root / "tokenizer")
    rows = root / f"{len(categories)}.jsonl"
    lines = [
        {"question_id": f"{number}-{n}", "category": category, "turns": [f"Tell me of {category[:20]}, part {n}."]}
        for number, category in enumerate(categories)
        for n in range(9)
    ]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    k = simulation.process.draft_length
    with Served(simulation) as served:
        values: dict[str, Any] = {
            "name": name,
            "engine": {"dialect": "vllm", "url": served.url, "draft_length": k, "tokenizer": str(tokenizer)},
            "data": {"format": "jsonl", "path": str(rows)},
            "load": {"concurrency": 8, "warmup_requests": 0},
            "client": {"workers": 1},
        }
        for key, section in sections.items():
            values[key] = {**values.get(key, {}), **section} if isinstance(section, dict) else section
        run(parse_config(values, name), root / name, lambda *_: None)
    edit(root / name / "summary.json", _believed)
    return root / name


def _believed(summary: dict[str, Any]) -> None:
    """Open the gate of the client's own lags, which a busy machine shuts; every other gate stays."""
    summary["gates"] = [gate for gate in summary["gates"] if gate["name"] != "client"]
    summary["published"] = not summary["gates"]


def edit(path: Path, change: Any) -> None:
    """Change a JSON file in place."""
    values = json.loads(path.read_text("utf-8"))
    change(values)
    path.write_text(json.dumps(values), "utf-8")


def copy_run(source: Path, target: Path, **config: dict[str, Any]) -> Path:
    """Return a copy of a run's folder with another configuration written in it."""
    shutil.copytree(source, target)

    def change(described: dict[str, Any]) -> None:
        for section, values in config.items():
            described["config"][section] |= values

    edit(target / "run.json", change)
    return target


def make_sweep(root: Path, plain: Path, draft: Path, failing: Path) -> Path:
    """Return a sweep of two servers over 1, 2, 4 and 8 streams, of which one point is held back and one not there."""
    sources = {"plain": (plain,) * 4, "draft": (draft, draft, failing, draft)}
    points = []
    for server, folders in sources.items():
        for concurrency, folder in zip((1, 2, 4, 8), folders, strict=True):
            name = f"{server}-c{concurrency}"
            points.append({"point": name, "server": server, "data": "", "config": "qualitative", "temperature": 0.0})
            points[-1] |= {"concurrency": concurrency, "draft_length": 3 * (server == "draft"), "repeat": 0}
            if name != "plain-c4":
                copy_run(folder, root / name, load={"concurrency": concurrency})
    described = {"experiment": "", "points": points, "skipped": {"away": "sglang is not installed"}}
    (root / "sweep.json").write_text(json.dumps(described), "utf-8")
    return root


def make_results(root: Path) -> dict[str, Path]:
    """Return runs by name: plain, draft, failing, random, hostile; and a sweep of them."""
    random = {"format": "random", "path": "", "random_rows": 9}
    sloppy = {"max_failed_share": 0.9}
    engine = {"model": HOSTILE[0], "flags": ["--api-key", "s3cret-value", HOSTILE[1]], "headers": {"X": "s3cret-value"}}
    categories = ("math", "roleplay", "writing")
    made = {
        "plain": make_run(root, "plain", PLAIN, categories, load={"repeats": 2}),
        "draft": make_run(root, "draft", DRAFT, categories, load={"repeats": 2}),
        "failing": make_run(root, "failing", FAILING, categories),
        "random": make_run(root, "random", DRAFT, categories, data=random),
        "hostile": make_run(
            root, "hostile", FAILING, HOSTILE, limits=sloppy, engine=engine, note="toy model: no result"
        ),
    }
    made["sweep"] = make_sweep(root / "sweep", made["plain"], made["draft"], made["failing"])
    return made
