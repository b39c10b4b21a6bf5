"""Whether every version of `datasets` from 3.6 to 5 reads the parquet files, with the columns that we publish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from curation.load import SPEED_BENCH_COLUMNS
from curation.schema import SPLIT_SCHEMA
from curation.verify.base import Fault, Subject

_REBUILD = "build it again"


def check_parquet(subject: Subject) -> Iterator[Fault]:
    """Find files that cannot be read, metadata that an older `datasets` chokes on, null types, nulls, odd columns."""
    for config, paths in subject.configs.items():
        for path in paths:
            name = path.relative_to(subject.folder).as_posix()
            try:
                yield from _check_file(path, name, is_ours=subject.is_ours)
            except (pa.ArrowException, OSError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                yield Fault("parquet", name, "", f"not a readable parquet file ({reason})", _REBUILD)
        if len({pq.read_schema(path).remove_metadata() for path in paths if _is_parquet(path)}) > 1:
            yield Fault("parquet", config, "", "its files have different columns", _REBUILD)


def has_null_type(kind: pa.DataType) -> bool:
    """Tell whether a type is, or holds, Arrow's null type, which no later file of the config could match."""
    inside = [kind.field(i).type for i in range(kind.num_fields)]
    return bool(pa.types.is_null(kind)) or any(has_null_type(each) for each in inside)


def _check_file(path: Path, name: str, *, is_ours: bool) -> Iterator[Fault]:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        for field in schema:
            if has_null_type(field.type):
                message = f"column {field.name!r} has the null type: another file of the config cannot be read with it"
                yield Fault("parquet", name, "", message, "write it with its own schema")
        yield from _check_columns(schema, name, is_ours=is_ours)
        yield from _check_nulls(file, name)


def _check_columns(schema: pa.Schema, name: str, *, is_ours: bool) -> Iterator[Fault]:
    for column in SPEED_BENCH_COLUMNS:
        if column not in schema.names:
            yield Fault("parquet", name, "", f"column {column!r} is absent", _REBUILD)
    if not is_ours:
        return
    if b"huggingface" in (schema.metadata or {}):
        message = "its metadata holds the key 'huggingface', whose feature types datasets 3.6 does not know"
        yield Fault("parquet", name, "", message, "write it with its own schema")
    for field in SPLIT_SCHEMA:
        if field.name not in schema.names:
            if field.name not in SPEED_BENCH_COLUMNS:
                yield Fault("parquet", name, "", f"column {field.name!r} is absent", _REBUILD)
        elif schema.field(field.name).type != field.type:
            message = f"column {field.name!r} has the type {schema.field(field.name).type}, not {field.type}"
            yield Fault("parquet", name, "", message, _REBUILD)
    for column in schema.names:
        if column not in SPLIT_SCHEMA.names:
            yield Fault("parquet", name, "", f"column {column!r} is none of ours", _REBUILD)
    if not set(schema.names) ^ set(SPLIT_SCHEMA.names) and schema.names != SPLIT_SCHEMA.names:
        yield Fault("parquet", name, "", "its columns stand in another order", _REBUILD)


def _check_nulls(file: pq.ParquetFile, name: str) -> Iterator[Fault]:
    start = 0
    for batch in file.iter_batches(batch_size=1_024):
        for column, array in zip(batch.schema.names, batch.columns, strict=True):
            for place in _null_places(array):
                yield Fault("parquet", name, f"row {start + place}", f"column {column!r} is null", "publish no null")
        start += batch.num_rows


def _null_places(array: pa.Array) -> list[int]:
    is_list = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
    if not array.null_count and not (is_list and array.values.null_count):
        return []
    return [i for i, value in enumerate(array.to_pylist()) if value is None or (is_list and None in value)]


def _is_parquet(path: Path) -> bool:
    try:
        pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return False
    return True
