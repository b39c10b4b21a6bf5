"""Where the text of a row is: found by name, or named by a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from curation.audit.long_rows import LongText, encode_text

TEXT_NAMES = ("text", "content", "messages", "conversations", "conversation")
"""Columns that hold the whole document of a row, in the order in which they are looked for."""

ID_NAMES = ("id", "doc_id", "document_id", "uuid", "_id", "question_id")
"""Columns that name a row."""

MESSAGE_NAMES = ("content", "value", "text")
"""Where a chat message keeps its text; OpenAI's and ShareGPT's words."""

ROLE_NAMES = ("role", "from")
USERS = ("user", "human")
"""Where a chat message says who speaks, and what the person is called there."""

_JOINT = "\n\n"
Text = str | LongText
Part = tuple[Text, bool]
"""A text of a row, and whether it is a user turn of a chat."""


def row_parts(row: Any, paths: Sequence[str]) -> list[Part]:
    """Return the texts of a JSON row, whose joint is its document; empty if there are none.

    Parameters
    ----------
    row
        What the line holds.
    paths
        Dotted paths; lists on the way are walked through. Empty: the first of `TEXT_NAMES` that holds text, and if
        there is none, every string of the row's own columns, so that no column goes unread.
    """
    if isinstance(row, Text):
        return [(row, False)]
    if not isinstance(row, dict):
        return []
    if paths:
        return [part for path in paths for part in _walk(row, path.split("."))]
    for name in TEXT_NAMES:
        value = row.get(name)
        if isinstance(value, Text):
            return [(value, False)]
        parts = list(_strings(value))
        if parts:
            return parts
    return [part for name, value in row.items() if name not in ID_NAMES for part in _strings(value)]


def join_parts(parts: Sequence[Part]) -> str:
    """Return the document that texts make, none of them a `LongText`."""
    return str(parts[0][0]) if len(parts) == 1 else _JOINT.join([str(text) for text, _ in parts])


def join_long_parts(parts: Sequence[Part]) -> LongText:
    """Return the document that texts make, some of them a `LongText`."""
    texts = [text if isinstance(text, LongText) else LongText(*encode_text(text)) for text, _ in parts]
    if len(texts) == 1:
        return texts[0]
    return LongText(_JOINT.encode().join([text.raw for text in texts]), any(text.is_repaired for text in texts))


def user_turns(parts: Sequence[Part]) -> list[tuple[int, int]]:
    """Return the half-open character spans of the user turns in the document that texts make."""
    spans, at = [], 0
    for text, is_user in parts:
        if is_user:
            spans.append((at, at + len(text)))
        at += len(text) + len(_JOINT)
    return spans


def row_id(row: Any) -> str:
    """Return the id that a JSON row carries, or ""."""
    if isinstance(row, dict):
        for name in ID_NAMES:
            if isinstance(row.get(name), Text | int):
                return str(row[name])
    return ""


def _walk(value: Any, path: Sequence[str], is_user: bool = False) -> Iterator[Part]:
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, path, is_user)
    elif not path:
        yield from _strings(value, is_user)
    elif isinstance(value, dict) and path[0] in value:
        yield from _walk(value[path[0]], path[1:], is_user or _is_user(value))


def _strings(value: Any, is_user: bool = False) -> Iterator[Part]:
    """All texts of a value: strings, lists of them, chat messages, parts of a message."""
    if isinstance(value, Text):
        yield value, is_user
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, is_user)
    elif isinstance(value, dict):
        for name in MESSAGE_NAMES:
            if name in value:
                yield from _strings(value[name], is_user or _is_user(value))
                return


def _is_user(message: dict[str, Any]) -> bool:
    return any(message.get(name) in USERS for name in ROLE_NAMES)


def parquet_columns(schema: pa.Schema, paths: Sequence[str]) -> list[str]:
    """Return the top columns of a parquet file that hold its text, by the rules of `row_parts`; empty if none does."""
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
