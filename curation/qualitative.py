"""The qualitative split: records, cleaned, embedded, chosen; with the pool that the choice was made from.

::

    records = read(sources)                     # IO: files -> records, every lost row with its reason
    clean   = decontaminate(cap(dedup(filter(normalise(records)))))
    vectors = embed(clean)                      # IO: cached by the text's digest
    unique  = dedup_semantic(clean, vectors)
    chosen  = select(unique, vectors)           # greedy, swaps, certificate
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from curation.embedders.base import Embedder
from curation.embedding import Estimate, embed, estimate, has_vectors, load_embedder
from curation.options import Book, Options
from curation.pool import pool_table
from curation.publish import write_config
from curation.reading import OpenSource, chosen_sources, file_digests, open_sources, read_records, revisions
from curation.recipe import Recipe, Section
from curation.reference import read_references
from curation.rows import split_rows
from curation.schema import POOL_SCHEMA
from curation.stages.base import Drop, StageResult
from curation.stages.clean import cap_candidates, filter_records, normalize_records
from curation.stages.decontaminate import decontaminate
from curation.stages.dedup import dedup_exact, dedup_near, dedup_semantic
from curation.stages.select import select_categories
from curation.store import BuildFolder, StepCache, array_digest, rows_digest, write_table, write_vectors
from curation.tokenizer import Tokenizer
from sources.base import Source
from sources.cache_root import cache_root
from sources.origins import MirrorOrigin
from sources.registry import QUALITATIVE, REFERENCE, SOURCES

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

CONFIG = "qualitative"
SPEC_BENCH_CONFIG = "spec_bench"


def build_qualitative(
    recipe: Recipe, folder: BuildFolder, options: Options, tokenizer: Tokenizer, book: Book
) -> tuple[OpenSource[Source], ...]:
    """Write the qualitative configs and the pool; return the sources that were read."""
    opened = open_sources(chosen_sources(recipe, QUALITATIVE), options.origin, allow_short=options.allow_short)
    reference = open_sources(REFERENCE, options.origin, allow_short=options.allow_short)
    steps = StepCache(cache_root() / "steps")
    embedder = load_embedder(recipe.embedder)
    if not has_vectors(embedder):
        embedder.check()  # a key that is missing is told before the work that would be for nothing
    clean = clean_candidates(recipe, opened, options, steps)
    vectors, shortened = embed_table(clean.table, embedder, options)
    unique = unique_candidates(recipe, clean.table, vectors, steps)
    vectors = vectors[rows_of(clean.table, unique.table)]
    chosen = choose_rows(recipe, unique.table, vectors, options, steps)

    book.drops += [*clean.drops, *shortened, *unique.drops, *chosen.drops]
    book.facts |= {"clean": clean.facts, "categories": (chosen.facts or {})["categories"], "embedder": embedder.id}
    book.languages.update(chosen.table.column("language").to_pylist())
    specs, pinned = {s.spec.name: s.spec for s in SOURCES.values()}, revisions([*opened, *reference])
    spec_bench = spec_bench_table(reference, book)
    for config, table in (*qualitative_tables(recipe, chosen.table), (SPEC_BENCH_CONFIG, spec_bench)):
        if table.num_rows:
            write_config(folder, config, split_rows(table, config, specs, pinned, tokenizer), specs)
            book.configs.append(config)
    write_pool(folder, unique.table, vectors, spec_bench, embed_table(spec_bench, embedder, options)[0])
    return (*opened, *reference)


def estimate_qualitative(recipe: Recipe, options: Options) -> Estimate:
    """Return how many candidates there are, and what embedding them would take; nothing is sent."""
    opened = open_sources(chosen_sources(recipe, QUALITATIVE), options.origin, allow_short=options.allow_short)
    clean = clean_candidates(recipe, opened, options, StepCache(cache_root() / "steps"))
    texts = [embedded_text(turns) for turns in clean.table.column("turns").to_pylist()]
    return estimate(texts, load_embedder(recipe.embedder))


def clean_candidates(
    recipe: Recipe, opened: Sequence[OpenSource[Source]], options: Options, steps: StepCache
) -> StageResult:
    """Return the records that may be chosen: normal, fit, without copies, capped, in no reference set."""
    priority = {o.source.spec.name: o.source.spec.priority for o in opened}
    mirror = options.origin.root if isinstance(options.origin, MirrorOrigin) else None

    def compute() -> StageResult:
        changes: dict[str, int] = {}
        records, drops = read_records(opened)
        table, twice = pool_table(normalize_records(records, changes))
        filtered, languages = filter_records(table, recipe.filter, workers=options.num_workers)
        exact = dedup_exact(filtered.table, priority)
        near = dedup_near(exact.table, recipe.dedup, priority)
        capped = cap_candidates(near.table, recipe.candidates)
        references = read_references(recipe.decontaminate.reference, mirror)
        fresh, contamination = decontaminate(capped.table, references, recipe.decontaminate)
        drops += [*twice, *filtered.drops, *exact.drops, *near.drops, *capped.drops, *fresh.drops, *contamination.flags]
        facts = {
            "records": len(records),
            "normalised": changes,
            "language_verdicts": languages.counts,
            "language_warnings": len(languages.warnings),
            "reference_texts": contamination.num_texts,
            "candidates": fresh.table.num_rows,
        }
        logger.info("candidates: %d records -> %d", len(records), fresh.table.num_rows)
        return StageResult(fresh.table, tuple(drops), facts)

    key = {
        "files": file_digests(opened),
        "absent": [drop.record_id for o in opened for drop in o.absent],
        "recipe": recipe.model_dump(mode="json", include={"filter", "candidates", "dedup", "decontaminate"}),
    }
    # A reference set can change under the same name, so what was checked against one is checked again.
    return compute() if recipe.decontaminate.reference else steps.run("clean", key, compute)


def unique_candidates(recipe: Recipe, table: pa.Table, vectors: Vectors, steps: StepCache) -> StageResult:
    """Return the candidates without semantic copies within one language."""
    priority = {name: source.spec.priority for name, source in SOURCES.items()}

    def compute() -> StageResult:
        return dedup_semantic(table, vectors, recipe.dedup, priority)

    return steps.run("unique", _key(table, vectors, recipe.dedup), compute)


def choose_rows(recipe: Recipe, table: pa.Table, vectors: Vectors, options: Options, steps: StepCache) -> StageResult:
    """Return the chosen rows of every category, with the figures of their choice."""

    def compute() -> StageResult:
        return select_categories(
            table, vectors, recipe.selection, allow_short=options.allow_short, workers=options.num_workers
        )

    return steps.run("select", _key(table, vectors, recipe.selection) | {"short": options.allow_short}, compute)


def _key(table: pa.Table, vectors: Vectors, section: Section) -> dict[str, Any]:
    return {"table": rows_digest(table), "vectors": array_digest(vectors), "recipe": section.model_dump(mode="json")}


def embedded_text(turns: Sequence[str]) -> str:
    """Return what of a conversation is embedded: all its user turns as they are sent, a blank line between two."""
    return "\n\n".join(turns)


def embed_table(table: pa.Table, embedder: Embedder, options: Options) -> tuple[Vectors, list[Drop]]:
    """Return one vector a row of a pool table, float32 of unit norm, and a ledger row for each text that was cut.

    A row without a usable vector is all NaN; semantic dedup drops it by name.
    """
    texts = [embedded_text(turns) for turns in table.column("turns").to_pylist()]
    embedding = embed(texts, embedder, workers=options.num_workers)
    ids = table.column("record_id").to_pylist()
    cut = [Drop(ids[i], "embed", "only its beginning is embedded", embedder.id) for i in embedding.report.cut]
    return embedding.vectors, cut


def rows_of(table: pa.Table, part: pa.Table) -> NDArray[np.int64]:
    """Return the places in a table of the records of a part of it."""
    place = {record_id: i for i, record_id in enumerate(table.column("record_id").to_pylist())}
    return np.array([place[record_id] for record_id in part.column("record_id").to_pylist()], np.int64)


def qualitative_tables(recipe: Recipe, chosen: pa.Table) -> list[tuple[str, pa.Table]]:
    """Return the chosen pool rows of `qualitative` and of each smaller set that is contained in it."""
    tables = [(CONFIG, chosen)]
    for k in recipe.selection.nested:
        inside = pc.less_equal(chosen.column("nested_size"), k)
        tables.append((f"{CONFIG}_{k}", chosen.filter(inside)))
    return [(config, table.select(POOL_SCHEMA.names)) for config, table in tables]


def spec_bench_table(reference: Sequence[OpenSource[Source]], book: Book) -> pa.Table:
    """Return the rows of Spec-Bench, normalised as the candidates are, and nothing else done to them."""
    records, drops = read_records(reference)
    table, twice = pool_table(normalize_records(records))
    book.drops += [*drops, *twice]
    return table


def write_pool(folder: BuildFolder, pool: pa.Table, vectors: Vectors, reference: pa.Table, theirs: Vectors) -> None:
    """Write the candidates and Spec-Bench's rows, with their vectors: what `diversity` and `explore` read."""
    write_table(folder.pool / "candidates.parquet", pool)
    write_vectors(folder.pool / "vectors.npy", vectors)
    write_table(folder.pool / "spec_bench.parquet", reference)
    write_vectors(folder.pool / "spec_bench_vectors.npy", theirs)
