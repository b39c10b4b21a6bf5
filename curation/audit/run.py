"""Run the units of a plan: each leaves its hits and, last, a marker; what has a marker is not run again."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.audit.arrow import arrow_table, text_bytes, text_offsets
from curation.audit.errors import AuditError
from curation.audit.index import open_index
from curation.audit.long_rows import LongText
from curation.audit.plan import CorpusFile, Plan, Unit
from curation.audit.reading import Documents, read_documents
from curation.audit.row_counts import RowCounts
from curation.audit.scanning import Scanner, make_scanner
from curation.kernels.audit_classify import Hit
from curation.kernels.audit_index import OverlapIndex
from curation.kernels.audit_rules import RULES
from curation.store import write_json
from sources.disk import atomic

logger = logging.getLogger(__name__)

UNIT_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("document_id", pa.string()),
        ("prompt", pa.int32()),
        ("kind", pa.string()),
        ("coverage", pa.float64()),
        ("run", pa.int32()),
        ("begin", pa.int64()),
        ("end", pa.int64()),
        ("snippet", pa.string()),
        ("snippet_begin", pa.int32()),
        ("snippet_end", pa.int32()),
    ]
)
"""The hits of one unit; `row` counts from 1 within it."""

_SHORT_TEXT = 1 << 20
_AROUND = 80
_MATCH = 320


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker needs to run any unit of a plan; small, since it travels to other processes."""

    plan: Plan
    index_folder: str
    out: str
    fast: bool


def pending_units(plan: Plan, out: Path, shard: tuple[int, int]) -> list[Unit]:
    """Return the units of a shard that have no marker yet."""
    i, n = shard
    return [unit for unit in plan.units if unit.number % n == i and not marker_path(out, unit.number).is_file()]


def marker_path(out: Path, number: int) -> Path:
    """Return where the marker of a unit is."""
    return out / "units" / f"{number:06d}.json"


def hits_path(out: Path, number: int) -> Path:
    """Return where the hits of a unit are."""
    return out / "units" / f"{number:06d}.parquet"


def start(plan: Plan, out: Path) -> None:
    """Make the folder of a run, or go on with one of the same plan."""
    path = out / "plan.json"
    if path.is_file():
        if read_plan(out).digest() != plan.digest():
            raise AuditError(f"{out}: holds a run over other files or settings; name another --out or remove it")
        return
    if out.is_dir() and any(out.iterdir()):
        raise AuditError(f"{out}: is not empty and holds no audit; name another --out")
    write_json(path, plan.as_json())


def read_plan(out: Path) -> Plan:
    """Return the plan of a run.

    Raises
    ------
    AuditError
        If the folder holds none.
    """
    try:
        return Plan.from_json(json.loads((out / "plan.json").read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        raise AuditError(f"{out}: holds no plan.json of an audit; name the --out of `speedbench audit run`") from None


def run_units(job: Job, units: Sequence[Unit], workers: int, index: OverlapIndex) -> None:
    """Run units in this process with an index that is open, or in several."""
    if workers <= 1 or len(units) <= 1:
        runner = UnitRunner(job, scanner_of(job, index))
        for unit in units:
            report(job.plan, unit, runner(unit))
        return
    from curation.audit.worker_pool import run_in_processes

    run_in_processes(job, units, workers)


def scanner_of(job: Job, index: OverlapIndex) -> Scanner:
    """Return what the units of a job are scanned with."""
    # The semantic stage looks at what the tokens almost found.
    near_misses = bool(job.plan.settings.get("semantic"))
    return make_scanner(index, RULES[job.plan.settings["rule"]], fast=job.fast, near_misses=near_misses)


def report(plan: Plan, unit: Unit, counts: RowCounts) -> None:
    """Say that a unit is done."""
    path = plan.files[unit.file].path
    logger.info("audit: unit %d of %d, %s: %d documents", unit.number + 1, len(plan.units), path, counts.documents)


class UnitRunner:
    """Runs units one after the other with one index and one scanner."""

    def __init__(self, job: Job, scanner: Scanner | None = None) -> None:
        pa.set_cpu_count(1)
        # Arrow's own pool gives a batch back to the system, and the next one's pages must be made anew.
        pa.set_memory_pool(pa.system_memory_pool())
        self._job = job
        if scanner is None:
            index, _ = open_index(Path(job.index_folder))
            scanner = scanner_of(job, index)
        self._scanner = scanner
        self._keeps_near_misses = scanner.near_misses

    def __call__(self, unit: Unit) -> RowCounts:
        """Run one unit, and write its hits and marker."""
        file = self._job.plan.files[unit.file]
        counts = RowCounts()
        rows = list(self._rows(file, unit, counts))
        out = Path(self._job.out)
        with atomic(hits_path(out, unit.number)) as scratch:
            pq.write_table(arrow_table(rows, UNIT_SCHEMA), scratch, compression="zstd")
        write_json(
            marker_path(out, unit.number),
            {
                "rows": counts.rows,
                "documents": counts.documents,
                "num_bytes": counts.num_bytes,
                "skipped": counts.skipped,
                "repaired": counts.repaired,
            },
        )
        return counts

    def _rows(self, file: CorpusFile, unit: Unit, counts: RowCounts) -> Iterator[dict[str, Any]]:
        for documents in read_documents(file, unit, self._job.plan.settings["text"], counts):
            hits, num_tokens = self._scanner.scan(documents)
            for i in (num_tokens == 0).nonzero()[0]:
                counts.skip("empty", int(documents.rows[i]))
            counts.documents += int((num_tokens > 0).sum())
            counts.num_bytes += _text_bytes(documents)
            kept = hits if self._keeps_near_misses else [hit for hit in hits if hit.kind != "near_miss"]
            yield from _hit_rows(documents, kept)


def _text_bytes(documents: Documents) -> int:
    offsets = text_offsets(documents.texts)
    return int(offsets[-1] - offsets[0])


def _hit_rows(documents: Documents, hits: Iterable[Hit]) -> Iterator[dict[str, Any]]:
    text: str | LongText = ""
    held = -1
    for hit in hits:
        if hit.document != held:
            text, held = _text_of(documents.texts, hit.document), hit.document
        snippet, begin, end = snippet_of(text, hit.begin, hit.end)
        yield {
            "row": int(documents.rows[hit.document]),
            "document_id": documents.id_of(hit.document),
            "prompt": hit.prompt,
            "kind": hit.kind,
            "coverage": round(hit.coverage, 6),
            "run": hit.run,
            "begin": hit.begin,
            "end": hit.end,
            "snippet": snippet,
            "snippet_begin": begin,
            "snippet_end": end,
        }


def _text_of(texts: pa.Array, i: int) -> str | LongText:
    raw = text_bytes(texts, i)
    return LongText(raw) if len(raw) > _SHORT_TEXT else str(raw, "utf-8")


def snippet_of(text: str | LongText, begin: int, end: int) -> tuple[str, int, int]:
    """Return a short stretch around a span, and where the span is in it; a long span is cut in its middle."""
    before, match, after = text[max(0, begin - _AROUND) : begin], text[begin:end], text[end : end + _AROUND]
    if len(match) > _MATCH:
        match = f"{match[: _MATCH // 2]} … {match[-_MATCH // 2 :]}"
    return before + match + after, len(before), len(before) + len(match)
