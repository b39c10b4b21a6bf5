"""Arrays and tables of Arrow without loading pandas, half a second that `pyarrow.array` and others take for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

_TYPES = {"int8": pa.int8(), "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}


def arrow_numbers(values: NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array over the same memory."""
    flat = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_TYPES[flat.dtype.name], len(flat), [None, pa.py_buffer(flat)])


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Return the numbers of an Arrow array without nulls, over the same memory."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def text_offsets(texts: pa.Array) -> NDArray[Any]:
    """Return where each string of an Arrow array begins in its bytes, and where the last one ends."""
    dtype = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    if not len(texts):
        return np.zeros(1, dtype)
    return np.frombuffer(texts.buffers()[1], dtype)[texts.offset : texts.offset + len(texts) + 1]


def arrow_strings(texts: Sequence[str], kind: pa.DataType | None = None) -> pa.Array:
    """Return strings as an Arrow array of type `kind`, by default `large_string`.

    Raises
    ------
    UnicodeEncodeError
        If a text holds a lone surrogate.
    """
    parts = [text.encode() for text in texts]
    small = kind is not None and pa.types.is_string(kind)
    offsets = np.zeros(len(parts) + 1, np.int32 if small else np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(pa.string() if small else pa.large_string(), len(parts), buffers)


def one_string(raw: bytes | bytearray | memoryview) -> pa.Array:
    """Return UTF-8 bytes as a `large_string` array of one entry over the same memory."""
    offsets = pa.py_buffer(np.array([0, len(raw)], np.int64))
    return pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(raw)])


def text_bytes(texts: pa.Array, i: int) -> memoryview:
    """Return the UTF-8 bytes of one string of an Arrow array, over the same memory."""
    begin, end = text_offsets(texts)[i : i + 2].tolist()
    return memoryview(texts.buffers()[2] or b"")[begin:end]


def equals(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    """Tell of each string of a column whether it is a value."""
    return pc.equal(column, arrow_strings([value], column.type)[0])


def arrow_table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table of strings and numbers."""
    columns = []
    for field in schema:
        values = [row[field.name] for row in rows]
        if None in values:
            columns.append(pa.array(values, field.type))
        elif pa.types.is_string(field.type):
            columns.append(arrow_strings(values, field.type))
        else:
            columns.append(arrow_numbers(np.array(values, field.type.to_pandas_dtype())))
    return pa.Table.from_arrays(columns, schema=schema)


def read_plain(path: Path) -> pa.Table:
    """Return the table in one parquet file, without the dataset layer of `pyarrow.parquet.read_table`."""
    with pq.ParquetFile(path) as file:
        return file.read()
