"""Where the text of a row is: found by name, or named by a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

TEXT_NAMES = ("text", "content", "messages", "conversations", "conversation")
"""Columns that hold the whole document of a row, in the order in which they are looked for."""

ID_NAMES = ("id", "doc_id", "document_id", "uuid", "_id", "question_id")
"""Columns that name a row."""

MESSAGE_NAMES = ("content", "value", "text")
"""Where a chat message keeps its text; OpenAI's and ShareGPT's words."""

_JOINT = "\n\n"


def row_text(row: Any, paths: Sequence[str]) -> str | None:
    """Return the text of a JSON row, or None if it has none.

    Parameters
    ----------
    row
        What the line holds.
    paths
        Dotted paths; lists on the way are walked through. Empty: the first of `TEXT_NAMES` that holds text, and if
        there is none, every string of the row's own columns, so that no column goes unread.
    """
    if isinstance(row, str):
        return row
    if not isinstance(row, dict):
        return None
    if paths:
        parts = [part for path in paths for part in _walk(row, path.split("."))]
        return _JOINT.join(parts) if parts else None
    for name in TEXT_NAMES:
        value = row.get(name)
        if isinstance(value, str):
            return value
        parts = list(_strings(value))
        if parts:
            return _JOINT.join(parts)
    parts = [part for name, value in row.items() if name not in ID_NAMES for part in _strings(value)]
    return _JOINT.join(parts) if parts else None


def row_id(row: Any) -> str:
    """Return the id that a JSON row carries, or ""."""
    if isinstance(row, dict):
        for name in ID_NAMES:
            if isinstance(row.get(name), (str, int)):
                return str(row[name])
    return ""


def _walk(value: Any, path: Sequence[str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, path)
    elif not path:
        yield from _strings(value)
    elif isinstance(value, dict) and path[0] in value:
        yield from _walk(value[path[0]], path[1:])


def _strings(value: Any) -> Iterator[str]:
    """All texts of a value: strings, lists of them, chat messages, parts of a message."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for name in MESSAGE_NAMES:
            if name in value:
                yield from _strings(value[name])
                return


def parquet_columns(schema: pa.Schema, paths: Sequence[str]) -> list[str]:
    """Return the top columns of a parquet file that hold its text, by the rules of `row_text`; empty if none does."""
    if paths:
        heads = [path.split(".")[0] for path in paths]
        return list(dict.fromkeys(head for head in heads if head in schema.names))
    for name in TEXT_NAMES:
        if name in schema.names and _holds_text(schema.field(name).type):
            return [name]
    return [field.name for field in schema if field.name not in ID_NAMES and _holds_text(field.type)]


def id_column(schema: pa.Schema) -> str:
    """Return the column that names the rows of a parquet file, or ""."""
    for name in ID_NAMES:
        if name in schema.names:
            kind = schema.field(name).type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind):
                return name
    return ""


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _holds_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(kind.field(i).name in MESSAGE_NAMES and _holds_text(kind.field(i).type) for i in range(len(kind)))
    return False
