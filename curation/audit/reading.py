"""Documents of a unit, in batches bounded by bytes; every row that is not one is counted with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from curation.audit.arrow import arrow_strings, one_string
from curation.audit.json_rows import json_rows, open_stream
from curation.audit.long_rows import LongText
from curation.audit.plan import CorpusFile, Unit, open_binary
from curation.audit.row_counts import RowCounts
from curation.audit.text_fields import (
    Part,
    id_column,
    join_long_parts,
    join_parts,
    parquet_columns,
    row_id,
    row_parts,
    user_turns,
)

BATCH_BYTES = 8 << 20
_BLOCK = 1 << 20
_MAX_ROWS = 512
_ERRORS = (pa.ArrowException, OSError, EOFError)


@dataclass(frozen=True, slots=True)
class Documents:
    """A batch: texts without null, the row of each (from 1 within the unit), and a way to their ids.

    `turns` holds, by index, the character spans of the user turns of those texts that are chats.
    """

    texts: pa.Array
    rows: NDArray[np.int64]
    ids: Sequence[Any]
    turns: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)

    def id_of(self, i: int) -> str:
        """Return the id that the row carries, or ""."""
        if not len(self.ids):
            return ""
        value = self.ids[i]
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        return "" if value is None else str(value)


def read_documents(file: CorpusFile, unit: Unit, paths: Sequence[str], counts: RowCounts) -> Iterator[Documents]:
    """Yield the documents of one unit; `counts` says afterwards what was met."""
    try:
        if file.format == "parquet":
            yield from _read_parquet(file.path, unit, paths, counts)
        elif file.format == "text":
            yield from _read_text(file, counts)
        else:
            yield from _batches(json_rows(file, unit, counts), paths, counts)
    except _ERRORS as error:
        counts.skip(f"unreadable: {str(error).splitlines()[0][:120]}", counts.rows + 1)


def _read_text(file: CorpusFile, counts: RowCounts) -> Iterator[Documents]:
    with open_stream(file) as stream:
        raw = stream.read()
    counts.rows += 1
    yield Documents(_valid(one_string(raw), np.array([1]), counts), np.array([1]), [])


def _decoded(raw: bytes, row: int, counts: RowCounts) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        counts.repair("not UTF-8", row)
        return raw.decode("utf-8", "replace")


def _batches(rows: Iterable[tuple[int, Any]], paths: Sequence[str], counts: RowCounts) -> Iterator[Documents]:
    texts: list[str] = []
    numbers: list[int] = []
    ids: list[str] = []
    turns: dict[int, list[tuple[int, int]]] = {}
    held = 0
    for number, row in rows:
        parts = row_parts(row, paths)
        if not parts:
            counts.skip("no text", number)
            continue
        if any(isinstance(text, LongText) for text, _ in parts):
            documents = _long_document(parts, number, row_id(row), counts)
            del row, parts  # for what is scanned next may need most of the memory
            yield documents
            del documents
            continue
        text = join_parts(parts)
        if spans := user_turns(parts):
            turns[len(texts)] = spans
        texts.append(text)
        numbers.append(number)
        ids.append(row_id(row))
        held += len(text)
        if held >= BATCH_BYTES:
            del row, text, parts
            yield _documents(texts, numbers, ids, turns, counts)
            texts, numbers, ids, turns, held = [], [], [], {}, 0
    if texts:
        yield _documents(texts, numbers, ids, turns, counts)


def _long_document(parts: Sequence[Part], number: int, name: str, counts: RowCounts) -> Documents:
    text = join_long_parts(parts)
    turns = user_turns(parts)
    if text.is_repaired:
        counts.repair("lone surrogate", number)
        turns = []  # their places have moved
    return Documents(one_string(text.raw), np.array([number]), [name], {0: turns} if turns else {})


def _documents(
    texts: list[str],
    numbers: list[int],
    ids: list[str],
    turns: dict[int, list[tuple[int, int]]],
    counts: RowCounts,
) -> Documents:
    try:
        array = arrow_strings(texts)
    except UnicodeEncodeError:
        for i, text in enumerate(texts):
            repaired = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
            if repaired != text:
                counts.repair("lone surrogate", numbers[i])
                texts[i] = repaired
                turns.pop(i, None)  # its places have moved
        array = arrow_strings(texts)
    texts.clear()
    return Documents(array, np.array(numbers, np.int64), ids, turns)


def _read_parquet(path: str, unit: Unit, paths: Sequence[str], counts: RowCounts) -> Iterator[Documents]:
    import pyarrow.parquet as pq

    with open_binary(path) as stream:
        # Pages are read as they are needed: a row group of gigabytes is never in memory whole. A map needs no buffer.
        local = "://" not in path
        source = pa.memory_map(path) if local else stream
        file = pq.ParquetFile(source, pre_buffer=False, buffer_size=0 if local else _BLOCK)
        groups = range(unit.begin, unit.end if unit.end >= 0 else file.metadata.num_row_groups)
        columns = parquet_columns(file.schema_arrow, paths)
        if not columns:
            rows = sum(file.metadata.row_group(i).num_rows for i in groups)
            counts.rows += rows
            counts.skip("no text column", 1, rows)
            return
        name = id_column(file.schema_arrow)
        wanted = [*columns, *([name] if name and name not in columns else [])]
        step = _rows_a_batch(file, groups)
        for batch in _grouped(file.iter_batches(step, list(groups), wanted, use_threads=False)):
            yield _parquet_documents(batch, columns, name, paths, counts)


def _rows_a_batch(file: Any, groups: Iterable[int]) -> int:
    rows = size = 0
    for i in groups:
        rows += file.metadata.row_group(i).num_rows
        size += file.metadata.row_group(i).total_byte_size
    mean = max(1, size // max(rows, 1))
    return int(min(_MAX_ROWS, max(1, BATCH_BYTES // mean)))


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join small batches up to `BATCH_BYTES`."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= BATCH_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _parquet_documents(
    table: pa.Table, columns: Sequence[str], name: str, paths: Sequence[str], counts: RowCounts
) -> Documents:
    numbers = counts.rows + 1 + np.arange(len(table))
    counts.rows += len(table)
    kind = table.schema.field(columns[0]).type
    turns: dict[int, list[tuple[int, int]]] = {}
    if len(columns) == 1 and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        texts = _one_array(table.column(columns[0]))
    else:
        parts = [row_parts(row, paths) for row in table.select(columns).to_pylist()]
        texts = pa.array([join_parts(p) if p else None for p in parts], pa.large_string())
        turns = dict(enumerate(user_turns(p) for p in parts if p))  # rows without text are left out below
    ids: Any = _one_array(table.column(name)) if name else []
    if texts.null_count:
        kept = pc.is_valid(texts)
        missing = numbers[~kept.to_numpy(zero_copy_only=False)]
        counts.skip("no text", int(missing[0]), len(missing))
        texts, ids = texts.filter(kept), ids.filter(kept) if name else []
        numbers = numbers[kept.to_numpy(zero_copy_only=False)]
    return Documents(_valid(texts, numbers, counts), numbers, ids, {i: spans for i, spans in turns.items() if spans})


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _valid(texts: pa.Array, numbers: NDArray[np.int64], counts: RowCounts) -> pa.Array:
    """Replace what is not UTF-8: parquet files are not checked for it when they are read."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = texts.cast(pa.large_binary()).to_pylist()
        return pa.array([_decoded(r, int(n), counts) for r, n in zip(raw, numbers, strict=True)], pa.large_string())
    return texts
