"""The types that an adapter asks of its columns, checked value by value and, for parquet, column by column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_INT64 = range(-(2**63), 2**63)


class ColumnError(ValueError):
    """A row lacks a column, or holds another type in it; the text is the reason of its rejection."""


def conform(row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the asked columns of a row, in the order of `columns`; all others are ignored.

    Raises
    ------
    ColumnError
        `missing column x`, or `column x: expected string, found int`.
    """
    values: dict[str, Any] = {}
    for name, kind in columns.items():
        if name in row:
            values[name] = _checked(name, row[name], kind)
        elif kind.endswith("?"):
            values[name] = None
        else:
            raise ColumnError(f"missing column {name}")
    return values


def missing(row: Mapping[str, Any], columns: Mapping[str, str]) -> frozenset[str]:
    """Return the needed columns that a row lacks."""
    return frozenset(name for name, kind in columns.items() if name not in row and not kind.endswith("?"))


def _checked(name: str, value: Any, kind: str) -> Any:
    wanted = kind.removesuffix("?")
    if value is None and (kind.endswith("?") or wanted == "any"):
        return None
    if wanted.startswith("list<"):
        return _checked_list(name, value, wanted)
    if not _is(value, wanted):
        raise ColumnError(f"column {name}: expected {wanted}, found {type_name(value)}")
    return float(value) if wanted == "float64" else value


def _checked_list(name: str, value: Any, wanted: str) -> Any:
    if not isinstance(value, list):
        raise ColumnError(f"column {name}: expected {wanted}, found {type_name(value)}")
    element = wanted[len("list<") : -1]
    for position, item in enumerate(value):
        if not _is(item, element):
            raise ColumnError(f"column {name}: expected {wanted}, found {type_name(item)} at position {position}")
    return value


def _is(value: Any, kind: str) -> bool:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case "any":
            return True
        case "string":
            return isinstance(value, str)
        case "int64":
            return is_int and value in _INT64
        case "float64":
            return (is_int and value in _INT64) or (isinstance(value, float) and math.isfinite(value))
        case "bool":
            return isinstance(value, bool)
        case "struct":
            return isinstance(value, dict)
    raise ValueError(f"no such column type: {kind!r}")


def type_name(value: Any) -> str:
    """Return what a reason calls the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT64:
        return "an integer beyond 64 bits"
    return {"str": "string", "dict": "struct"}.get(type(value).__name__, type(value).__name__)


def arrow_fits(found: pa.DataType, kind: str) -> bool:
    """Tell whether the values of a parquet column can be of the asked type.

    Encodings do not matter: dictionaries, large and view types, every width of integer and float. A column of Arrow
    type null fits any type: its rows are all null.
    """
    import pyarrow.types as t

    if t.is_dictionary(found):
        found = found.value_type
    wanted = kind.removesuffix("?")
    if wanted == "any" or t.is_null(found):
        return True
    if wanted.startswith("list<"):
        return _is_list(found) and arrow_fits(found.value_type, wanted[len("list<") : -1])
    match wanted:
        case "string":
            return bool(t.is_string(found) or t.is_large_string(found) or t.is_string_view(found))
        case "int64":
            return bool(t.is_integer(found))
        case "float64":
            return bool(t.is_floating(found) or t.is_integer(found))
        case "bool":
            return bool(t.is_boolean(found))
        case "struct":
            return bool(t.is_struct(found))
    raise ValueError(f"no such column type: {kind!r}")


def _is_list(found: pa.DataType) -> bool:
    import pyarrow.types as t

    kinds = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    return any(is_kind(found) for is_kind in kinds)
