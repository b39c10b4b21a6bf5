"""What the tests of other projects' code share: an exported DIST, and the environments that those projects live in."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.export import export_dist
from curation.ids import question_id, turns_sha256
from curation.schema import SPLIT_SCHEMA
from curation.store import write_checksums, write_table

PROMPTS: dict[str, list[tuple[str, str, list[str]]]] = {
    "qualitative": [
        ("coding", "c1", ["Reverse a list in Rust.", "Now in place.", "And without a swap?"]),
        ("multilingual", "m1", ['Übersetze: «Ça va?» 你好 — 🚲\u2028next\x85line\ttab \\ "quote" {brace}']),
        ("writing", "w1", ["A story about 1e5 lanterns.\r\n\n\nNo rhyme.  "]),
    ],
    "throughput_1k": [("mixed", "t1", ["and so on " * 400]), ("low_entropy", "t2", ["x = 1\n" * 300])],
}


@dataclass(frozen=True)
class Exported:
    """A folder of exported files, and the rows that went in, by config."""

    folder: Path
    rows: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    """Export the same DIST in a shape."""
    folder = tmp_path_factory.mktemp("peers")
    rows = {config: [_row(config, *prompt) for prompt in prompts] for config, prompts in PROMPTS.items()}
    for config in rows:
        table = pa.Table.from_pylist(rows[config], schema=SPLIT_SCHEMA)
        write_table(folder / "dist" / "data" / f"{config}.parquet", table)
    write_checksums(folder / "dist")

    def export(shape: str) -> Exported:
        if not (folder / shape).exists():
            export_dist(folder / "dist", folder / shape, shape=shape)
        return Exported(folder / shape, rows)

    return export


def _row(config: str, category: str, src_id: str, turns: list[str]) -> dict[str, Any]:
    return {
        "question_id": question_id(config, "org/lanterns", src_id),
        "category": category,
        "sub_category": "",
        "turns": turns,
        "source": "org/lanterns",
        "src_id": src_id,
        "difficulty": "",
        "multiturn": len(turns) > 1,
        "text_status": "full",
        "source_revision": "",
        "license": "mit",
        "template_id": "",
        "record_ids": [f"lanterns:{src_id}"],
        "num_tokens": 1,
        "pad_tokens": 0,
        "turns_sha256": turns_sha256(turns),
    }


def python_of(project: str) -> Path:
    """Return the interpreter of a project's own environment, which `make test-peers` makes and names."""
    variable = f"SPEEDBENCH_{project.upper()}_PYTHON"
    named = os.environ.get(variable, "")
    assert named, f"{project} is not installed: run `make test-peers`, which makes its environment and sets {variable}"
    return Path(named).absolute()


def run_there(python: Path, script: str, *arguments: str) -> Any:
    """Run a script of this folder with another interpreter, offline, and return the JSON of its last line."""
    # Not ours: neither the import path of this checkout nor the options of its tests.
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [str(python), str(Path(__file__).with_name(script)), *arguments],
        env={**keep, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])
