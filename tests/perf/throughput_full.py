"""The throughput split at full size: 1,536 rows at each of five lengths, from long enough invented text.

Prints minutes and peak memory: of the process that builds and of its workers, the largest sum seen, in MB.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.recipe import Recipe, ThroughputConfig, load_recipe
from curation.schema import SPLIT_SCHEMA
from curation.throughput.build import build_throughput
from curation.throughput.rows import provenance_of
from sources.passages import Part, Passage
from sources.registry import THROUGHPUT

SYLLABLES = "ba den ka lo mir nes pu ra sti tor ul vex wa yo zim cor den fal gre hin jor".split()  # noqa: SIM905


class Words:
    """Word-salad of a vocabulary of 20,000 invented words in Zipf-like shares, with sentences and paragraphs."""

    def __init__(self) -> None:
        rng = random.Random(1)
        self.words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(20_000)]
        self.weights = [1 / (i + 3) for i in range(20_000)]
        total = 0.0
        self.cumulative = [total := total + w for w in self.weights]

    def text(self, seed: str, chars: int) -> str:
        rng = random.Random(seed)
        words = rng.choices(self.words, cum_weights=self.cumulative, k=chars // 6 + 1)
        for i in range(7, len(words), 11):
            words[i] += "." if i % 3 else ".\n\n"
        return " ".join(words).replace("\n ", "\n")[:chars]


def passages(rows: int) -> Iterator[Passage]:
    """Yield enough material for `rows` rows a cell at 32,000 tokens."""
    words = Words()
    for i in range(rows * 2 // 3):
        yield Passage("gutenberg", f"{i}", "book", words.text(f"book{i}", 480_000), title=f"Book {i}")
        yield Passage("hle", f"{i}", "Math", words.text(f"q{i}", 500), group="Math", answer=words.text(f"a{i}", 1_500))
        yield Passage("bamboo", f"{i}", "meetingpred", words.text(f"talk{i}", 14_000), group="m", answer="Ann")
    for i in range(rows):
        parts = tuple(Part(f"A{k}", words.text(f"s{i}/{k}", 1_200)) for k in range(1, 130))
        yield Passage(
            "stackselect",
            f"{i}@32k",
            "stackselect",
            title=words.text(f"t{i}", 400),
            group=f"{i}",
            answer="A7",
            parts=parts,
        )
        parts = tuple(Part(f"Part {k}", words.text(f"x{i}/{k}", 45_000)) for k in range(1, 5))
        yield Passage(
            "textsort", f"{i}", "textsort", before=words.text(f"b{i}", 300), after="End.", answer="2,1,4,3", parts=parts
        )
        files = tuple(Part(f"lib/{k}.py", words.text(f"f{i}/{k}", 12_000)) for k in range(18))
        code = words.text(f"c{i}", 1_500)
        yield Passage(
            "repobench_python",
            f"r{i}",
            "python",
            code,
            group=f"r{i}",
            title=f"app/{i}.py",
            answer=code[:300],
            parts=files,
        )


def peak_of_tree(stop: threading.Event, found: list[float]) -> None:
    """Keep the largest sum of the proportional memory of this process and its children, read from /proc."""
    while not stop.wait(0.5):
        found[0] = max(found[0], sum(_proportional_mb(pid) for pid in _tree()))


def _tree() -> list[str]:
    pids, seen = ["self"], []
    while pids:
        pid = pids.pop()
        seen.append(pid)
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            pids += [child for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return seen


def _proportional_mb(pid: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


class Files:
    """Parquet files of a config each, written a cell at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.writers, self.rows = folder, {}, 0  # type: ignore[var-annotated]

    def __call__(self, config: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if config not in self.writers:
            for writer in self.writers.values():
                writer.close()
            self.writers[config] = pq.ParquetWriter(self.folder / f"{config}.parquet", SPLIT_SCHEMA)
        self.writers[config].write_table(pa.Table.from_pylist([dict(row) for row in rows], SPLIT_SCHEMA))
        self.rows += len(rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--buckets", default="1000,2000,8000,16000,32000")
    args = parser.parse_args()
    buckets = tuple(int(n) for n in args.buckets.split(","))
    throughput = ThroughputConfig(buckets=buckets, rows_per_cell=args.rows)
    recipe: Recipe = load_recipe("v1-offline").model_copy(update={"throughput": throughput})
    stop, peak = threading.Event(), [0.0]
    watch = threading.Thread(target=peak_of_tree, args=(stop, peak))
    watch.start()
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            files = Files(Path(folder))
            work = Path(folder) / "work"
            work.mkdir()
            report = build_throughput(
                passages(args.rows), provenance_of(THROUGHPUT, {}), recipe, files, folder=work, workers=args.workers
            )
            for writer in files.writers.values():
                writer.close()
            size = sum(p.stat().st_size for p in Path(folder).glob("*.parquet"))
    finally:
        stop.set()
        watch.join()
    print(
        json.dumps(
            {
                "rows": files.rows,
                "minutes": round((time.perf_counter() - began) / 60, 2),
                "peak_mb": round(peak[0]),
                "parquet_mb": round(size / 1e6, 1),
                "workers": args.workers,
                "longest_prefix": max(s.longest_prefix or 0 for s in report.shared),
                "refused": len(report.drops),
            }
        )
    )


if __name__ == "__main__":
    main()
