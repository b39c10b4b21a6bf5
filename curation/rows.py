"""Pool rows turned into published rows, and published rows into placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from curation.ids import question_id, turns_sha256
from curation.schema import SENTINEL, SPLIT_SCHEMA
from sources.base import SourceSpec


class CountsTokens(Protocol):
    """The part of a tokenizer that a row needs."""

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of a text in which nothing is a control token."""
        ...


def split_rows(
    pool: pa.Table,
    config: str,
    specs: Mapping[str, SourceSpec],
    revisions: Mapping[str, str],
    tokenizer: CountsTokens,
) -> pa.Table:
    """Return pool rows as the rows of a config, text in place, ordered by (category, question_id).

    Parameters
    ----------
    pool
        Rows of `POOL_SCHEMA`.
    config
        Name of the config; part of every question_id.
    specs, revisions
        By name of the source.
    tokenizer
        The recipe's; `num_tokens` is the sum of its counts over the turns.
    """
    rows = [
        _split_row(row, config, specs[row["source"]], revisions[row["source"]], tokenizer) for row in pool.to_pylist()
    ]
    rows.sort(key=lambda row: (row["category"], row["question_id"]))
    return pa.Table.from_pylist(rows, schema=SPLIT_SCHEMA)


def _split_row(
    row: Mapping[str, Any], config: str, spec: SourceSpec, revision: str, tokenizer: CountsTokens
) -> dict[str, Any]:
    turns = row["turns"]
    return {
        "question_id": question_id(config, spec.source, row["src_id"]),
        "category": row["category"],
        "sub_category": row["sub_category"],
        "turns": turns,
        "source": spec.source,
        "src_id": row["src_id"],
        "difficulty": row["difficulty"],
        "multiturn": len(turns) > 1,
        "text_status": "full",
        "source_revision": revision,
        "license": spec.license.id,
        "template_id": row["template_id"],
        "record_ids": row["record_ids"],
        "num_tokens": sum(len(tokenizer.encode_ordinary(turn)) for turn in turns),
        "pad_tokens": 0,
        "turns_sha256": turns_sha256(turns),
    }


def source_names(record_ids: list[str]) -> list[str]:
    """Return the names of the sources of a row's records."""
    return sorted({record_id.partition(":")[0] for record_id in record_ids})


def with_placeholders(rows: pa.Table, specs: Mapping[str, SourceSpec]) -> pa.Table:
    """Return published rows in which every turn of a row is the sentinel if any of its sources may not be published."""
    turns: list[list[str]] = []
    status: list[str] = []
    for record_ids, text in zip(rows.column("record_ids").to_pylist(), rows.column("turns").to_pylist(), strict=True):
        published = all(specs[name].may_publish for name in source_names(record_ids))
        turns.append(text if published else [SENTINEL] * len(text))
        status.append("full" if published else "placeholder")
    for name, values in (("turns", turns), ("text_status", status)):
        field = SPLIT_SCHEMA.field(name)
        rows = rows.set_column(SPLIT_SCHEMA.get_field_index(name), field, pa.array(values, field.type))
    return rows
