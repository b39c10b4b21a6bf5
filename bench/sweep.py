"""A grid of runs: servers x configs x concurrencies, each point a run folder of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.config import BenchConfig, ServerVariant
from bench.errors import ConfigError
from bench.results import RUN, SUMMARY, RunFolder
from bench.runner import run
from bench.server import running_server

logger = logging.getLogger(__name__)

POINT_COLUMNS = (
    "point",
    "config",
    "concurrency",
    "draft_length",
    "output_tps",
    "user_tps",
    "step_latency_s",
    "acceptance_length",
    "speed_up",
    "published",
)


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of the grid: its name, and the configuration of its run."""

    name: str
    server: str
    config: BenchConfig


def points(config: BenchConfig) -> Iterator[tuple[ServerVariant | None, list[Point]]]:
    """Yield the points of each server, in the order of the file.

    Raises
    ------
    ConfigError
        If the file has no table [sweep].
    """
    sweep = config.sweep
    if sweep is None:
        raise ConfigError("the configuration has no table [sweep]")
    for server in sweep.servers or (None,):
        cells = []
        for name in sweep.config or (config.data.config,):
            for concurrency in sweep.concurrency:
                label = f"{server.name if server else 'server'}-{name}-c{concurrency}"
                cells.append(Point(label, server.name if server else "", _cell(config, server, name, concurrency)))
        yield server, cells


def _cell(config: BenchConfig, server: ServerVariant | None, name: str, concurrency: int) -> BenchConfig:
    engine = config.engine
    if server is not None:
        changes: dict[str, Any] = {"flags": server.flags, "draft_length": server.draft_length}
        if server.url is not None:
            changes["url"] = server.url
        engine = engine.model_copy(update=changes)
    return config.model_copy(
        update={
            # The server of a sweep is started once for all of its points.
            "engine": engine.model_copy(update={"serve": None}),
            "data": config.data.model_copy(update={"config": name}),
            "load": config.load.model_copy(update={"concurrency": concurrency}),
            "sweep": None,
        }
    )


def run_sweep(config: BenchConfig, out: Path, progress: Callable[[int, int, int], None]) -> list[dict[str, Any]]:
    """Run every point that is not there yet, and return a row for each."""
    for server, cells in points(config):
        if all((out / cell.name / SUMMARY).is_file() for cell in cells):
            continue
        serve = (server.serve if server else None) or config.engine.serve
        base = cells[0].config.engine.url
        out.mkdir(parents=True, exist_ok=True)
        with running_server(serve, base, out / f"{server.name if server else 'server'}.log"):
            for cell in cells:
                logger.info("point %s", cell.name)
                if not (out / cell.name / SUMMARY).is_file():
                    run(cell.config, out / cell.name, progress)
    return read_sweep(out)


def read_sweep(out: Path) -> list[dict[str, Any]]:
    """Return a row for each finished point; `speed_up` is against the point without speculation beside it."""
    rows, baselines = [], dict[tuple[str, int], float]()
    for folder in sorted(path.parent for path in out.glob(f"*/{SUMMARY}")):
        row = _row(folder)
        rows.append(row)
        if row["draft_length"] == 0 and row["output_tps"]:
            baselines[row["config"], row["concurrency"]] = row["output_tps"]
    for row in rows:
        baseline = baselines.get((row["config"], row["concurrency"]))
        row["speed_up"] = row["output_tps"] / baseline if baseline and row["output_tps"] else None
    return rows


def _row(path: Path) -> dict[str, Any]:
    folder = RunFolder(path)
    described, summary = folder.read_json(RUN), folder.read_json(SUMMARY)
    settings = described["config"]
    figures = summary["overall"]["figures"]
    return {
        "point": path.name,
        "path": str(path),
        "config": settings["data"]["config"],
        "concurrency": settings["load"]["concurrency"],
        "draft_length": settings["engine"]["draft_length"],
        "output_tps": summary["run"]["output_tps"]["value"],
        "user_tps": figures["user_tps"]["p50"],
        "step_latency_s": figures["step_latency_s"]["mean"],
        "acceptance_length": summary["overall"]["headline"]["acceptance_length"]["value"],
        "published": summary["published"],
        "gates": [gate["name"] for gate in summary["gates"]],
        "synthetic_prompts": summary["synthetic_prompts"],
    }
