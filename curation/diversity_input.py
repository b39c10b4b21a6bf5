"""What a diversity report is measured on: the rows of a DIST, the pool beside it, and the vectors of both."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.composition import Composition, composition
from curation.diversity import CategoryDiversity, DiversityReport, Floats, measure_category, spec_bench_rows
from curation.load import config_files, placeholder_rows, read_config, read_manifest, resolve_dist
from curation.recipe import EmbedderConfig, load_recipe
from curation.tokenizer import load_tokenizer
from sources.base import CATEGORIES

logger = logging.getLogger(__name__)

CONFIG, SPEC_BENCH = "qualitative", "spec_bench"


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of a build and Spec-Bench's rows, with their vectors."""

    candidates: pa.Table
    vectors: Floats
    spec_bench: pa.Table
    spec_bench_vectors: Floats

    def places(self) -> dict[str, int]:
        """Return the place of each candidate by its record id."""
        return {record_id: i for i, record_id in enumerate(self.candidates.column("record_id").to_pylist())}


def measure_diversity(dist: str, *, allow_partial: bool = False) -> DiversityReport:
    """Return the diversity and composition of a DIST's qualitative split.

    The pool beside the DIST gives the vectors, random choice, greedy choice and the bound; without one the rows are
    embedded here, and what only a pool can tell is None, with the reason in `notes`.

    Raises
    ------
    DistError
        If rows are placeholders and `allow_partial` is false.
    """
    folder = resolve_dist(dist)
    table = read_config(folder, CONFIG, allow_placeholders=allow_partial)
    held = placeholder_rows(table)
    table = table.filter(_mask(len(table), held))
    manifest, pool, notes = read_manifest(folder), read_pool(folder), []
    if held:
        notes.append(f"{len(held)} placeholder rows are left out")
    if pool is None:
        notes.append(f"no pool beside {folder}: random, greedy, bound and gap cannot be measured")
    embedder = _embedder(manifest)
    own = _own_vectors(table, pool, embedder)
    theirs, their_vectors = _spec_bench(folder, pool, embedder, notes)
    return DiversityReport(
        dist=str(dist),
        embedder=embedder.model,
        categories=_categories(table, own, theirs, their_vectors, pool, manifest),
        composition=_composition(table, pool.candidates if pool else None),
        spec_bench=_composition(theirs, pool.spec_bench if pool else None) if theirs is not None else None,
        left_out_rows=len(held),
        notes=tuple(notes),
    )


def read_pool(folder: Path) -> Pool | None:
    """Return the pool of the build that a DIST folder lies in, its vectors mapped into memory; None without one."""
    pool = folder.parent / "pool"
    if folder.name not in ("dist", "full") or not (pool / "vectors.npy").is_file():
        return None
    return Pool(
        pq.read_table(pool / "candidates.parquet"),
        np.load(pool / "vectors.npy", mmap_mode="r"),
        pq.read_table(pool / "spec_bench.parquet"),
        np.load(pool / "spec_bench_vectors.npy", mmap_mode="r"),
    )


def pool_record_ids(table: pa.Table) -> list[str]:
    """Return the pool's record id of each published row: the name of its source, and its own id there."""
    names = (record_ids[0].partition(":")[0] for record_ids in table.column("record_ids").to_pylist())
    return [f"{name}:{src_id}" for name, src_id in zip(names, table.column("src_id").to_pylist(), strict=True)]


def _embedder(manifest: Mapping[str, Any] | None) -> EmbedderConfig:
    """Return the embedder of the build, or the offline one for a DIST that lies alone."""
    if manifest is None:
        return load_recipe("v1-offline").embedder
    return EmbedderConfig.model_validate(manifest["recipe"]["embedder"])


def _own_vectors(table: pa.Table, pool: Pool | None, embedder: EmbedderConfig) -> Floats:
    if pool is not None:
        place = pool.places()
        rows = [place.get(record_id) for record_id in pool_record_ids(table)]
        if None not in rows:
            return np.asarray(pool.vectors[np.array(rows, np.int64)])
    return _embedded(table, embedder)


def _embedded(table: pa.Table, embedder: EmbedderConfig) -> Floats:
    from curation.embedding import embed_texts, load_embedder
    from curation.qualitative import embedded_text

    texts = [embedded_text(turns) for turns in table.column("turns").to_pylist()]
    return embed_texts(texts, load_embedder(embedder))


def _spec_bench(
    folder: Path, pool: Pool | None, embedder: EmbedderConfig, notes: list[str]
) -> tuple[pa.Table | None, Floats | None]:
    """Return Spec-Bench's rows of a DIST that has them, and their vectors."""
    if SPEC_BENCH not in config_files(folder):
        notes.append(f"no config {SPEC_BENCH}: Spec-Bench cannot be measured")
        return None, None
    table = read_config(folder, SPEC_BENCH, allow_placeholders=True)
    held = placeholder_rows(table)
    if pool is not None:
        place = {record_id: i for i, record_id in enumerate(pool.spec_bench.column("record_id").to_pylist())}
        return table, np.asarray(pool.spec_bench_vectors[np.array([place[i] for i in pool_record_ids(table)])])
    if held:
        notes.append(f"{len(held)} of Spec-Bench's rows are placeholders: Spec-Bench cannot be measured")
        return None, None
    return table, _embedded(table, embedder)


def _categories(
    table: pa.Table,
    own: Floats,
    theirs: pa.Table | None,
    their_vectors: Floats | None,
    pool: Pool | None,
    manifest: Mapping[str, Any] | None,
) -> tuple[CategoryDiversity, ...]:
    names: list[str] = table.column("category").to_pylist()
    their_names: list[str] = theirs.column("category").to_pylist() if theirs is not None else []
    certificates = (manifest or {}).get("categories", {})
    measured = []
    for category in (c for c in CATEGORIES if c in set(names)):
        beside = spec_bench_rows(their_names, category)
        measured.append(
            measure_category(
                category,
                own[_places(names, category)],
                spec_bench=their_vectors[np.array(beside)] if their_vectors is not None and beside else None,
                pool=_pool_vectors(pool, category),
                certificate=certificates.get(category) if pool is not None else None,
            )
        )
    return tuple(measured)


def _pool_vectors(pool: Pool | None, category: str) -> Floats | None:
    if pool is None:
        return None
    mask = pc.equal(pool.candidates.column("category"), category).to_numpy(zero_copy_only=False)
    return np.asarray(pool.vectors[np.flatnonzero(mask)])


def _composition(table: pa.Table, records: pa.Table | None) -> Composition:
    """Return the composition of rows; NVIDIA's set states no lengths, so they are counted here."""
    languages: dict[str, str] = {}
    if records is not None:
        languages = dict(
            zip(records.column("record_id").to_pylist(), records.column("language").to_pylist(), strict=True)
        )
    rows = table.to_pylist()
    if "num_tokens" not in table.column_names:
        tokenizer = load_tokenizer(load_recipe("v1").tokenizer)
        for row in rows:
            row["num_tokens"] = sum(len(tokenizer.encode_ordinary(turn)) for turn in row["turns"])
    return composition(rows, [languages.get(i, "") for i in _ids(table)])


def _ids(table: pa.Table) -> Sequence[str]:
    return pool_record_ids(table) if "record_ids" in table.column_names else [""] * len(table)


def _places(names: Sequence[str], category: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([i for i, name in enumerate(names) if name == category], np.int64)


def _mask(length: int, without: Sequence[int]) -> pa.Array:
    keep = np.ones(length, bool)
    keep[np.array(without, np.int64)] = False
    return pa.array(keep)
