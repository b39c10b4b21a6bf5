"""Runs the grid of a sweep, server by server; each point is a run folder of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.config import BenchConfig, SweepConfig
from bench.errors import BenchError, ConfigError, EngineError
from bench.noise import NOISE_EXPERIMENT, write_answers
from bench.pruned import write_pruned
from bench.recipes.shipped import find_recipe, runnable
from bench.results import RunFolder
from bench.runner import is_finished, refuse_other_run, run_to_its_end
from bench.server import fetch, free_port, route_url, running_server
from bench.sweeps.points import Group, Point, groups
from bench.sweeps.rows import SWEEP, read_sweep

logger = logging.getLogger(__name__)

Progress = Callable[[int, int, int], None]


def run_sweep(config: BenchConfig, out: Path, progress: Progress) -> list[dict[str, Any]]:
    """Run every point that is not there yet, and return a row for each.

    A server whose recipe this host cannot run is left out, and `sweep.json` says why.

    Raises
    ------
    BenchError
        If the folder holds another experiment or points of another configuration, or no server can be run.
    """
    before = _before(out, config)
    config, skipped = _on_this_host(config)
    port = before.get("port") or free_port()
    starts = list(groups(config, port))
    for point in (point for group in starts for point in group.points):
        refuse_other_run(RunFolder(out / point.name), point.config)
    RunFolder(out).write_json(SWEEP, _described(config, starts, port, skipped))
    for group in starts:
        if not all(is_finished(out / point.name) for point in group.points):
            _run_group(config, group, out, progress)
    _analyse(config, [point for group in starts for point in group.points], out)
    return read_sweep(out)


def _analyse(config: BenchConfig, points: list[Point], out: Path) -> None:
    """Write what some experiments derive of each point from its tokens and texts."""
    sweep = config.sweep or SweepConfig()
    for point in points:
        if sweep.vocabulary is not None:
            write_pruned(out / point.name, sweep.vocabulary)
        if sweep.experiment == NOISE_EXPERIMENT:
            write_answers(out / point.name)


def _before(out: Path, config: BenchConfig) -> dict[str, Any]:
    """Return what an earlier, unfinished call wrote: its port is in the digests of its points."""
    if not (out / SWEEP).is_file():
        return {}
    before = RunFolder(out).read_json(SWEEP)
    experiment = config.sweep.experiment if config.sweep else ""
    if before.get("experiment") != experiment:
        raise BenchError(
            f"{out}: holds the sweep {before.get('experiment')!r}; choose another --out for {experiment!r}"
        )
    return before


def _on_this_host(config: BenchConfig) -> tuple[BenchConfig, dict[str, str]]:
    sweep = config.sweep
    if sweep is None:
        raise ConfigError("the configuration has no table [sweep]")
    reasons = dict[str, str]()
    for server in sweep.servers:
        able, why = runnable(find_recipe(server.recipe), dict(server.paths)) if server.recipe else (True, "")
        if not able:
            reasons[server.name] = why
            logger.warning("server %s is left out: %s", server.name, why)
    left = tuple(server for server in sweep.servers if server.name not in reasons)
    if sweep.servers and not left:
        raise BenchError("no server of this sweep runs here: " + "; ".join(f"{n}: {why}" for n, why in reasons.items()))
    return config.model_copy(update={"sweep": sweep.model_copy(update={"servers": left})}), reasons


def _described(config: BenchConfig, starts: list[Group], port: int, skipped: dict[str, str]) -> dict[str, Any]:
    sweep = config.sweep
    return {
        "name": config.name,
        "experiment": sweep.experiment if sweep else "",
        "port": port,
        "skipped": skipped,
        "vocabulary": sweep.vocabulary.model_dump(mode="json") if sweep and sweep.vocabulary else None,
        "points": [point.to_json() for group in starts for point in group.points],
    }


def _run_group(config: BenchConfig, group: Group, out: Path, progress: Progress) -> None:
    base = group.points[0].config.engine.url
    with running_server(group.serve, base, out / f"{group.server or 'server'}.log"):
        for point in group.points:
            if is_finished(out / point.name):
                continue
            logger.info("point %s", point.name)
            pages = dict(config.sweep.pages) if config.sweep else {}
            before = {name: _page(base, path) for name, path in pages.items()}
            run_to_its_end(point.config, out / point.name, progress)
            for name, path in pages.items():
                page = {"before": before[name], "after": _page(base, path)}
                RunFolder(out / point.name).write_json(name, page)


def _page(base: str, path: str) -> Any:
    """Return a JSON page of the server; None where it has none."""
    try:
        return json.loads(fetch(route_url(base, path)))
    except (EngineError, ValueError) as error:
        logger.info("no page: %s", error)
        return None
