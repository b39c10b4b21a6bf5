"""Files read into rows: JSON, JSONL, XML, parquet and text, by the columns that an adapter asked for.

A row that cannot be read is rejected with its file, line and reason, and the rest goes on. A file that cannot be read
at all, has no good row, or lacks a needed column in every row, is one `SourceError`. Texts are handed on as they stand,
with NUL and lone surrogates: normalising them is curation's.
"""

from __future__ import annotations

import codecs
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sources.base import FileSpec, Rejected, Row
from sources.columns import ColumnError, arrow_fits, conform, missing, type_name
from sources.errors import SourceError
from sources.xml_rows import xml_elements

logger = logging.getLogger(__name__)

OnReject = Callable[[Rejected], None]

PARQUET_BATCH_ROWS = 64
"""Rows of a parquet file held at once: few, since one row of Long Code Arena is a whole repository."""

_Candidate = tuple[int, Mapping[str, Any] | None, str]
# line from 1, the row or None, and then why there is none


def read_rows(path: Path, spec: FileSpec, file: str, on_reject: OnReject) -> Iterator[Row]:
    """Yield the good rows of one file, in the order of the file.

    Parameters
    ----------
    path
        Where the file lies.
    spec
        Its format and the columns that the adapter needs.
    file
        Its path in the repository: what rows and errors name.
    on_reject
        Called for each row that cannot be read or lacks a needed column, in the order of the file.

    Raises
    ------
    SourceError
        If the file cannot be opened or parsed, a needed column is missing in all of its rows, or none of them is good.
    """
    try:
        yield from _well_formed(_candidates(path, spec, file), spec, file, on_reject)
    except OSError as error:
        raise SourceError(f"{file}: cannot be read ({error.strerror or _first_line(error)}); fetch it again") from error


def _candidates(path: Path, spec: FileSpec, file: str) -> Iterator[_Candidate]:
    match spec.format:
        case "json":
            return _json(path, file)
        case "json_dict":
            return _json_dict(path, file)
        case "jsonl":
            return _jsonl(path, file)
        case "parquet":
            return _parquet(path, spec, file)
        case "text":
            return _text(path, file)
        case "xml":
            return _xml(path, spec, file)


def _well_formed(candidates: Iterator[_Candidate], spec: FileSpec, file: str, on_reject: OnReject) -> Iterator[Row]:
    # Until every needed column was seen once, rejections wait: a column that the whole file lacks is one error.
    unseen = frozenset(name for name, kind in spec.columns.items() if not kind.endswith("?"))
    waiting: list[Rejected] = []
    any_row, any_good, first_bad = False, False, ""
    for line, row, why in candidates:
        reason = why
        if row is not None:
            any_row = True
            unseen &= missing(row, spec.columns)
            try:
                good = Row(conform(row, spec.columns), file, line)
                any_good = True
                yield good
                continue
            except ColumnError as error:
                reason = str(error)
        waiting.append(Rejected(file, line, reason))
        first_bad = first_bad or f"{line}: {reason}"
        if not unseen:
            _hand_over(waiting, on_reject)
    if unseen and any_row:
        raise SourceError(f"{file}: no row has the column {', '.join(sorted(unseen))}; is this the pinned file?")
    if first_bad and not any_good:
        raise SourceError(f"{file}:{first_bad}; none of its rows can be read; is this the pinned file?")
    if not any_good:
        logger.warning("%s holds no rows", file)
    _hand_over(waiting, on_reject)


def _hand_over(waiting: list[Rejected], on_reject: OnReject) -> None:
    for rejected in waiting:
        on_reject(rejected)
    waiting.clear()


def _jsonl(path: Path, file: str) -> Iterator[_Candidate]:
    # Lines end at "\n" alone: U+2028 and its like may stand inside a JSON string.
    with path.open("rb") as lines:
        _refuse_utf16(lines.read(2), file)
        lines.seek(0)
        for line, raw in enumerate(lines, start=1):
            data = (raw.removeprefix(codecs.BOM_UTF8) if line == 1 else raw).strip()
            if not data:
                continue
            try:
                yield line, *_as_object(_parsed(data))
            except UnicodeDecodeError as error:
                yield line, None, f"not UTF-8 at byte {error.start} of the line"
            except json.JSONDecodeError as error:
                yield line, None, f"not JSON: {error.msg} at character {error.pos + 1}"
            except (ValueError, RecursionError) as error:
                yield line, None, f"not JSON that can be read: {error}"


def _json(path: Path, file: str) -> Iterator[_Candidate]:
    rows = _whole_json(path, file)
    if not isinstance(rows, list):
        raise SourceError(f"{file}: expected a JSON array of objects, found {type(rows).__name__}")
    for line, row in enumerate(rows, start=1):
        yield line, *_as_object(row)


def _json_dict(path: Path, file: str) -> Iterator[_Candidate]:
    outermost: list[tuple[str, Any]] = []

    def keep_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        outermost[:] = pairs  # the last call is for the outermost object; as pairs, a key that stands twice shows
        return dict(pairs)

    if not isinstance(_whole_json(path, file, keep_pairs), dict):
        raise SourceError(f"{file}: expected one JSON object")
    seen: set[str] = set()
    for line, (key, value) in enumerate(outermost, start=1):
        if key in seen:
            yield line, None, f"key {key!r} stands twice"
        else:
            seen.add(key)
            yield line, {"key": key, "value": value}, ""


def _whole_json(path: Path, file: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    data = path.read_bytes()
    _refuse_utf16(data, file)
    try:
        return _parsed(data.removeprefix(codecs.BOM_UTF8), hook)
    except UnicodeDecodeError as error:
        raise SourceError(f"{file}: not UTF-8 at byte {error.start}; fetch it again") from None
    except json.JSONDecodeError as error:
        raise SourceError(f"{file}:{error.lineno}: not JSON: {error.msg} in column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file}: not JSON that can be read: {error}") from None


def _parsed(data: bytes, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    # surrogatepass and strict=False: a lone surrogate or a raw control character is the text's, not the file's, fault.
    return json.loads(data.decode("utf-8", "surrogatepass"), strict=False, object_pairs_hook=hook)


def _as_object(value: Any) -> tuple[Mapping[str, Any] | None, str]:
    if isinstance(value, dict):
        return value, ""
    return None, f"expected an object, found {type_name(value)}"


def _refuse_utf16(data: bytes, file: str) -> None:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{file}: is UTF-16 where UTF-8 is expected; fetch it again or convert it")


def _text(path: Path, file: str) -> Iterator[_Candidate]:
    data = path.read_bytes()
    try:
        yield 1, {"text": data.decode("utf-8").removeprefix("\ufeff")}, ""
    except UnicodeDecodeError as error:
        raise SourceError(f"{file}: not UTF-8 at byte {error.start}; fetch it again or convert it") from None


def _xml(path: Path, spec: FileSpec, file: str) -> Iterator[_Candidate]:
    line = 0
    for line, element in enumerate(xml_elements(path, spec.row_tag, file), start=1):
        yield line, {"element": element}, ""
    if not line:
        raise SourceError(f"{file}: has no element <{spec.row_tag}>; is this the pinned file?")


def _parquet(path: Path, spec: FileSpec, file: str) -> Iterator[_Candidate]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as parquet:
            columns = _parquet_columns(parquet.schema_arrow, spec, file)
            line = 0
            for batch in parquet.iter_batches(PARQUET_BATCH_ROWS, columns=columns):
                yield from _batch_rows(batch, line + 1)
                line += batch.num_rows
    except pa.ArrowException as error:
        raise SourceError(f"{file}: not parquet that can be read ({_first_line(error)}); fetch it again") from error


def _parquet_columns(schema: Any, spec: FileSpec, file: str) -> list[str]:
    absent = [n for n, kind in spec.columns.items() if n not in schema.names and not kind.endswith("?")]
    if absent:
        raise SourceError(f"{file}: no row has the column {', '.join(sorted(absent))}; is this the pinned file?")
    present = [name for name in spec.columns if name in schema.names]
    for name in present:
        if schema.names.count(name) > 1:
            raise SourceError(f"{file}: column {name} stands twice; is this the pinned file?")
        found = schema.field(name).type
        if not arrow_fits(found, spec.columns[name]):
            raise SourceError(f"{file}: column {name}: expected {spec.columns[name]}, found {found}")
    return present


def _batch_rows(batch: Any, first_line: int) -> Iterator[_Candidate]:
    cells: dict[str, list[Any]] = {}
    broken: dict[int, str] = {}
    for name in batch.schema.names:
        cells[name] = _cells(batch.column(name), name, broken)
    for i in range(batch.num_rows):
        row = {name: column[i] for name, column in cells.items()}
        yield (first_line + i, None, broken[i]) if i in broken else (first_line + i, row, "")


def _cells(column: Any, name: str, broken: dict[int, str]) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
        return values
    except (ValueError, OverflowError):
        pass  # one cell of it is broken: find out which, so that the other rows live
    values = []
    for i, cell in enumerate(column):
        try:
            values.append(cell.as_py())
        except (ValueError, OverflowError) as error:
            values.append(None)
            broken.setdefault(i, f"column {name}: cannot be decoded ({_first_line(error)})")
    return values


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
