"""`--semantic`: texts that an embedder finds alike, as candidates for a person to judge; never a verdict."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from curation.audit.errors import AuditError
from curation.audit.index import BenchmarkIndex
from curation.audit.plan import Plan, make_plan
from curation.audit.reading import read_documents
from curation.audit.row_counts import RowCounts
from curation.audit.run import UNIT_SCHEMA, hits_path, marker_path, snippet_of
from curation.kernels.audit_index import OK, OverlapIndex
from curation.kernels.audit_tokens import join_texts, tokenize_prepared
from curation.kernels.audit_windows import QUANTILE, WINDOW_CHARACTERS, clean_thresholds, windows
from curation.store import write_json, write_table

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]

SEMANTIC_SCHEMA = pa.schema([pa.field("file", pa.string()), *UNIT_SCHEMA])
SHORT_CHARACTERS = 2_000
"""Documents up to this length are embedded whole; of longer chats every user turn is."""

SAMPLE_SHARE = 0.01
"""Of the other documents, the share that is embedded, chosen by a hash of path and row."""

UNCALIBRATED_COSINE = 0.9
"""Threshold where no clean text was given: a number without a meaning, so its results say so."""

MIN_CLEAN_WINDOWS = 200
_BLOCK = 2_048
_SHARE_OF_PROMPT = 0.5


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was embedded, and by which thresholds it was judged."""

    embedder: str
    calibrated: bool
    clean_windows: int
    quantile: float
    prompts: int
    windows: int
    short_documents: int
    near_misses: int
    sampled_documents: int
    sample_share: float
    user_turns: int
    chats_by_turns_alone: int
    other_documents: int


@dataclass(frozen=True, slots=True)
class _Prompts:
    """Windows of all auditable prompts: the prompt of each, its vector and threshold; windows of each prompt."""

    owner: NDArray[np.int64]
    vectors: Vectors
    threshold: NDArray[np.float64]
    count: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Window:
    file: int
    row: int
    document_id: str
    begin: int
    text: str
    snippet: tuple[str, int, int]
    end: int


def run_semantic(
    plan: Plan, index: BenchmarkIndex, out: Path, clean_text: str | None, embed: Embed, embedder: str
) -> Coverage:
    """Look for texts alike to the prompts; write `semantic.parquet` and `semantic.json`.

    Parameters
    ----------
    plan, index, out
        Of a run whose units are all done.
    clean_text
        Text known to hold no prompt, for the thresholds; None for one fixed cosine.
    embed, embedder
        Unit vectors of texts, and the embedder's id.
    """
    clean = _clean_vectors(clean_text, embed) if clean_text else np.zeros((0, 0), np.float32)
    prompts = _embed_prompts(index.overlap, clean, embed)
    tally = {"windows": 0, "short": 0, "near": 0, "sampled": 0, "turns": 0, "chats": 0, "other": 0}
    known = _known_pairs(plan, out)
    rows: dict[tuple[str, int, int], dict[str, Any]] = {}
    for block in _blocks(_windows(plan, out, tally)):
        tally["windows"] += len(block)
        for row in _search(block, embed([w.text for w in block]), prompts, plan):
            key = (row["file"], row["row"], row["prompt"])
            if key not in known and row["coverage"] > rows.get(key, {"coverage": -2.0})["coverage"]:
                rows[key] = row
    ordered = [rows[key] for key in sorted(rows)]
    write_table(out / "semantic.parquet", pa.Table.from_pylist(ordered, schema=SEMANTIC_SCHEMA))
    coverage = Coverage(
        embedder=embedder,
        calibrated=clean_text is not None,
        clean_windows=len(clean),
        quantile=QUANTILE,
        prompts=int((prompts.count > 0).sum()),
        windows=tally["windows"],
        short_documents=tally["short"],
        near_misses=tally["near"],
        sampled_documents=tally["sampled"],
        sample_share=SAMPLE_SHARE,
        user_turns=tally["turns"],
        chats_by_turns_alone=tally["chats"],
        other_documents=tally["other"],
    )
    write_json(out / "semantic.json", asdict(coverage))
    return coverage


def _clean_vectors(corpus: str, embed: Embed) -> Vectors:
    plan = make_plan([corpus], {})
    texts = [
        text[a:b]
        for unit in plan.units
        for documents in read_documents(plan.files[unit.file], unit, [], RowCounts())
        for text in documents.texts.to_pylist()
        for a, b in windows(text, WINDOW_CHARACTERS[0])
    ]
    if len(texts) < MIN_CLEAN_WINDOWS:
        raise AuditError(
            f"--clean-text {corpus}: holds {len(texts)} windows of text; {MIN_CLEAN_WINDOWS} are the least from which "
            "a threshold can be taken"
        )
    vectors = embed(texts)
    return vectors[np.isfinite(vectors).all(axis=1)]


def _embed_prompts(index: OverlapIndex, clean: Vectors, embed: Embed) -> _Prompts:
    owner, texts = [], []
    for prompt in np.flatnonzero(index.status == OK).tolist():
        text = _without_template(index, prompt)
        for a, b in windows(text, WINDOW_CHARACTERS[1]):
            owner.append(prompt)
            texts.append(text[a:b])
    vectors = embed(texts)
    good = np.isfinite(vectors).all(axis=1)
    owners, vectors = np.array(owner, np.int64)[good], np.ascontiguousarray(vectors[good])
    threshold = clean_thresholds(vectors, clean) if len(clean) else np.full(len(vectors), UNCALIBRATED_COSINE)
    return _Prompts(owners, vectors, threshold, np.bincount(owners, minlength=len(index.status)))


def _without_template(index: OverlapIndex, prompt: int) -> str:
    """Return a prompt from its first to its last token that carries weight: a shared instruction is no likeness."""
    text = index.texts[prompt]
    weighted = np.flatnonzero(index.weights(prompt))
    batch = tokenize_prepared(*join_texts([text]))
    begin, end = batch.character_span(0, int(weighted[0]), int(weighted[-1]) + 1)
    return text[begin:end]


def _known_pairs(plan: Plan, out: Path) -> set[tuple[str, int, int]]:
    known = set()
    for path, row in _unit_hits(plan, out):
        if row["kind"] != "near_miss":
            known.add((path, row["row"], row["prompt"]))
    return known


def _unit_hits(plan: Plan, out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    before = _rows_before(plan, out)
    for unit in plan.units:
        for row in pq.read_table(hits_path(out, unit.number)).to_pylist():
            yield plan.files[unit.file].path, {**row, "row": row["row"] + before[unit.number]}


def _rows_before(plan: Plan, out: Path) -> dict[int, int]:
    import json

    before, rows, file = {}, 0, -1
    for unit in plan.units:
        rows = rows if unit.file == file else 0
        file = unit.file
        before[unit.number] = rows
        rows += json.loads(marker_path(out, unit.number).read_text("utf-8"))["rows"]
    return before


def _windows(plan: Plan, out: Path, tally: dict[str, int]) -> Iterator[_Window]:
    """Yield windows of short documents, near misses and a sample of the rest, in the order of the plan."""
    near: dict[tuple[str, int], tuple[int, int]] = {}
    for path, hit in _unit_hits(plan, out):
        if hit["kind"] == "near_miss":
            near.setdefault((path, hit["row"]), (hit["begin"], hit["end"]))
    before = _rows_before(plan, out)
    for unit in plan.units:
        file = plan.files[unit.file]
        for documents in read_documents(file, unit, plan.settings["text"], RowCounts()):
            for i, number in enumerate(documents.rows.tolist()):
                row = number + before[unit.number]
                text = documents.texts[i].as_py()
                for begin, end in _spans(
                    file.path, row, text, near.get((file.path, row)), documents.turns.get(i, ()), tally
                ):
                    snippet = snippet_of(text, begin, end)
                    yield _Window(unit.file, row, documents.id_of(i), begin, text[begin:end], snippet, end)


def _spans(
    path: str,
    row: int,
    text: str,
    near: tuple[int, int] | None,
    turns: Sequence[tuple[int, int]],
    tally: dict[str, int],
) -> list[tuple[int, int]]:
    """Return the windows of a document that are embedded."""
    if len(text) <= SHORT_CHARACTERS:
        tally["short"] += 1
        return _windows_of(text, [(0, len(text))])
    ranges = list(turns)
    tally["turns"] += len(turns)
    if near is not None:
        tally["near"] += 1
        ranges.append((max(0, near[0] - WINDOW_CHARACTERS[0]), near[1] + WINDOW_CHARACTERS[0]))
    elif _sampled(path, row):
        tally["sampled"] += 1
        ranges.append((0, len(text)))
    elif turns:
        tally["chats"] += 1
    else:
        tally["other"] += 1
    return _windows_of(text, ranges)


def _windows_of(text: str, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(
        {(a + low, b + low) for low, high in ranges for n in WINDOW_CHARACTERS for a, b in windows(text[low:high], n)}
    )


def _sampled(path: str, row: int) -> bool:
    digest = hashlib.sha256(f"semantic sample\x1f{path}\x1f{row}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < SAMPLE_SHARE * 2**64


def _blocks(found: Iterator[_Window]) -> Iterator[list[_Window]]:
    block: list[_Window] = []
    for window in found:
        block.append(window)
        if len(block) == _BLOCK:
            yield block
            block = []
    if block:
        yield block


def _search(block: Sequence[_Window], vectors: Vectors, prompts: _Prompts, plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield a row for each window and prompt of which enough windows are alike."""
    import faiss

    good = np.flatnonzero(np.isfinite(vectors).all(axis=1))
    if not len(good) or not len(prompts.vectors):
        return
    index = faiss.IndexFlatIP(prompts.vectors.shape[1])
    index.add(prompts.vectors)
    # faiss keeps similarities above its radius; per-prompt thresholds are applied to what it returns.
    limits, scores, at = index.range_search(np.ascontiguousarray(vectors[good]), float(prompts.threshold.min()) - 1e-6)
    for k, i in enumerate(good.tolist()):
        part = slice(int(limits[k]), int(limits[k + 1]))
        kept = scores[part] > prompts.threshold[at[part]]
        owners, near = prompts.owner[at[part]][kept], scores[part][kept]
        for prompt in np.unique(owners).tolist():
            same = near[owners == prompt]
            if len(same) >= _SHARE_OF_PROMPT * prompts.count[prompt]:
                yield _row(block[i], prompt, float(same.max()), plan)


def _row(window: _Window, prompt: int, score: float, plan: Plan) -> dict[str, Any]:
    snippet, begin, end = window.snippet
    return {
        "file": plan.files[window.file].path,
        "row": window.row,
        "document_id": window.document_id,
        "prompt": prompt,
        "kind": "semantic",
        "coverage": round(score, 4),
        "run": 0,
        "begin": window.begin,
        "end": window.end,
        "snippet": snippet,
        "snippet_begin": begin,
        "snippet_end": end,
    }
