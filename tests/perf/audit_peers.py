"""What whole-text and block MinHash and a set of word 13-grams find on a part of the same corpus, and how fast."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasketch import MinHash, MinHashLSH, MinHashLSHEnsemble

SAMPLE_BYTES = 4_000_000
BLOCK_WORDS = 600
_WORD = re.compile(r"\w+")


def measure(folder: Path) -> dict[str, Any]:
    """Return recall of verbatim and reformatted plants, traps flagged and MB per CPU-second, for each peer."""
    truth = json.loads((folder / "truth.json").read_text("utf-8"))
    forms = {p["document"]: (p["prompt"], p["form"]) for p in truth["plants"]}
    prompts = {p["id"]: _WORD.findall(p["text"].lower()) for p in truth["prompts"]}
    sample = list(_sample(folder))
    size = sum(len(text.encode()) for _, text in sample) / 1e6
    result: dict[str, Any] = {"sample_mb": round(size, 1)}
    for name, build in (("lsh", _lsh), ("lsh_ensemble", _ensemble), ("word_13_grams", _ngrams)):
        find = build(prompts)
        begin = time.process_time()
        found = {document: find(_WORD.findall(text.lower())) for document, text in sample}
        spent = time.process_time() - begin
        copies = [
            (d, *forms[d])
            for d, _ in sample
            if d in forms and forms[d][1] in ("exact_alone", "exact_embedded", "format")
        ]
        result[name] = {
            "mb_per_cpu_s": round(size / spent, 2),
            "recall_exact_format": round(sum(p in found[d] for d, p, _ in copies) / max(len(copies), 1), 4),
            "traps_flagged": f"{sum(bool(found[d]) for d, _ in sample if d[0] == 't')} of {sum(d[0] == 't' for d, _ in sample)}",
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


def _blocks(words: list[str]) -> Iterator[list[str]]:
    for i in range(0, max(len(words), 1), BLOCK_WORDS):
        yield words[i : i + BLOCK_WORDS]


def _lsh(prompts: dict[str, list[str]]) -> Callable[[list[str]], set[str]]:
    index = MinHashLSH(threshold=0.5, num_perm=128)
    for name, words in prompts.items():
        index.insert(name, _sketch(words))
    return lambda words: {name for block in _blocks(words) for name in index.query(_sketch(block))}


def _ensemble(prompts: dict[str, list[str]]) -> Callable[[list[str]], set[str]]:
    # It answers which indexed sets contain the query: blocks would have to be indexed and prompts asked for. Asked the
    # other way round, as a stream must, it finds prompts that hold most of a block.
    index = MinHashLSHEnsemble(threshold=0.5, num_perm=128, num_part=16)
    index.index([(name, _sketch(words), max(1, len(words) - 4)) for name, words in prompts.items()])
    return lambda words: {
        name for block in _blocks(words) for name in index.query(_sketch(block), max(1, len(block) - 4))
    }


def _ngrams(prompts: dict[str, list[str]]) -> Callable[[list[str]], set[str]]:
    grams: dict[tuple[str, ...], set[str]] = {}
    for name, words in prompts.items():
        for i in range(len(words) - 12):
            grams.setdefault(tuple(words[i : i + 13]), set()).add(name)
    return lambda words: {name for i in range(len(words) - 12) for name in grams.get(tuple(words[i : i + 13]), ())}
