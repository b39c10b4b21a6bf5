"""Prompts and corpora of our own, for the tests of the audit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MILL = (
    "A miller grinds nine sacks of rye on each working day but only three sacks on the eve of a feast and the baker "
    "wants to know how many sacks leave the mill between the second of May and the last day of August"
)
WIRE = (
    "Explain step by step how the rope makers of the harbour turn a bale of hemp into a cable with nothing but a hook "
    "a wheel and a pot of tar and name the step at which most ropes are spoiled"
)
FILLER = (
    "the harbour was quiet and slow boats went by under grey clouds while gulls sat on the stones and waited for bread "
)
FOG = "河面上的晨雾慢慢散开以后渔夫们把昨夜晾好的网一张一张搬上了小船"


def write_benchmark(folder: Path, prompts: Sequence[Any], config: str = "qualitative") -> Path:
    """Write a DIST of the eight columns: prompts are texts, or dicts with turns and more."""
    rows = []
    for i, prompt in enumerate(prompts):
        given = prompt if isinstance(prompt, dict) else {"turns": [prompt]}
        row = {"question_id": f"q{i}", "category": "qa", "sub_category": "", "source": "made", "src_id": f"s{i}"}
        rows.append({**row, "difficulty": "", "multiturn": len(given["turns"]) > 1, **given})
    (folder / "data").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "data" / f"{config}.parquet")
    return folder


def write_jsonl(path: Path, rows: Sequence[Any]) -> Path:
    """Write rows as JSON lines; a string is written as the text of a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"text": row} if isinstance(row, str) else row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def hits_of(out: Path) -> list[dict[str, Any]]:
    """The pairs of a finished audit."""
    rows: list[dict[str, Any]] = pq.read_table(out / "hits.parquet").to_pylist()
    return rows


def summary_of(out: Path) -> dict[str, Any]:
    """The summary of a finished audit."""
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text("utf-8"))
    return summary
