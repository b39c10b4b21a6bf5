"""The finished points of a sweep as rows. Reads its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import BenchError
from bench.result_shape import refuse_other_file
from bench.results import RUN, SUMMARY, RunFolder

SWEEP = "sweep.json"
"""What a sweep is: its experiment, its points on every axis, and what was left out."""

POINT_COLUMNS = (
    "point",
    "config",
    "concurrency",
    "temperature",
    "draft_length",
    "output_tps",
    "user_tps",
    "step_latency_s",
    "acceptance_length",
    "speed_up",
    "published",
)


def read_sweep(out: Path) -> list[dict[str, Any]]:
    """Return a row for each finished point; figures of a point that a gate holds back are None.

    `speed_up` is its `output_tps` over that of the points without speculation beside it: those of the same engine,
    model, data, config, temperature and concurrency; of several starts, their mean.
    """
    places = {row["point"]: row for row in read_places(out)}
    folders = sorted(path.parent for path in out.glob(f"*/{SUMMARY}"))
    rows = [_row(folder, places.get(folder.name, {})) for folder in folders]
    baselines = dict[tuple[Any, ...], list[float]]()
    for row in rows:
        if row["draft_length"] == 0 and row["output_tps"]:
            baselines.setdefault(_place(row), []).append(row["output_tps"])
    for row in rows:
        baseline = baselines.get(_place(row))
        row["speed_up"] = row["output_tps"] / float(np.mean(baseline)) if baseline and row["output_tps"] else None
    return rows


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[axis] for axis in ("dialect", "model", "data", "config", "temperature", "concurrency"))


def read_places(out: Path) -> list[dict[str, Any]]:
    """Return where each point of a sweep lies, in its order; none for a folder that holds no `sweep.json`."""
    folder = RunFolder(out)
    if not (out / SWEEP).is_file():
        return []
    described = folder.read_json(SWEEP)
    refuse_other_file(described, out / SWEEP)
    return list(described.get("points", ()))


def _row(path: Path, place: dict[str, Any]) -> dict[str, Any]:
    folder = RunFolder(path)
    described, summary = folder.read_json(RUN), folder.read_json(SUMMARY)
    try:
        return _place_of(path, described, place) | _figures(summary)
    except (KeyError, TypeError) as error:
        raise BenchError(f"{path}: run.json or summary.json lacks {error}; it was edited: run the point anew") from None


def _place_of(path: Path, described: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    settings = described["config"]
    engine = settings["engine"]
    return {
        "point": path.name,
        "path": str(path),
        "server": place.get("server", ""),
        "recipe": engine.get("recipe", ""),
        "dialect": engine["dialect"],
        "model": engine["model"],
        "data": place.get("data", ""),
        "repeat": place.get("repeat", 0),
        "config": settings["data"]["config"],
        "concurrency": settings["load"]["concurrency"],
        "temperature": settings["sampling"]["temperature"],
        "draft_length": engine["draft_length"],
    }


def _figures(summary: dict[str, Any]) -> dict[str, Any]:
    overall = summary["overall"]
    told = {
        "output_tps": summary["run"]["output_tps"]["value"],
        "user_tps": overall["figures"]["user_tps"]["p50"],
        "step_latency_s": overall["figures"]["step_latency_s"]["mean"],
        "acceptance_length": overall["headline"]["acceptance_length"]["value"],
    }
    return (told if summary["published"] else dict.fromkeys(told)) | {
        "published": summary["published"],
        "gates": [gate["name"] for gate in summary["gates"]],
        "synthetic_prompts": summary["synthetic_prompts"],
    }
