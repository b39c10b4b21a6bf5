"""A build of a few rows with a pool and a ledger, hostile texts among them: what `explore` is tried on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from curation.ids import question_id, turns_sha256
from curation.publish import write_config
from curation.schema import POOL_SCHEMA, SPLIT_SCHEMA
from curation.stages.base import Drop, ledger_table
from curation.store import BuildFolder, write_checksums, write_json, write_table, write_vectors
from sources.registry import SOURCES

SPECS = {name: source.spec for name, source in SOURCES.items()}

HOSTILE = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'> & <!-- \u2028 \u202egnp.exe "
    "{{ title }} `a|b` &lt;b&gt;"
)
LONG = "begin " + "middle " * 400 + "end"
RIGHT_TO_LEFT = "שלום, מה שלומך היום?"

# record: category, language, difficulty, turns, angle of its vector in degrees, whether it was chosen
CANDIDATES = {
    "gsm8k:g1": ("math", "en", "easy", ["How many legs have three hens?"], 0, True),
    "gsm8k:g2": ("math", "en", "hard", ["Count the legs of four hens."], 10, False),
    "gsm8k:g3": ("math", "no", "", [RIGHT_TO_LEFT], 90, True),
    "mmlu_pro:p1": ("reasoning", "en", "hard", [HOSTILE, "And then?"], 180, True),
    "hle:h1": ("reasoning", "en", "", ["Withheld: what is a Chern number?"], 200, True),
    "hle:h2": ("reasoning", "en", "", ["Withheld as well: what is a Burgers vector?"], 205, False),
}


def explore_build(root: Path) -> BuildFolder:
    """Write the build and return its folder."""
    folder = BuildFolder(root)
    folder.begin()
    rows = [_row("qualitative", record, *CANDIDATES[record]) for record in CANDIDATES if CANDIDATES[record][5]]
    write_config(folder, "qualitative", _table(rows), SPECS)
    write_config(
        folder, "spec_bench", _table([_row("spec_bench", "spec_bench:s1", "writing", "en", "", ["Write."])]), SPECS
    )
    tokens = ["low_entropy", "en", "", [LONG]]
    write_config(folder, "throughput_1k", _table([_row("throughput_1k", "long_code_arena:c1", *tokens)]), SPECS)
    _write_pool(folder)
    drops = [
        Drop("gsm8k:copy", "dedup_near", "near_duplicate", "gsm8k:g1", 0.875),
        Drop("gsm8k:lost", "select", "not_selected"),
    ]
    write_table(folder.root / "ledger.parquet", ledger_table(drops))
    for target in (folder.dist, folder.full):
        write_checksums(target)
    write_json(folder.manifest, {"configs": ["qualitative", "spec_bench", "throughput_1k"]})
    return folder


def id_of(record: str, config: str = "qualitative") -> str:
    """The question_id of a record of the build."""
    name, _, src_id = record.partition(":")
    return question_id(config, SPECS[name].source, src_id)


def _table(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA)


def _row(config: str, record: str, category: str, _language: str, difficulty: str, turns: list[str], *_rest) -> dict:
    name, _, src_id = record.partition(":")
    return {
        "question_id": question_id(config, SPECS[name].source, src_id),
        "category": category,
        "sub_category": "",
        "turns": turns,
        "source": SPECS[name].source,
        "src_id": src_id,
        "difficulty": difficulty,
        "multiturn": len(turns) > 1,
        "text_status": "full",
        "source_revision": "",
        "license": SPECS[name].license.id,
        "template_id": "",
        "record_ids": [record],
        "num_tokens": 7,
        "pad_tokens": 0,
        "turns_sha256": turns_sha256(turns),
    }


def _pool_row(record: str, category: str, language: str, difficulty: str, turns: list[str], *_rest) -> dict:
    name, _, src_id = record.partition(":")
    return {
        "record_id": record,
        "source": name,
        "src_id": src_id,
        "category": category,
        "sub_category": "",
        "turns": turns,
        "text": " ".join(turns),
        "language": language,
        "difficulty": difficulty,
        "template_id": "",
        "record_ids": [record],
        "is_code": False,
    }


def _unit(degrees: list[float]) -> np.ndarray:
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def _write_pool(folder: BuildFolder) -> None:
    candidates = [_pool_row(record, *facts) for record, facts in CANDIDATES.items()]
    write_table(folder.pool / "candidates.parquet", pa.Table.from_pylist(candidates, schema=POOL_SCHEMA))
    write_vectors(folder.pool / "vectors.npy", _unit([facts[4] for facts in CANDIDATES.values()]))
    theirs = [_pool_row("spec_bench:s1", "writing", "en", "", ["Write."])]
    write_table(folder.pool / "spec_bench.parquet", pa.Table.from_pylist(theirs, schema=POOL_SCHEMA))
    write_vectors(folder.pool / "spec_bench_vectors.npy", _unit([5]))
