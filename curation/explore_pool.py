"""What the pool beside a DIST tells of its rows: neighbours, languages, and where in its category each row lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cards.explore_page import Candidate, Neighbour, Picture, Point
from cards.page import visible
from curation.diversity_input import CONFIG, SPEC_BENCH, Pool, pool_record_ids, read_pool
from curation.kernels.projection import nearest_rows, principal_plane
from curation.load import config_files
from sources.registry import SOURCES

NUM_NEIGHBOURS = 6
EXCERPT_CHARS = 160

_ID_COLUMNS = ["question_id", "record_ids", "src_id"]

GRID = 1_000
"""Steps of a picture from edge to edge; coordinates are whole numbers."""


@dataclass(frozen=True, slots=True)
class SeenRow:
    """What the pool tells of one row."""

    neighbours: tuple[Neighbour, ...]
    point: Point | None


@dataclass(frozen=True, slots=True)
class PoolView:
    """What the pool tells of all rows, by (config, record id); `absent` says why it tells nothing."""

    rows: Mapping[tuple[str, str], SeenRow] = field(default_factory=dict)
    languages: Mapping[str, str] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()
    pictures: tuple[Picture, ...] = ()
    withheld: int = 0
    absent: str = ""


def pool_view(folder: Path) -> PoolView:
    """Return what the pool of the build that a DIST lies in tells of its rows."""
    pool = read_pool(folder)
    if pool is None:
        return PoolView(absent="there is no pool beside this folder (only a build has one)")
    by_config = _record_ids(folder)
    chosen = by_config.get(CONFIG, {})
    points, pictures = _pictures(pool, chosen)
    found = _neighbours(pool, by_config)
    wanted = sorted({place for places, _ in found.values() for place in places})
    candidates = _candidates(pool, wanted, chosen, show_all=folder.name == "full")
    number = {place: i for i, place in enumerate(wanted)}
    rows = {
        key: SeenRow(
            tuple(Neighbour(number[p], round(float(s), 3)) for p, s in zip(places, scores, strict=True)),
            points.get(key[1]) if key[0] != SPEC_BENCH else None,
        )
        for key, (places, scores) in found.items()
    }
    withheld = sum(candidate.excerpt is None for candidate in candidates)
    return PoolView(rows, _languages(pool), candidates, pictures, withheld)


def _record_ids(folder: Path) -> dict[str, dict[str, str]]:
    """Return the pool's record id -> question_id of the rows of each config that can have some."""
    ids = {}
    for config, paths in config_files(folder).items():
        if config in (SPEC_BENCH, CONFIG) or config.startswith(f"{CONFIG}_"):
            tables = [pq.read_table(path, columns=_ID_COLUMNS, partitioning=None) for path in paths]
            ids[config] = {i: q for t in tables for i, q in zip(pool_record_ids(t), _questions(t), strict=True)}
    return ids


def _questions(table: pa.Table) -> list[str]:
    questions: list[str] = table.column("question_id").to_pylist()
    return questions


def _neighbours(
    pool: Pool, by_config: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], tuple[list[int], list[float]]]:
    """Return places and cosines of the nearest candidates of each row, by (config, record id)."""
    own_places = pool.places()
    theirs = {record_id: i for i, record_id in enumerate(pool.spec_bench.column("record_id").to_pylist())}
    found = {}
    for config, record_ids in by_config.items():
        known, vectors = (theirs, pool.spec_bench_vectors) if config == SPEC_BENCH else (own_places, pool.vectors)
        present = [record_id for record_id in record_ids if record_id in known]
        places = np.array([known[record_id] for record_id in present], np.int64)
        if not len(places) or not len(pool.vectors):
            continue
        own = None if config == SPEC_BENCH else places
        near, scores = nearest_rows(np.asarray(vectors[places]), np.asarray(pool.vectors), NUM_NEIGHBOURS, own)
        for record_id, row, score in zip(present, near.tolist(), scores.tolist(), strict=True):
            usable = [(p, s) for p, s in zip(row, score, strict=True) if np.isfinite(s)]
            found[config, record_id] = ([p for p, _ in usable], [s for _, s in usable])
    return found


def _candidates(
    pool: Pool, places: Sequence[int], chosen: Mapping[str, str], *, show_all: bool
) -> tuple[Candidate, ...]:
    columns = ["record_id", "source", "category", "text"]
    rows = pool.candidates.select(columns).take(pa.array(places, pa.int64())).to_pylist()
    return tuple(
        Candidate(
            record_id=row["record_id"],
            category=row["category"],
            question_id=chosen.get(row["record_id"], ""),
            excerpt=_excerpt(row["text"]) if show_all or _may_publish(row["source"]) else None,
        )
        for row in rows
    )


def _may_publish(name: str) -> bool:
    return name in SOURCES and SOURCES[name].spec.may_publish


def _excerpt(text: str) -> str:
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= EXCERPT_CHARS else flat[:EXCERPT_CHARS] + "…"


def _languages(pool: Pool) -> dict[str, str]:
    tables = (pool.candidates, pool.spec_bench)
    columns = [(t.column("record_id").to_pylist(), t.column("language").to_pylist()) for t in tables]
    return {record_id: language for ids, given in columns for record_id, language in zip(ids, given, strict=True)}


def _pictures(pool: Pool, chosen: Mapping[str, str]) -> tuple[dict[str, Point], tuple[Picture, ...]]:
    """Return where each candidate lies in the picture of its category, and the pictures by category."""
    ids = pool.candidates.column("record_id").to_pylist()
    named = np.array(pool.candidates.column("category").to_pylist(), object)
    vectors = np.asarray(pool.vectors)
    usable = np.isfinite(vectors).all(axis=1)
    points: dict[str, Point] = {}
    pictures = []
    for category in sorted(set(named.tolist())):
        members = np.flatnonzero((named == category) & usable)
        if not len(members):
            continue
        plane, share = principal_plane(vectors[members])
        here = {ids[i]: Point(category, x, y) for i, (x, y) in zip(members, _on_grid(plane), strict=True)}
        points |= here
        inside = [record_id for record_id in here if record_id in chosen]
        outside = [record_id for record_id in here if record_id not in chosen]
        pictures.append(Picture(category, share, _places(here, outside), _places(here, inside)))
    return points, tuple(pictures)


def _places(points: Mapping[str, Point], record_ids: Sequence[str]) -> tuple[tuple[int, int], ...]:
    return tuple((points[i].x, points[i].y) for i in sorted(record_ids))


def _on_grid(plane: NDArray[Any]) -> list[list[int]]:
    """Return coordinates as whole numbers, both axes at one scale, the picture in the middle."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    scale = GRID / max(float((high - low).max()), 1e-12)
    middle = (low + high) / 2
    placed: list[list[int]] = np.rint((plane - middle) * scale + GRID / 2).astype(np.int64).tolist()
    return placed
