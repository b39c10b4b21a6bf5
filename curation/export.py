"""The prompts of a DIST as JSON lines, in the shapes that other tools read.

`messages`, one file a config, is what vLLM's `speed_bench` data set and aiperf's SPEED-Bench loaders read: both look
for `<config>.jsonl` and take `category` and `messages[].content`; aiperf asks for a `question_id` of 32 characters too
and refuses blank contents. `turns` is what SGLang's `speed_bench` data set and vLLM's `spec_bench` read: `category` and
`turns`.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.errors import DistError
from curation.folder import new_folder, refuse_existing
from curation.load import SPEED_BENCH_COLUMNS, config_files, placeholder_rows, read_config, resolve_dist

logger = logging.getLogger(__name__)

ID_CHARS = 32
"""Length of a question_id; aiperf refuses any other."""

_ROWS_PER_BATCH = 64

# JSON may hold these raw, but readers that split a text into lines would cut there: NEL and the two Unicode separators.
_LINE_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


@dataclass(frozen=True, slots=True)
class ExportedConfig:
    """One file: its config and name, the rows that it holds, and the placeholder rows that were left out.

    `short` names each category that lost rows, with what is left of it: `reasoning 0 of 1, stem 1 of 2`; "" if none.
    """

    config: str
    file: str
    rows: int
    left_out: int
    short: str


def export_dist(
    dist: str | Path,
    out: Path,
    *,
    shape: str = "messages",
    configs: Sequence[str] = (),
    allow_partial: bool = False,
) -> tuple[ExportedConfig, ...]:
    """Write `<config>.jsonl` of every config of a DIST, or of those named, into a new folder.

    Parameters
    ----------
    dist
        A folder or `ORG/NAME@REVISION`.
    out
        A folder that is not there yet, or is empty.
    shape
        One of `SHAPES`.
    configs
        Names; all of them where empty.
    allow_partial
        Leave placeholder rows out instead of refusing them.

    Raises
    ------
    DistError
        If rows are placeholders, a config is not there, a row cannot be read by those tools, or `out` is taken.
    """
    refuse_existing(out)
    folder = resolve_dist(dist)
    names = list(configs) or sorted(config_files(folder))
    with new_folder(out) as scratch:
        return tuple(
            _write(scratch, name, read_config(folder, name, allow_placeholders=allow_partial), SHAPES[shape])
            for name in names
        )


def messages_line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its turns as user messages of the chat API."""
    messages = [{"role": "user", "content": turn} for turn in row["turns"]]
    return {**_shared(row), "messages": messages}


def turns_line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its turns as texts."""
    return {**_shared(row), "turns": row["turns"]}


SHAPES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"messages": messages_line, "turns": turns_line}


def _shared(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in SPEED_BENCH_COLUMNS if name != "turns"}


def _write(
    folder: Path, config: str, table: pa.Table, line: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> ExportedConfig:
    held = set(placeholder_rows(table))
    path = folder / f"{config}.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for i, row in enumerate(_rows(table)):
            if i not in held:
                _refuse_unreadable(config, row)
                stream.write(json_line(line(row)))
    short = _short(table, held)
    if held:
        logger.warning("%s: %d of %d rows are placeholders and are left out: %s", config, len(held), len(table), short)
    return ExportedConfig(config, path.name, len(table) - len(held), len(held), short)


def _short(table: pa.Table, held: set[int]) -> str:
    categories = table.column("category").to_pylist()
    whole, lost = Counter(categories), Counter(categories[i] for i in held)
    return ", ".join(f"{name} {whole[name] - lost[name]} of {whole[name]}" for name in sorted(lost))


def json_line(value: Mapping[str, Any]) -> str:
    """Return a value as one line of JSON, whatever line breaks its texts hold."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_LINE_BREAKS) + "\n"


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH):
        yield from batch.to_pylist()


def _refuse_unreadable(config: str, row: Mapping[str, Any]) -> None:
    where = f"{config}: row {row['question_id']}"
    if len(row["question_id"]) != ID_CHARS:
        raise DistError(f"{where}: a question_id of {ID_CHARS} characters is read elsewhere; run `speedbench verify`")
    if not row["turns"] or any(not turn.strip() for turn in row["turns"]):
        raise DistError(f"{where}: it holds a blank turn, which no tool sends; run `speedbench verify`")
