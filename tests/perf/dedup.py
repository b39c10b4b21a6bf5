"""How fast duplicates are found, and whether the verdicts are those of brute force.

    python tests/perf/dedup.py          real texts and adversarial pairs; about a minute
    python tests/perf/dedup.py --full   also a generated pool of 250,000 records, all three layers; minutes

Real texts are the sources and documents of the installed Python packages, and the mirror where it is there. The last
line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasketch import MinHash, MinHashLSH

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from curation.kernels.minhash import band_keys, choose_bands
from curation.kernels.near import Duplicates, NearIndex, greedy_duplicates
from curation.kernels.postings import Lookup, Postings, cut
from curation.kernels.shingles import shingle_sets
from curation.kernels.tokens import tokenize
from curation.recipe import DedupConfig
from curation.schema import POOL_SCHEMA
from curation.stages.dedup import dedup_exact, dedup_near, dedup_semantic

CONFIG = DedupConfig()
CHUNK_CHARS = 1_500
NUM_BRUTE_FORCE = 3_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also a generated pool of 250,000 records")
    parser.add_argument("--records", type=int, default=250_000, help="records of the generated pool")
    arguments = parser.parse_args()
    real = list(installed_texts()) + list(mirror_texts())
    result = {**measure(real), **beside_datasketch(), **compare(real)}
    if arguments.full:
        result |= generated_pool(arguments.records)
    print(json.dumps(result))


def near_duplicates(texts: list[str]) -> Duplicates:
    bands = choose_bands(CONFIG.jaccard_threshold, CONFIG.num_perm, CONFIG.max_miss_probability)
    sets = shingle_sets(texts, CONFIG.ngram_size)
    index = NearIndex(sets, threshold=CONFIG.jaccard_threshold, num_perm=CONFIG.num_perm, bands=bands)
    return greedy_duplicates(index)


def brute_force(texts: list[str]) -> list[tuple[int, int, float]]:
    """The definition, on sets of tuples of strings: no hash of ours, no band, no filter."""
    sets = [shingles(text) for text in texts]
    kept: list[int] = []
    dropped = []
    for i, a in enumerate(sets):
        for j in kept if a else ():
            shared = len(a & sets[j])
            if shared and shared / (len(a) + len(sets[j]) - shared) >= CONFIG.jaccard_threshold:
                dropped.append((i, j, shared / (len(a) + len(sets[j]) - shared)))
                break
        else:
            kept.append(i)
    return dropped


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    tokens = tokenize(text)
    num_windows = max(len(tokens) - CONFIG.ngram_size + 1, min(len(tokens), 1))
    return frozenset(tuple(tokens[i : i + CONFIG.ngram_size]) for i in range(num_windows))


def measure(texts: list[str]) -> dict[str, Any]:
    near_duplicates(texts[:100])  # tables are built once a process
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    begin = time.process_time()
    found = near_duplicates(texts)
    cpu_s = time.process_time() - begin
    return {
        "texts": len(texts),
        "megabytes": round(megabytes, 1),
        "cpu_s": round(cpu_s, 2),
        "mb_per_cpu_s": round(megabytes / cpu_s, 1),
        "candidates": found.num_candidates,
        "verified": found.num_verified,
        "pairs": len(found.items),
    }


def beside_datasketch(num_texts: int = 20_000) -> dict[str, Any]:
    """Time and memory of datasketch's LSH tables and of ours, for the same signatures and bands."""
    bands = choose_bands(CONFIG.jaccard_threshold, CONFIG.num_perm, CONFIG.max_miss_probability)
    signature = np.random.default_rng(0).integers(0, 2**32, (num_texts, CONFIG.num_perm), dtype=np.uint32)
    rss, begin = resident_bytes(), time.process_time()
    lsh = MinHashLSH(num_perm=CONFIG.num_perm, params=(bands.num_bands, bands.rows))
    permutations = MinHash(num_perm=CONFIG.num_perm).permutations
    for i, values in enumerate(signature):
        minhash = MinHash(hashvalues=values, permutations=permutations, scheme="affine32")
        lsh.insert(i, minhash, check_duplication=False)
    datasketch_s, kilobytes = time.process_time() - begin, (resident_bytes() - rss) / num_texts / 1e3
    begin = time.process_time()
    items = np.repeat(np.arange(num_texts, dtype=np.int32), bands.num_bands)
    Lookup.of(Postings(cut(band_keys(signature, bands).ravel()), items, items).sorted())
    return {
        "datasketch_lsh_kb_per_text": round(kilobytes, 1),
        "datasketch_lsh_time_ratio": round(datasketch_s / (time.process_time() - begin), 1),
    }


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def compare(real: list[str]) -> dict[str, Any]:
    step = max(1, len(real) // NUM_BRUTE_FORCE)
    texts = real[::step][:NUM_BRUTE_FORCE] + list(pairs_at_the_threshold())
    texts = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))]
    expected = brute_force(texts)
    found = near_duplicates(texts)
    got = list(zip(found.items.tolist(), found.keepers.tolist(), found.scores.tolist(), strict=True))
    return {
        "verdicts_equal": got == expected,
        "compared_texts": len(texts),
        "compared_duplicates": len(expected),
        "exactly_at_threshold": sum(score == CONFIG.jaccard_threshold for _, _, score in expected),
    }


def installed_texts() -> Iterator[str]:
    """Pieces of the Python files and documents of this interpreter and its packages."""
    roots = sorted({sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]})
    files = sorted(p for root in roots for p in Path(root).rglob("*") if p.suffix in {".py", ".md", ".rst", ".txt"})
    for file in files[:: max(1, len(files) // 2_500)]:
        try:
            yield from pieces(file.read_text("utf-8"))
        except UnicodeDecodeError:
            continue  # a test file of another encoding


def mirror_texts() -> Iterator[str]:
    """The longest string of each row of the mirror's JSON lines."""
    mirror = Path(os.environ.get("SPEEDBENCH_MIRROR", Path(__file__).resolve().parents[3] / "shared" / "mirror"))
    for file in sorted(mirror.rglob("*.jsonl")):
        with file.open(encoding="utf-8-sig") as lines:
            for line in lines:
                yield from pieces(max(strings(json.loads(line)), key=len, default=""))


def pieces(text: str) -> Iterator[str]:
    for begin in range(0, min(len(text), 20 * CHUNK_CHARS), CHUNK_CHARS):
        yield text[begin : begin + CHUNK_CHARS]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (s for item in value.values() for s in strings(item))
    elif isinstance(value, list):
        yield from (s for item in value for s in strings(item))


def pairs_at_the_threshold() -> Iterator[str]:
    """Pairs of n shingles of which k are exchanged: similarity (n - k) / (n + k).

    At 0.7 exactly, and one shingle to either side of it; in words and in Han characters.
    """
    serial = 0
    rng = np.random.default_rng(1)
    for k, n in ((3, 17), (6, 34), (30, 170), (90, 510)):
        for beside in (-1, 0, 1):
            for copy in range(20):
                words = [f"w{serial + i}" for i in range(n + beside + 4 + k)]
                if copy % 4 == 3:
                    words = [chr(0x4E00 + int(c)) for c in rng.permutation(20_000)[: len(words)]]
                serial += len(words)
                shared = words[: n + beside + 4 - k]
                glue = " " if copy % 4 != 3 else ""
                yield glue.join(shared + words[len(shared) : len(shared) + k])
                yield glue.join(shared + words[len(shared) + k :])


def generated_pool(num_records: int) -> dict[str, Any]:
    """All three layers on records with templates, copies, near-copies and the vectors that they would have."""
    rng = np.random.default_rng(0)
    table, vectors = pool(rng, num_records)
    priority = {f"source_{i}": i for i in range(12)}
    seconds: dict[str, float] = {}
    left = table

    def timed(name: str, result: Any) -> pa.Table:
        seconds[name] = round(time.perf_counter() - begin, 1)
        print(name, seconds[name], "s,", result.table.num_rows, "records left", file=sys.stderr)
        return result.table

    begin = time.perf_counter()
    left = timed("exact_s", dedup_exact(left, priority))
    begin = time.perf_counter()
    left = timed("near_s", dedup_near(left, CONFIG, priority))
    near_rss_gb = peak_gb()
    rows = {record_id: i for i, record_id in enumerate(table.column("record_id").to_pylist())}
    of_left = np.array([rows[record_id] for record_id in left.column("record_id").to_pylist()])
    begin = time.perf_counter()
    left = timed("semantic_s", dedup_semantic(left, vectors[of_left], CONFIG, priority))
    return {
        "pool_records": num_records,
        **seconds,
        "pool_left": left.num_rows,
        "near_peak_rss_gb": near_rss_gb,
        "peak_rss_gb": peak_gb(),
    }


def pool(rng: np.random.Generator, num_records: int, dimensions: int = 512) -> tuple[pa.Table, np.ndarray]:
    """One record in 50 is a copy and one in 20 a near-copy; a third share one of 40 templates of 40 words."""
    words = np.array([f"{a}{b}" for a in "bdfgklmnprstvz" for b in (f"{v}{i}" for v in "aeiou" for i in range(300))])
    ranks = np.minimum(rng.zipf(1.25, size=(num_records, 120)) - 1, len(words) - 1)
    templates = [" ".join(words[rng.integers(len(words), size=40)]) for _ in range(40)]
    texts: list[str] = []
    for i in range(num_records):
        body = words[ranks[i, : rng.integers(20, 120)]].tolist()
        kind = rng.random()
        if i and kind < 0.02:
            texts.append(texts[int(rng.integers(i))])
        elif i and kind < 0.07:
            near = texts[int(rng.integers(i))].split(" ")
            near[int(rng.integers(len(near)))] = "other"
            texts.append(" ".join(near))
        else:
            texts.append((templates[i % 40] + " " if kind < 0.4 else "") + " ".join(body))
    vectors = clustered(rng, num_records, dimensions)
    ids = [f"source_{i % 12}:{i}" for i in range(num_records)]
    columns = {
        "record_id": ids,
        "source": [f"source_{i % 12}" for i in range(num_records)],
        "src_id": [str(i) for i in range(num_records)],
        "category": ["qa"] * num_records,
        "sub_category": [""] * num_records,
        "turns": [[text] for text in texts],
        "text": texts,
        "language": ["en"] * num_records,
        "difficulty": [""] * num_records,
        "template_id": [""] * num_records,
        "record_ids": [[record_id] for record_id in ids],
        "is_code": [False] * num_records,
    }
    return pa.table(columns, schema=POOL_SCHEMA), vectors


def clustered(rng: np.random.Generator, num_rows: int, dimensions: int) -> np.ndarray:
    """Rows around 400 centres; one in 20 close to another row."""
    centres = rng.standard_normal((400, dimensions), dtype=np.float32)
    x = centres[rng.integers(400, size=num_rows)]
    for low in range(0, num_rows, 10_000):
        x[low : low + 10_000] += rng.standard_normal(x[low : low + 10_000].shape, dtype=np.float32)
    near = rng.choice(num_rows, num_rows // 20, replace=False)
    x[near] = x[(near * 7 + 1) % num_rows] + 0.2 * rng.standard_normal((len(near), dimensions), dtype=np.float32)
    return x


def peak_gb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


if __name__ == "__main__":
    main()
