"""A small DIST of rows written for the tests of the experiments, and their sweep files at the size of a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.config import BenchConfig
from bench.sweeps.file import load_sweep

TOPICS = ("a mill by the river", "a clock without hands", "two boats in fog", "an orchard in March", "the last tram")
TIERS = {
    "low_entropy": "def total(rows):\n    n = 0\n    for row in rows:\n        n = n + row\n    return n\n",
    "mixed": "Tide at the pier, in metres.\nhour: 6, height: 3\nhour: 7, height: 4\nhour: 8, height: 4\n",
    "high_entropy": "Nobody on the hill had asked for a bell, and yet a bell came up the road on a cart. ",
}
SPEC_BENCH = ("writing", "roleplay", "translation", "summarization", "qa", "math_reasoning", "rag")


def write_rows(folder: Path) -> Path:
    """Write the configs that the experiments send, and return the DIST."""
    (folder / "data").mkdir(parents=True)
    qualitative = [
        _row(f"{category}-{n}", category, f"{ask} {TOPICS[n % 5]}, part {n}.")
        for category, ask in (("coding", "Write a function about"), ("qa", "What is"), ("writing", "Tell a story of"))
        for n in range(8)
    ]
    spec_bench = [_row(f"{c}-{n}", c, f"{c}: say something of {TOPICS[n]}.") for c in SPEC_BENCH for n in range(2)]
    _write(folder, "qualitative", qualitative)
    _write(folder, "spec_bench", spec_bench)
    for config, times in (("throughput_256", 5), ("throughput_1k", 16)):
        rows = [_row(f"{tier}-{n}", tier, f"({n}) " + text * times) for tier, text in TIERS.items() for n in range(8)]
        _write(folder, config, rows)
    return folder


def _row(name: str, category: str, text: str) -> dict[str, Any]:
    row = {"question_id": name, "category": category, "sub_category": "", "turns": [text], "source": "tests"}
    return row | {"src_id": name, "difficulty": "", "multiturn": False}


def _write(folder: Path, config: str, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), folder / "data" / f"{config}.parquet")


def small(
    name: str,
    rows: Path,
    *,
    keep: str,
    but: tuple[str, ...] = (),
    max_tokens: int = 24,
    limit: int | None = 2,
    **sweep: Any,
) -> BenchConfig:
    """Return a shipped experiment over these rows, its servers those whose recipe begins with `keep`, `but` some."""
    config = load_sweep(name, data=str(rows))
    assert config.sweep is not None
    servers = tuple(
        server for server in config.sweep.servers if server.recipe.startswith(keep) and server.name not in but
    )
    return config.model_copy(
        update={
            "data": config.data.model_copy(update={"limit": limit}),
            "sampling": config.sampling.model_copy(update={"max_tokens": max_tokens}),
            "load": config.load.model_copy(update={"warmup_requests": 0, "repeats": min(config.load.repeats, 2)}),
            "client": config.client.model_copy(update={"workers": 1}),
            "sweep": config.sweep.model_copy(update={"servers": servers, "concurrency": (2,), "repeats": 1, **sweep}),
        }
    )


def believe_the_client(sweep: Path) -> None:
    """Open the gate of the client's own lags, which a busy machine shuts; every other gate stays."""
    for path in sweep.glob("*/summary.json"):
        summary = json.loads(path.read_text("utf-8"))
        summary["gates"] = [gate for gate in summary["gates"] if gate["name"] != "client"]
        summary["published"] = not summary["gates"]
        path.write_text(json.dumps(summary), "utf-8")
