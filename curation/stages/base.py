"""What every stage returns: the table that is left, and why the rest is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from curation.schema import LEDGER_SCHEMA


@dataclass(frozen=True, slots=True)
class Drop:
    """A record that a stage dropped or shortened, the reason, the record or limit it lost to, and the score."""

    record_id: str
    stage: str
    reason: str
    against: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class StageResult:
    """What is left, one `Drop` for each record that is not, and figures that JSON can hold."""

    table: pa.Table
    drops: tuple[Drop, ...] = ()
    facts: Mapping[str, Any] | None = None


def ledger_table(drops: Iterable[Drop]) -> pa.Table:
    """Return the drops as a table of `LEDGER_SCHEMA`, sorted by stage order of arrival."""
    rows = [
        {"record_id": d.record_id, "stage": d.stage, "reason": d.reason, "against": d.against, "score": d.score}
        for d in drops
    ]
    return pa.Table.from_pylist(rows, schema=LEDGER_SCHEMA)


def without(table: pa.Table, drops: Sequence[Drop]) -> pa.Table:
    """Return the table without the rows whose record_id is dropped, order kept."""
    gone = {d.record_id for d in drops}
    if not gone:
        return table
    mask = pa.array([record_id not in gone for record_id in table.column("record_id").to_pylist()], pa.bool_())
    return table.filter(mask)
