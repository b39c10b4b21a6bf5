"""Time, memory and size of the explore page at the size of a release: 1,360 short rows and 7,680 of up to 32k tokens.

The texts are made up; the pool has 20,000 candidates of 512 dimensions. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from curation.explore import explore_dist
from curation.ids import question_id
from curation.publish import StreamedConfigs
from curation.schema import POOL_SCHEMA
from curation.store import BuildFolder, write_checksums, write_json, write_table, write_vectors
from sources.base import CATEGORIES, TIERS
from sources.registry import SOURCES

SPECS = {name: source.spec for name, source in SOURCES.items()}
WORDS = np.array(["the", "draft", "model", "keeps", "seven", "tokens", "ahead", "of", "its", "target", "and", "waits"])
BUCKETS = {"1k": 1_000, "2k": 2_000, "8k": 8_000, "16k": 16_000, "32k": 32_000}


def text(rng: np.random.Generator, num_words: int) -> str:
    """Words in a drawn order."""
    return " ".join(WORDS[rng.integers(len(WORDS), size=num_words)].tolist())


def row(config: str, category: str, src_id: str, turn: str, num_tokens: int) -> dict:
    """One row of `SPLIT_SCHEMA`."""
    return {
        "question_id": question_id(config, "acme/perf", src_id),
        "category": category,
        "sub_category": "",
        "turns": [turn],
        "source": "acme/perf",
        "src_id": src_id,
        "difficulty": "",
        "multiturn": False,
        "text_status": "full",
        "source_revision": "",
        "license": "mit",
        "template_id": "",
        "record_ids": [f"gsm8k:{src_id}"],
        "num_tokens": num_tokens,
        "pad_tokens": 0,
        "turns_sha256": "",
    }


def candidate(src_id: str, category: str, turn: str) -> dict:
    """One row of `POOL_SCHEMA`."""
    return {
        "record_id": f"gsm8k:{src_id}",
        "source": "gsm8k",
        "src_id": src_id,
        "category": category,
        "sub_category": "",
        "turns": [turn],
        "text": turn,
        "language": "en",
        "difficulty": "",
        "template_id": "",
        "record_ids": [f"gsm8k:{src_id}"],
        "is_code": False,
    }


def write_build(root: Path, rows_per_cell: int, num_candidates: int) -> BuildFolder:
    """Write a build of the size of a release."""
    rng = np.random.default_rng(0)
    folder = BuildFolder(root)
    folder.begin()
    sink = StreamedConfigs(folder, SPECS)
    pool = [candidate(str(i), CATEGORIES[i % 11], text(rng, 120)) for i in range(num_candidates)]
    chosen = pool[: 11 * 80]
    sink("qualitative", [row("qualitative", c["category"], c["src_id"], c["text"], 120) for c in chosen])
    sink("spec_bench", [row("spec_bench", "qa", f"s{i}", text(rng, 200), 200) for i in range(480)])
    for name, length in BUCKETS.items():
        config = f"throughput_{name}"
        for tier in TIERS:
            sink(config, [row(config, tier, f"{tier}{i}", text(rng, length), length) for i in range(rows_per_cell)])
    sink.finish()
    x = rng.standard_normal((num_candidates, 512)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    write_table(folder.pool / "candidates.parquet", pa.Table.from_pylist(pool, schema=POOL_SCHEMA))
    write_vectors(folder.pool / "vectors.npy", x)
    write_table(folder.pool / "spec_bench.parquet", pa.Table.from_pylist(pool[:0], schema=POOL_SCHEMA))
    write_vectors(folder.pool / "spec_bench_vectors.npy", x[:0])
    for target in (folder.dist, folder.full):
        write_checksums(target)
    write_json(folder.manifest, {"configs": sink.configs})
    return folder


def main() -> None:
    """Build, make the page, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows-per-cell", type=int, default=512)
    parser.add_argument("--candidates", type=int, default=20_000)
    parser.add_argument("--page", type=Path, default=None, help="keep the page here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="speedbench-explore-") as scratch:
        folder = write_build(Path(scratch) / "out", args.rows_per_cell, args.candidates)
        before = resource.getrusage(resource.RUSAGE_SELF)
        start = time.perf_counter()
        explored = explore_dist(folder.full, args.page or Path(scratch) / "page.html")
        wall_s = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "rows": explored.num_rows,
        "candidates": args.candidates,
        "page_mb": round(explored.num_bytes / 1e6, 2),
        "wall_s": round(wall_s, 2),
        "cpu_s": round(after.ru_utime - before.ru_utime, 2),
        "max_rss_mb": round(after.ru_maxrss / 1024),
        "max_rss_before_mb": round(before.ru_maxrss / 1024),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
