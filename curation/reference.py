"""Reads the reference sets of a recipe: the texts of training sets that must not be candidates. A door of IO."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq

from curation.errors import BuildError
from curation.recipe import ReferenceConfig
from curation.stages.decontaminate import ReferenceText

TEXT_COLUMNS = (
    "text", "prompt", "messages", "conversations", "conversation", "turns", "question", "instruction", "problem",
    "query", "input", "content",
)  # fmt: skip
"""Where a text or a chat is looked for if the recipe names no column; the first that a file has is taken."""

_USER_ROLES = frozenset(("user", "human", "prompter"))
_BATCH_ROWS = 1_024


def read_references(references: Iterable[ReferenceConfig], mirror: Path | None) -> Iterator[ReferenceText]:
    """Yield the texts of all reference sets, in the order of the recipe, of their files' paths and of their rows.

    A chat yields each user message. A row is named by its file and its place there, from 1: `train.jsonl:17`, and
    `train.jsonl:17#2` for the second text of a chat.

    Parameters
    ----------
    references
        The sets of the recipe.
    mirror
        Folder of the paths that do not begin with `hf://`.

    Raises
    ------
    BuildError
        If a pattern matches no file, a file cannot be read, or a row of it has no text: what was not read must not pass
        for clean.
    """
    for config in references:
        found = False
        try:
            for name, file in _files(config, mirror):
                found = True
                with file:
                    yield from _texts(config, name, file)
        except OSError as error:
            raise BuildError(f"reference {config.name}: {config.path} cannot be read: {_first_line(error)}") from None
        if not found:
            raise BuildError(f"reference {config.name}: no file matches {config.path}: correct the path in the recipe")


def _files(config: ReferenceConfig, mirror: Path | None) -> Iterator[tuple[str, IO[bytes]]]:
    if config.path.startswith("hf://"):
        yield from _hub_files(config)
        return
    if mirror is None:
        raise BuildError(f"reference {config.name}: {config.path} lies in a mirror: pass --mirror DIR")
    for file in sorted(p for p in mirror.rglob("*") if p.is_file()):
        relative = file.relative_to(mirror).as_posix()
        if fnmatch.fnmatchcase(relative, config.path):
            yield relative, file.open("rb")


def _hub_files(config: ReferenceConfig) -> Iterator[tuple[str, IO[bytes]]]:
    from huggingface_hub import HfFileSystem

    hub = HfFileSystem()
    for path in sorted(hub.glob(config.path)):
        # datasets/org/name@revision/path: the last part names the file in its repository.
        yield path.split("/", 3)[-1], hub.open(path, "rb")


def _texts(config: ReferenceConfig, name: str, file: IO[bytes]) -> Iterator[ReferenceText]:
    column = config.text
    for line, row in _rows(config, name, file):
        where = f"{name}:{line}"
        if not column:
            column = _text_column(config, where, row)
        value = row.get(column) if isinstance(row, Mapping) else None
        texts = _texts_of(value)
        if texts is None:
            raise BuildError(
                f"reference {config.name}: {where} has no text in column {column!r}: "
                "name its column in the recipe (decontaminate.reference.text), or mend the row"
            )
        for i, text in enumerate(texts, start=1):
            yield ReferenceText(config.name, where if len(texts) == 1 else f"{where}#{i}", text)


def _text_column(config: ReferenceConfig, where: str, row: Any) -> str:
    columns = list(row) if isinstance(row, Mapping) else []
    for column in TEXT_COLUMNS:
        if column in columns:
            return column
    raise BuildError(
        f"reference {config.name}: {where} has none of the columns {', '.join(TEXT_COLUMNS)}, only "
        f"{', '.join(map(str, columns)) or 'none'}: name the one of the text in the recipe"
    )


def _texts_of(value: Any) -> list[str] | None:
    """Return the texts of a cell: itself, the strings of a list, the user messages of a chat; None if it has none."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return None
    texts = []
    for turn in value:
        if isinstance(turn, str):
            texts.append(turn)
        elif isinstance(turn, Mapping) and turn.get("role", turn.get("from")) in _USER_ROLES:
            content = turn.get("content", turn.get("value"))
            texts += [content] if isinstance(content, str) else _parts(content)
        elif not isinstance(turn, Mapping):
            return None
    return texts


def _parts(content: Any) -> list[str]:
    """Return the text parts of a message that also holds images or files."""
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]


def _rows(config: ReferenceConfig, name: str, file: IO[bytes]) -> Iterator[tuple[int, Any]]:
    if name.endswith(".parquet"):
        yield from _parquet_rows(config, name, file)
    elif name.endswith((".jsonl", ".ndjson")):
        for line, raw in enumerate(file, start=1):
            text = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
            if text.strip():
                yield line, _parsed(config, f"{name}:{line}", text)
    elif name.endswith(".json"):
        rows = _parsed(config, name, file.read().removeprefix(b"\xef\xbb\xbf"))
        if not isinstance(rows, list):
            raise BuildError(f"reference {config.name}: {name} is not an array of rows: give a JSONL or parquet file")
        yield from enumerate(rows, start=1)
    else:
        raise BuildError(f"reference {config.name}: {name} is no parquet, JSONL or JSON file: narrow the path")


def _parquet_rows(config: ReferenceConfig, name: str, file: IO[bytes]) -> Iterator[tuple[int, Any]]:
    try:
        parquet = pq.ParquetFile(file)
        columns = parquet.schema_arrow.names
        wanted = [c for c in ((config.text,) if config.text else TEXT_COLUMNS) if c in columns][:1]
        line = 0
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=wanted or None):
            for row in batch.to_pylist():
                line += 1
                yield line, row
    except (OSError, ValueError) as error:
        raise BuildError(f"reference {config.name}: {name} is no parquet file that can be read: {error}") from None


def _first_line(error: OSError) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _parsed(config: ReferenceConfig, where: str, text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BuildError(f"reference {config.name}: {where} is not JSON: {error}") from None
