"""The prompts of a DIST, as the audit looks for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.errors import DistError
from sources.disk import file_sha256

OWNER_SCHEMA = pa.schema(
    [
        ("prompt", pa.int32()),
        ("config", pa.string()),
        ("question_id", pa.string()),
        ("turn", pa.int32()),
        ("category", pa.string()),
        ("source", pa.string()),
        ("src_id", pa.string()),
    ]
)
"""Where each distinct prompt stands: one row a turn of a row of a config."""

_COLUMNS = ("question_id", "category", "turns", "source", "src_id")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The distinct prompts of a DIST and where each stands.

    Attributes
    ----------
    texts
        Distinct turns, in the order of their first appearance; "" for a placeholder.
    groups
        The record of each, as a number: turns of one record, in any config, have the same.
    placeholders
        True where the text is not in the DIST.
    owners
        Table of `OWNER_SCHEMA`.
    """

    texts: Sequence[str]
    groups: Sequence[int]
    placeholders: Sequence[bool]
    owners: pa.Table


def benchmark_files(dist: str | Path) -> dict[str, list[Path]]:
    """Return the parquet files of each config of a DIST: a folder, or ORG/NAME@REV on the Hub."""
    from curation.load import config_files, resolve_dist

    files = config_files(resolve_dist(dist))
    if not files:
        raise DistError(f"{dist}: holds no data/*.parquet; name the folder of a benchmark or ORG/NAME@REVISION")
    return files


def benchmark_digest(files: dict[str, list[Path]]) -> str:
    """Return the SHA-256 over the configs and the digests of their files."""
    digest = hashlib.sha256()
    for config in sorted(files):
        for path in files[config]:
            digest.update(f"{config}\x1f{file_sha256(path)}\n".encode())
    return digest.hexdigest()


def read_benchmark(files: dict[str, list[Path]]) -> Benchmark:
    """Read the prompts of all configs; the same text in two rows is one prompt with two owners."""
    texts: dict[str, int] = {}
    prompts: list[str] = []
    placeholders: list[bool] = []
    groups: list[int] = []
    records: dict[tuple[str, str], int] = {}
    owners: list[dict[str, Any]] = []
    for row in _rows(files):
        record = records.setdefault((row["source"], row["src_id"] or row["question_id"]), len(records))
        hidden = _is_placeholder(row["turns"])
        for turn, text in enumerate(row["turns"]):
            key = f"\x00{row['question_id']}\x1f{turn}" if hidden else text
            if key not in texts:
                texts[key] = len(prompts)
                prompts.append("" if hidden else text)
                placeholders.append(hidden)
                groups.append(record)
            owner = {name: row[name] for name in ("config", "question_id", "category", "source", "src_id")}
            owners.append({"prompt": texts[key], "turn": turn, **owner})
    return Benchmark(prompts, groups, placeholders, pa.Table.from_pylist(owners, schema=OWNER_SCHEMA))


def _is_placeholder(turns: Sequence[str]) -> bool:
    from curation.load import is_placeholder

    return is_placeholder(turns)


def _rows(files: dict[str, list[Path]]) -> Iterator[dict[str, Any]]:
    for config in sorted(files):
        for path in files[config]:
            for row in _read(path).to_pylist():
                row["config"] = config
                row["turns"] = [str(turn) for turn in row["turns"] or ()]
                row["category"], row["source"] = row.get("category") or "", row.get("source") or ""
                row["question_id"], row["src_id"] = str(row["question_id"]), str(row.get("src_id") or "")
                yield row


def _read(path: Path) -> pa.Table:
    try:
        known = pq.read_schema(path).names
        missing = [name for name in ("question_id", "turns") if name not in known]
        if missing:
            raise DistError(f"{path}: not a split of a benchmark: it lacks the column {missing[0]!r}")
        return pq.read_table(path, columns=[name for name in _COLUMNS if name in known], partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise DistError(f"{path}: not a readable parquet file ({str(error).splitlines()[0]}); fetch it again") from None
