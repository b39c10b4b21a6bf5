"""What whole-text and block MinHash and a set of word 13-grams find on a part of the same corpus, and how fast."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasketch import MinHash, MinHashLSH, MinHashLSHEnsemble

SAMPLE_BYTES = 4_000_000
BLOCK_WORDS = 600
_WORD = re.compile(r"\w+")
_COPIES = ("exact_alone", "exact_embedded", "format")

Words = dict[str, list[str]]
Sample = list[tuple[str, str]]
Found = dict[str, set[str]]


def measure(folder: Path) -> dict[str, Any]:
    """Return recall of verbatim and reformatted plants, traps flagged and MB per CPU-second, for each peer."""
    truth = json.loads((folder / "truth.json").read_text("utf-8"))
    planted = {p["document"]: p["prompt"] for p in truth["plants"] if p["form"] in _COPIES}
    prompts = {p["id"]: _WORD.findall(p["text"].lower()) for p in truth["prompts"]}
    sample = list(_sample(folder))
    size = sum(len(text.encode()) for _, text in sample) / 1e6
    result: dict[str, Any] = {"sample_mb": round(size, 1)}
    for name, find in (("lsh", _lsh), ("lsh_ensemble", _ensemble), ("word_13_grams", _ngrams)):
        begin = time.process_time()
        found = find(prompts, sample)
        spent = time.process_time() - begin
        copies = [document for document, _ in sample if document in planted]
        traps = [document for document, _ in sample if document[0] == "t"]
        result[name] = {
            "mb_per_cpu_s": round(size / spent, 2),
            "recall_exact_format": round(sum(planted[d] in found.get(d, ()) for d in copies) / max(len(copies), 1), 4),
            "traps_flagged": sum(d in found for d in traps),
            "traps": len(traps),
        }
    return result


def _sample(folder: Path) -> Iterator[tuple[str, str]]:
    held = 0
    for row in pq.read_table(folder / "corpus" / "part-0.parquet").to_pylist():
        if (held < SAMPLE_BYTES and len(row["text"]) < 100_000) or row["id"][0] in "pt":
            held += len(row["text"])
            yield row["id"], row["text"]


def _sketch(words: list[str]) -> MinHash:
    sketch = MinHash(num_perm=128)
    sketch.update_batch([" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))])
    return sketch


def _blocks(text: str) -> Iterator[list[str]]:
    words = _WORD.findall(text.lower())
    for i in range(0, max(len(words), 1), BLOCK_WORDS):
        yield words[i : i + BLOCK_WORDS]


def _lsh(prompts: Words, sample: Sample) -> Found:
    index = MinHashLSH(threshold=0.5, num_perm=128)
    for name, words in prompts.items():
        index.insert(name, _sketch(words))
    found: Found = {}
    for document, text in sample:
        for block in _blocks(text):
            for name in index.query(_sketch(block)):
                found.setdefault(document, set()).add(name)
    return found


def _ensemble(prompts: Words, sample: Sample) -> Found:
    # It finds the indexed sets that contain most of the query: so the blocks are indexed, and the prompts asked for.
    blocks = [(document, block) for document, text in sample for block in _blocks(text)]
    index = MinHashLSHEnsemble(threshold=0.8, num_perm=128, num_part=16)
    index.index((i, _sketch(block), max(1, len(block) - 4)) for i, (_, block) in enumerate(blocks))
    found: Found = {}
    for name, words in prompts.items():
        for i in index.query(_sketch(words), max(1, len(words) - 4)):
            found.setdefault(blocks[i][0], set()).add(name)
    return found


def _ngrams(prompts: Words, sample: Sample) -> Found:
    grams: dict[tuple[str, ...], set[str]] = {}
    for name, words in prompts.items():
        for i in range(len(words) - 12):
            grams.setdefault(tuple(words[i : i + 13]), set()).add(name)
    found: Found = {}
    for document, text in sample:
        words = _WORD.findall(text.lower())
        for i in range(len(words) - 12):
            for name in grams.get(tuple(words[i : i + 13]), ()):
                found.setdefault(document, set()).add(name)
    return found
