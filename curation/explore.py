"""`speedbench explore`: one page on which the rows of a DIST can be read and judged."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cards.explore_page import ExploreFacts, ExploreRow, render_explore
from curation.errors import DistError
from curation.explore_pool import PoolView, pool_view
from curation.load import config_files, is_placeholder, read_config, read_manifest, resolve_dist
from curation.store import write_text

logger = logging.getLogger(__name__)

HEAD_CHARS = 1_200
TAIL_CHARS = 300
"""Code points of a turn that the page holds from its begin and its end; what is between is left out, with its size."""

MAX_DROPS = 50
"""Dropped records that are listed for one row; of more the number is given."""

_ROWS_PER_BATCH = 64


@dataclass(frozen=True, slots=True)
class Explored:
    """What was written: rows, bytes, and what the page has not, with the reason."""

    num_rows: int
    num_bytes: int
    notes: tuple[str, ...]


def explore_dist(dist: str | Path, out: Path) -> Explored:
    """Write the page of a DIST to a file.

    Parameters
    ----------
    dist
        A folder, or ORG/NAME@REVISION; NVIDIA's set too. In the folder of a build the pool and the ledger are shown.
    out
        The page.

    Raises
    ------
    DistError
        If there is no such DIST, or a file of it differs from its checksum.
    """
    folder = resolve_dist(dist)
    files = config_files(folder)
    if not files:
        raise DistError(f"{dist}: no parquet file of a config below data/ or <config>/; name the folder of a DIST")
    for config in files:
        read_config(folder, config, allow_placeholders=True)  # refuses, by file and row, what is no split
    view = pool_view(folder)
    drops = ledger_by_evidence(folder)
    rows = [_explore_row(config, row, view, drops) for config, row in _rows(files, read_manifest(folder))]
    notes = _notes(folder, view)
    page = render_explore(ExploreFacts(_title(dist), tuple(rows), view.candidates, view.pictures, notes))
    write_text(out, page)
    return Explored(len(rows), out.stat().st_size, notes)


def _title(dist: str | Path) -> str:
    # A path of this machine is nothing that a page should carry on.
    folder = Path(dist)
    return f"{folder.resolve().parent.name}/{folder.resolve().name}" if folder.is_dir() else str(dist)


def _rows(
    files: Mapping[str, Sequence[Path]], manifest: Mapping[str, Any] | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield config and row, a few rows in memory at a time, configs in the order of the card."""
    order = {config: place for place, config in enumerate((manifest or {}).get("configs", []))}
    for config in sorted(files, key=lambda name: (order.get(name, len(order)), name)):
        for path in files[config]:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH):
                    yield from ((config, row) for row in batch.to_pylist())


def _explore_row(
    config: str, row: Mapping[str, Any], view: PoolView, drops: Mapping[str, Sequence[Mapping[str, Any]]]
) -> ExploreRow:
    record_ids = [str(record_id) for record_id in row.get("record_ids") or ()]
    evidence = [drop for key in (*record_ids, str(row["question_id"])) for drop in drops.get(key, ())]
    seen = view.rows.get((config, record_ids[0])) if record_ids else None
    return ExploreRow(
        config=config,
        question_id=str(row["question_id"]),
        category=row.get("category") or "",
        sub_category=row.get("sub_category") or "",
        source=row.get("source") or "",
        src_id=str(row.get("src_id") or ""),
        language=view.languages.get(record_ids[0], "") if record_ids else "",
        difficulty=row.get("difficulty") or "",
        status="placeholder" if is_placeholder(row["turns"]) else "full",
        license=row.get("license") or "",
        template_id=row.get("template_id") or "",
        num_tokens=row.get("num_tokens"),
        turns=tuple(shortened(turn) for turn in row["turns"]),
        neighbours=seen.neighbours if seen else (),
        point=seen.point if seen else None,
        drops=tuple((d["record_id"], d["stage"], d["reason"], d["score"]) for d in evidence[:MAX_DROPS]),
        num_drops=len(evidence),
    )


def shortened(text: str) -> tuple[str, int, str]:
    """Return begin, number of code points left out, and end of a text; a short one is all begin."""
    left_out = len(text) - HEAD_CHARS - TAIL_CHARS
    return (text, 0, "") if left_out <= 0 else (text[:HEAD_CHARS], left_out, text[-TAIL_CHARS:])


def ledger_by_evidence(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what the ledger of the build dropped, by the record or row that it was dropped for; empty without one."""
    path = folder.parent / "ledger.parquet"
    found: dict[str, list[dict[str, Any]]] = {}
    if folder.name in ("dist", "full") and path.is_file():
        for row in pq.read_table(path).to_pylist():
            if row["against"]:
                found.setdefault(row["against"], []).append(row)
    return found


def _notes(folder: Path, view: PoolView) -> tuple[str, ...]:
    cut = f"the first {HEAD_CHARS:,} and the last {TAIL_CHARS:,}"
    notes = [f"Of a turn longer than {HEAD_CHARS + TAIL_CHARS:,} code points the page holds {cut}; search sees these."]
    if view.absent:
        notes.append(f"No nearest neighbours, languages and pictures: {view.absent}.")
    if not (folder.name in ("dist", "full") and (folder.parent / "ledger.parquet").is_file()):
        notes.append(f"Nothing on dropped records: no ledger.parquet beside {folder.name}.")
    if folder.name == "full":
        notes.append("This page holds texts that their sources do not let be passed on: keep it to yourself.")
    elif view.withheld:
        notes.append(
            f"The text of {view.withheld:,} neighbours is not shown: their sources do not let it be passed on."
        )
    return tuple(notes)
