"""The conversations to send: any DIST, Spec-Bench, MT-Bench, a JSONL of turns, or random tokens. Reads files."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.config import DataConfig
from bench.errors import BenchError
from bench.random_prompts import random_prompts
from curation.load import is_placeholder, read_config

_MT_BENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
_BUCKET = re.compile(r"throughput_(\w+)")


@dataclass(frozen=True, slots=True)
class Conversation:
    """One row to send: its user turns, or the ids of a random prompt, and what it can be sliced by."""

    question_id: str
    turns: tuple[str, ...]
    slices: Mapping[str, str] = field(default_factory=dict)
    random_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """The conversations of a run, and what was left out.

    Attributes
    ----------
    sha256
        Digest of ids and turns in order: two runs with one digest sent the same rows.
    total
        Rows by category before any was left out.
    placeholders
        question_id of the rows that were left out because their text has to be fetched.
    synthetic
        Whether the prompts are random tokens.
    """

    name: str
    conversations: tuple[Conversation, ...]
    sha256: str
    total: Mapping[str, int]
    placeholders: tuple[str, ...] = ()
    synthetic: bool = False

    def shortfall(self) -> dict[str, tuple[int, int]]:
        """Return (rows sent, rows there are) of each category that is not whole."""
        sent = Counter(c.slices.get("category", "") for c in self.conversations)
        return {name: (sent[name], n) for name, n in sorted(self.total.items()) if sent[name] < n}


def load_split(data: DataConfig) -> Split:
    """Return the conversations that a configuration names.

    Raises
    ------
    BenchError
        If the data cannot be read, or rows are placeholders and `allow_partial` is off.
    """
    if data.format == "random":
        return _random_split(data)
    rows = _rows(data)
    if not rows:
        raise BenchError(f"{data.path}: no rows")
    twice = [name for name, n in Counter(row.question_id for row in rows).items() if n > 1]
    if twice:
        raise BenchError(f"{data.path}: question_id {twice[0]!r} stands in two rows; give each row its own")
    rows = _of_categories(rows, data)
    total = Counter(row.slices["category"] for row in rows)
    withheld = tuple(row.question_id for row in rows if is_placeholder(row.turns))
    if withheld and not data.allow_partial:
        raise BenchError(
            f"{data.path}: {len(withheld)} of {len(rows)} rows are placeholders ({', '.join(withheld[:5])}): "
            "fill them first, or set data.allow_partial"
        )
    gone = frozenset(withheld)
    kept = _limited([row for row in rows if row.question_id not in gone], data.limit)
    if data.first_turn_only:
        kept = [Conversation(c.question_id, c.turns[:1], c.slices) for c in kept]
    name = data.config if data.format == "dist" else data.format
    return Split(name, tuple(kept), _digest(kept), dict(total), withheld)


def _of_categories(rows: list[Conversation], data: DataConfig) -> list[Conversation]:
    there = sorted({row.slices["category"] for row in rows})
    for name in data.categories:
        if name not in there:
            raise BenchError(f"{data.path}: data.categories: no row of {name!r}; there are {', '.join(there)}")
    return [row for row in rows if not data.categories or row.slices["category"] in data.categories]


def _limited(rows: Sequence[Conversation], limit: int | None) -> list[Conversation]:
    if limit is None:
        return list(rows)
    seen, kept = Counter[str](), []
    for row in rows:
        category = row.slices["category"]
        seen[category] += 1
        if seen[category] <= limit:
            kept.append(row)
    return kept


def _digest(rows: Iterable[Conversation]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.question_id, row.turns, row.random_ids], ensure_ascii=False).encode())
    return digest.hexdigest()


def _rows(data: DataConfig) -> list[Conversation]:
    if data.format == "dist":
        table = read_config(data.path, data.config, allow_placeholders=True)
        return [_conversation(row, data) for row in table.to_pylist()]
    try:
        lines = Path(data.path).read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise BenchError(f"{data.path}: {error.strerror}; give the path of a JSONL file") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            rows.append(_conversation(_parsed(data.path, number, line), data))
    return rows


def _parsed(path: str, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise BenchError(f"{path}:{number}: not JSON: {error}") from None
    if "turns" not in row and isinstance(row.get("prompt"), str):
        row["turns"] = [row["prompt"]]
    turns = row.get("turns")
    if not turns or not all(isinstance(turn, str) and turn for turn in turns):
        raise BenchError(f"{path}:{number}: need `turns`, a list of texts, or `prompt`, one text")
    row.setdefault("question_id", str(number))
    return dict(row)


def _conversation(row: Mapping[str, Any], data: DataConfig) -> Conversation:
    category = str(row.get("category") or "all")
    slices = {"category": category, "sub_category": str(row.get("sub_category") or "")}
    spec_bench = data.format == "spec_bench" or (data.format == "dist" and data.config == "spec_bench")
    if spec_bench and category in _MT_BENCH:
        # Spec-Bench's first task is MT-Bench, whose rows carry MT-Bench's own categories.
        slices = {"category": "mt_bench", "sub_category": category}
    bucket = _BUCKET.fullmatch(data.config) if data.format == "dist" else None
    slices |= {
        "difficulty": str(row.get("difficulty") or ""),
        "multiturn": str(len(row["turns"]) > 1).lower(),
        "source": str(row.get("source") or ""),
        "isl": bucket[1] if bucket else "",
        "tier": category if bucket else "",
    }
    return Conversation(str(row["question_id"]), tuple(row["turns"]), slices)


def _random_split(data: DataConfig) -> Split:
    slices = {"category": "random", "isl": str(data.random_isl), "multiturn": "false"}
    rows = [Conversation(f"random-{n}", (text,), slices, ids) for n, (text, ids) in enumerate(random_prompts(data))]
    return Split("random", tuple(rows), _digest(rows), {"random": len(rows)}, synthetic=True)
