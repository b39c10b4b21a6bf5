"""Records and the pool table."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from curation.schema import POOL_SCHEMA
from curation.stages.base import Drop
from sources.base import Record


def pool_table(records: Iterable[Record]) -> tuple[pa.Table, tuple[Drop, ...]]:
    """Return the records as a table of `POOL_SCHEMA` in the order of their ids, and those whose id came twice.

    The order of the input does not matter: of two records with one id the one with the smaller text stays, whichever
    came first.
    """
    ordered = sorted(records, key=lambda r: (r.record_id, r.turns))
    columns: dict[str, list[object]] = {name: [] for name in POOL_SCHEMA.names}
    drops: list[Drop] = []
    last = ""
    for record in ordered:
        if record.record_id == last:
            drops.append(Drop(record.record_id, "pool", "same id as another record of its source", record.record_id))
            continue
        last = record.record_id
        for name, value in _row(record).items():
            columns[name].append(value)
    return pa.table(columns, schema=POOL_SCHEMA), tuple(drops)


def _row(record: Record) -> dict[str, object]:
    return {
        "record_id": record.record_id,
        "source": record.source,
        "src_id": record.native_id,
        "category": record.category,
        "sub_category": record.sub_category,
        "turns": list(record.turns),
        "text": record.text,
        "language": record.language,
        "difficulty": record.difficulty,
        "template_id": record.template_id,
        "record_ids": list(record.record_ids),
        "is_code": record.is_code,
    }
