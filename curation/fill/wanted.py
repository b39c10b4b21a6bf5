"""The placeholder rows of a DIST, and what can go wrong with one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from curation.errors import DistError
from curation.load import config_files, is_placeholder, read_config
from sources.base import TIERS

Kind = Literal["missing", "changed", "unread", "unpinned", "unsupported"]
"""Why a row stays a placeholder.

missing: the source at that revision has no such record. changed: it has, with another text. unread: the source cannot
be read. unpinned: no revision of it is known, so nothing is asked of it. unsupported: this version does not know how
the row is made.
"""

_ROWS_PER_BATCH = 64


@dataclass(frozen=True, slots=True)
class Wanted:
    """A placeholder row: what it says of the text that is wanted.

    Attributes
    ----------
    config, question_id
        What names the row.
    category, source, src_id
        As published.
    turns
        As published: as many as the text has, each the sentinel; in NVIDIA's rows with a template behind it.
    revision
        Of the source; "" where the row names none.
    record_ids, template_id, num_tokens, turns_sha256
        As published; empty or 0 in NVIDIA's rows, which have no such columns.
    """

    config: str
    question_id: str
    category: str
    source: str
    src_id: str
    turns: tuple[str, ...]
    revision: str = ""
    record_ids: tuple[str, ...] = ()
    template_id: str = ""
    num_tokens: int = 0
    turns_sha256: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Config and question_id."""
        return self.config, self.question_id

    @property
    def is_throughput(self) -> bool:
        """True for a row that is fitted to a length."""
        return self.category in TIERS


@dataclass(frozen=True, slots=True)
class Filled:
    """The text of a row, checked against its digest if it has one."""

    row: Wanted
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a row stays a placeholder."""

    row: Wanted
    kind: Kind
    detail: str

    def as_row(self) -> dict[str, str]:
        """Return it as a row of a table: source, wanted revision and src_id among the rest."""
        return {
            "problem": self.kind,
            "source": self.row.source,
            "revision": self.row.revision or "none",
            "src_id": self.row.src_id,
            "config": self.row.config,
            "question_id": self.row.question_id,
            "detail": self.detail,
        }


Outcome = Filled | Problem


def wanted_rows(folder: Path) -> list[Wanted]:
    """Return the placeholder rows of every config of a DIST folder, in the order of configs and rows.

    Raises
    ------
    DistError
        If there is no file of a config, or one differs from the checksums or is no split.
    """
    configs = config_files(folder)
    if not configs:
        raise DistError(f"{folder}: no parquet file of a config below data/ or <config>/; name the folder of a DIST")
    return [
        row
        for config in sorted(configs)
        for row in _placeholders(config, read_config(folder, config, allow_placeholders=True))
    ]


def _placeholders(config: str, table: pa.Table) -> Iterator[Wanted]:
    for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH):
        for values in batch.to_pylist():
            if values.get("text_status") == "placeholder" or is_placeholder(values["turns"]):
                yield _wanted(config, values)


def _wanted(config: str, values: Mapping[str, Any]) -> Wanted:
    return Wanted(
        config=config,
        question_id=values["question_id"],
        category=values["category"],
        source=values["source"],
        src_id=values["src_id"],
        turns=tuple(values["turns"]),
        revision=values.get("source_revision", ""),
        record_ids=tuple(values.get("record_ids", ())),
        template_id=values.get("template_id", ""),
        num_tokens=values.get("num_tokens", 0),
        turns_sha256=values.get("turns_sha256", ""),
    )


def problems_of(rows: Iterable[Wanted], kind: Kind, detail: str) -> list[Problem]:
    """Return the same problem for each of some rows."""
    return [Problem(row, kind, detail) for row in rows]
