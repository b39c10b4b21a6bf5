"""A generated pool of 250,000 records through the whole qualitative build: minutes, and the largest process's memory.

python tests/perf/pool.py [--records 250000] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.curation.fake_openai import FakeOpenAI

RECIPE = """
extends = "v1"
name = "generated-pool"
sources = ["mmath", "writingbench"]

[candidates]
max_per_source_language = 1000000

[embedder]
dimensions = 512

[selection]
categories = ["multilingual", "writing"]
"""
SYLLABLES = tuple(a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is"))
LANGUAGES = ("ar", "en", "es", "fr", "ja", "ko", "pt", "th", "vi", "zh")


def main() -> None:
    """Write a mirror, build from it, print one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=250_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="speedbench-pool-") as folder:
        print(json.dumps(measure(Path(folder), options.records, options.workers)))


def measure(folder: Path, records: int, workers: int) -> dict[str, object]:
    """Return the figures of one cold build."""
    write_mirror(folder / "mirror", records)
    (folder / "recipe.toml").write_text(RECIPE)
    command = [sys.executable, "-m", "speedbench", "build", str(folder / "recipe.toml"), "--only", "qualitative"]
    command += ["--mirror", str(folder / "mirror"), "--out", str(folder / "out"), "--allow-short"]
    command += ["--workers", str(workers)]
    server = FakeOpenAI()
    environment = {"SPEEDBENCH_CACHE": str(folder / "cache"), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
    begin = time.perf_counter()
    subprocess.run(command, check=True, env=os.environ | environment)
    wall_s = time.perf_counter() - begin
    server.shutdown()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    return {
        "records": manifest["clean"]["records"],
        "candidates": manifest["clean"]["candidates"],
        "wall_min": round(wall_s / 60, 1),
        "cpu_min": round((used.ru_utime + used.ru_stime) / 60, 1),
        "peak_rss_mb": round(used.ru_maxrss / 1024),
        "workers": workers,
        "gaps": {name: figures["gap"] for name, figures in manifest["categories"].items()},
    }


def write_mirror(root: Path, records: int) -> None:
    """Write texts of 5 to 10 invented words, a tenth of them copies of an earlier one but for a word."""
    generator = random.Random(0)
    vocabulary = ["".join(generator.choices(SYLLABLES, k=generator.randint(1, 4))) for _ in range(30_000)]
    texts: list[str] = []
    for i in range(records):
        if i % 10 == 9:
            words = texts[generator.randrange(len(texts))].split()
            words[generator.randrange(len(words))] = generator.choice(vocabulary)
        else:
            words = generator.choices(vocabulary, k=generator.randint(5, 10))
        texts.append(" ".join(words))
    half = records // 2
    per_language = half // len(LANGUAGES)
    for at, language in enumerate(LANGUAGES):
        part = texts[at * per_language : (at + 1) * per_language]
        rows = [
            {"question": text, "answer": "0", "data_source": "MATH500", "data_source_id": i, "lang": language, "gid": i}
            for i, text in enumerate(part)
        ]
        path = root / "RUCAIBox" / "MMATH" / "mmath" / f"{language}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows))
    path = root / "_web" / "X-PLUG" / "WritingBench" / "benchmark_query" / "benchmark_all.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        for i, text in enumerate(texts[half:]):
            row = {"index": i, "domain1": "d", "domain2": "e", "lang": "en", "query": text, "checklist": []}
            stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
