"""The columns of every table that leaves a stage, a run or the project. Imports nothing of ours."""

from __future__ import annotations

import pyarrow as pa

SENTINEL = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"
"""The text of each turn of a placeholder row, exactly; SPEED-Bench's own, so that its tools recognise it."""


def _fields(*pairs: tuple[str, pa.DataType]) -> pa.Schema:
    # Not nullable: a published column holds no null (interface), and a stage's table neither.
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in pairs])


_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))

POOL_SCHEMA = _fields(
    ("record_id", pa.string()),  # source:src_id
    ("source", pa.string()),  # name of the spec
    ("src_id", pa.string()),
    ("category", pa.string()),
    ("sub_category", pa.string()),
    ("turns", _STRINGS),
    ("text", pa.string()),  # own text, without our instruction
    ("language", pa.string()),  # declared, BCP 47; "" if none
    ("difficulty", pa.string()),
    ("template_id", pa.string()),
    ("record_ids", _STRINGS),
    ("is_code", pa.bool_()),
)
"""The candidates of the qualitative split, one row a record."""

SPLIT_SCHEMA = _fields(
    ("question_id", pa.string()),
    ("category", pa.string()),
    ("sub_category", pa.string()),
    ("turns", _STRINGS),
    ("source", pa.string()),
    ("src_id", pa.string()),
    ("difficulty", pa.string()),
    ("multiturn", pa.bool_()),
    ("text_status", pa.string()),
    ("source_revision", pa.string()),
    ("license", pa.string()),
    ("template_id", pa.string()),
    ("record_ids", _STRINGS),
    ("num_tokens", pa.int32()),
    ("pad_tokens", pa.int32()),
    ("turns_sha256", pa.string()),
)
"""A published config; the first eight columns are SPEED-Bench's."""

LEDGER_SCHEMA = pa.schema(
    [
        pa.field("record_id", pa.string(), nullable=False),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("against", pa.string(), nullable=False),  # the record, file or limit it lost to; "" if none
        pa.field("score", pa.float64(), nullable=True),  # null where the reason has no number
    ]
)
"""One row a dropped, shortened or rejected record."""
