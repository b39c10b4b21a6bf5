"""Peak memory of `speedbench audit run` on a JSONL file of one long row, beside that of a row of one word.

Prints one JSON object: by kind of text, the peak in MB, and the most that is promised: 700 MB and three times the row.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SENTENCE = "the harbour was quiet and slow boats went by under grey clouds while gulls sat on the stones "
FOUND = "A miller grinds nine sacks of rye on each working day but only three sacks on the eve of a feast"
KINDS = {
    "ascii": SENTENCE,
    "one_emoji_a_sentence": SENTENCE + "\U0001f6a4 ",
    "emoji": "\U0001f6a4\U0001f33e\U0001f54a\U0001f9f5\U0001f3a3 ",
    "escaped_chinese": "\\u6cb3\\u9762\\u4e0a\\u7684\\u6668\\u96fe\\u6162\\u6162\\u6563\\u5f00",
    "messages": "",
}
_MEASURE = """
import os, sys
actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions), 0)
print(usage.ru_maxrss if status == 0 else -1)
"""
"""Runs a command from a small process, since one begins with the peak memory of the one that made it."""


def main() -> None:
    """Measure a row of each kind, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--kernel", default="numpy")
    parser.add_argument("--kinds", default=",".join(KINDS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ.setdefault("SPEEDBENCH_CACHE", str(folder / "cache"))
        _write_benchmark(folder / "dist")
        base = _peak_mb(folder, "one word", 0, args.kernel)
        peaks = {kind: _peak_mb(folder, kind, args.mb * 1_000_000, args.kernel) for kind in args.kinds.split(",")}
    promised = 700 + 3 * args.mb
    print(json.dumps({"row_mb": args.mb, "one_word_peak_mb": base, "peak_mb": peaks, "promised_mb": promised}))


def _write_benchmark(folder: Path) -> None:
    row: dict[str, object] = {
        "question_id": "q0",
        "category": "qa",
        "sub_category": "",
        "turns": [FOUND],
        "source": "made",
    }
    row |= {"src_id": "s0", "difficulty": "", "multiturn": False}
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([row]), folder / "data" / "qualitative.parquet")


def _peak_mb(folder: Path, kind: str, size: int, kernel: str) -> int:
    """Write a row of so many bytes that ends with a prompt, audit it, and return the peak of the command's memory."""
    corpus, out = folder / "row.jsonl", folder / kind
    with corpus.open("w", encoding="utf-8") as stream:
        stream.writelines(_pieces(kind, size))
    command = [sys.executable, "-m", "speedbench", "-q", "audit", "run", str(corpus), "--benchmark"]
    command += [str(folder / "dist"), "--out", str(out), "--workers", "1", "--kernel", kernel]
    told = subprocess.run([sys.executable, "-S", "-c", _MEASURE, *command], stdout=subprocess.PIPE, check=True).stdout
    corpus.unlink()
    pairs = json.loads((out / "summary.json").read_text("utf-8"))["pairs"]
    assert pairs == {"exact": 1}, pairs
    return round(int(told) / 1024)


def _pieces(kind: str, size: int) -> Iterator[str]:
    if kind == "messages":
        text = KINDS["one_emoji_a_sentence"] * 100
        message = json.dumps({"role": "user", "content": text}, ensure_ascii=False) + ","
        yield '{"messages": ['
        yield from (message for _ in range(size // len(message.encode())))
        yield json.dumps({"role": "user", "content": FOUND}) + "]}\n"
        return
    text = KINDS.get(kind, "word ")
    yield '{"id": "long", "text": "'
    yield from (text * 1000 for _ in range(size // len(text.encode()) // 1000))
    yield f'{text}{FOUND}"}}\n'


if __name__ == "__main__":
    main()
