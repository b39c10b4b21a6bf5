"""The corpus without the documents that hold a prompt: same relative paths, same formats, and a ledger of removals."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.audit.errors import AuditError
from curation.audit.json_rows import json_rows, lines_of, open_stream, starts_array
from curation.audit.plan import CorpusFile, Plan, Unit, open_binary
from curation.audit.results import Results
from curation.audit.row_counts import RowCounts
from curation.kernels.audit_rules import COMMON_DOCUMENTS
from curation.store import write_table

_WHOLE = Unit(0, 0, 0, -1)


def write_clean(folder: Path, out: Path, results: Results, classes: Sequence[str]) -> pa.Table:
    """Write the cleaned corpus, whole or not at all, and `removed.parquet` beside the results.

    Parameters
    ----------
    folder
        Where the corpus goes; must not exist, or be empty.
    out
        Folder of the results: the ledger is no part of the corpus.
    results
        Of the audit.
    classes
        A document with a pair of one of these is removed.

    Returns
    -------
    pyarrow.Table
        The ledger: one row a pair that removed a document.

    Raises
    ------
    AuditError
        If the folder is in use, or two files have the same path under their roots.
    """
    _refuse(folder, results.plan)
    ledger = removals(results.hits, classes)
    gone = _rows_by_file(ledger)
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        scratch.mkdir(parents=True)
        for file in results.plan.files:
            _write_file(file, scratch / file.relative, gone.get(file.path, frozenset()))
        if folder.is_dir():
            folder.rmdir()
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    write_table(out / "removed.parquet", ledger)
    return ledger


def removals(hits: pa.Table, classes: Sequence[str]) -> pa.Table:
    """Return the pairs whose documents must go, so that an audit of what is left finds none of the classes.

    A prompt counts as common text while many documents hold it. Where others go for other reasons and few are left,
    these would be found by a second audit: they go, too.
    """
    columns = ("file", "row", "document_id", "config", "question_id", "turn", "class", "coverage")
    chosen = pc.is_in(hits.column("class"), pa.array(list(classes), pa.string()))
    while True:
        keys = _keys(hits)
        gone = set(keys[np.array(chosen.to_pylist(), np.bool_)].tolist())
        left = pc.and_(pc.equal(hits.column("class"), "common_text"), pa.array([k not in gone for k in keys.tolist()]))
        more = pc.and_(left, _too_few(hits, left, classes))
        if not pc.any(more).as_py():
            return hits.filter(chosen).select(list(columns))
        chosen = pc.or_(chosen, more)


def _keys(hits: pa.Table) -> np.ndarray[Any, Any]:
    joined = pc.binary_join_element_wise(hits.column("file"), hits.column("row").cast(pa.string()), "\x1f")
    keys: np.ndarray[Any, Any] = np.asarray(joined.to_pylist(), dtype=object)
    return keys


def _too_few(hits: pa.Table, left: pa.ChunkedArray, classes: Sequence[str]) -> pa.Array:
    """Tell which pairs are of a prompt that few enough documents would still hold, by the class of the pair alone."""
    part = hits.filter(left)
    names = ["config", "question_id", "turn"]
    counts: dict[tuple[Any, ...], int] = {}
    for row in part.group_by([*names, "file", "row"]).aggregate([]).select(names).to_pylist():
        key = tuple(row.values())
        counts[key] = counts.get(key, 0) + 1
    rows = hits.select([*names, "class_alone"]).to_pylist()
    few = [
        0 < counts.get((r["config"], r["question_id"], r["turn"]), 0) <= COMMON_DOCUMENTS
        and r["class_alone"] in classes
        for r in rows
    ]
    return pa.array(few, pa.bool_())


def _rows_by_file(ledger: pa.Table) -> Mapping[str, frozenset[int]]:
    rows: dict[str, set[int]] = {}
    for file, row in zip(ledger.column("file").to_pylist(), ledger.column("row").to_pylist(), strict=True):
        rows.setdefault(file, set()).add(row)
    return {file: frozenset(found) for file, found in rows.items()}


def _refuse(folder: Path, plan: Plan) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AuditError(f"{folder}: is in use; name a new folder for --clean")
    seen: dict[str, str] = {}
    for file in plan.files:
        other = seen.setdefault(file.relative, file.path)
        if other != file.path:
            raise AuditError(
                f"{file.path}: would be written over {other} ({file.relative}); audit the folder that holds both"
            )


def _write_file(file: CorpusFile, target: Path, gone: frozenset[int]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not gone:
        with open_binary(file.path) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    elif file.format == "parquet":
        _write_parquet(file.path, target, gone)
    elif file.format != "text":  # a text file is one document: it goes whole
        _write_json(file, target, gone)


def _write_json(file: CorpusFile, target: Path, gone: frozenset[int]) -> None:
    with _compressed(target, file.compression) as write:
        if starts_array(file):
            kept = (value for number, value in json_rows(file, _WHOLE, RowCounts()) if number not in gone)
            write(b"[")
            for i, value in enumerate(kept):
                write((",\n" if i else "\n").encode() + json.dumps(value, ensure_ascii=False).encode())
            write(b"\n]\n")
            return
        with open_stream(file) as source:
            for number, line in enumerate(lines_of(source), 1):
                if number not in gone:
                    write(line)


@contextmanager
def _compressed(target: Path, compression: str) -> Iterator[Callable[[bytes], Any]]:
    with target.open("wb") as sink:
        if compression == "gzip":
            # No name and no time in the header: the same rows give the same bytes.
            with gzip.GzipFile("", "wb", fileobj=sink, mtime=0) as packed:
                yield packed.write
        elif compression:
            with pa.CompressedOutputStream(pa.PythonFile(sink, "w"), compression) as stream:
                yield stream.write
        else:
            yield sink.write


def _write_parquet(path: str, target: Path, gone: frozenset[int]) -> None:
    with open_binary(path) as stream:
        file = pq.ParquetFile(stream)
        codec = file.metadata.row_group(0).column(0).compression.lower()
        with pq.ParquetWriter(
            target, file.schema_arrow, compression="none" if codec == "uncompressed" else codec
        ) as out:
            first = 1
            for group in range(file.metadata.num_row_groups):
                first += _write_group(file, group, first, gone, out)


def _write_group(file: pq.ParquetFile, group: int, first: int, gone: frozenset[int], out: pq.ParquetWriter) -> int:
    rows = 0
    for batch in file.iter_batches(row_groups=[group], batch_size=1024):
        begin = first + rows
        keep = pa.array([n not in gone for n in range(begin, begin + len(batch))], pa.bool_())
        out.write_batch(batch.filter(keep))
        rows += len(batch)
    return rows
