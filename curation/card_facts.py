"""What the card of a build states, gathered from its files, its ledger and the figures of its acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from statistics import fmean
from typing import Any

import numpy as np

from cards.facts import (
    AuditFacts,
    CardFacts,
    CategoryFacts,
    CellFacts,
    ConfigFacts,
    SharedFacts,
    ThroughputFacts,
)
from curation.audit.self_check import BY_CONSTRUCTION, CONTAINED, FAULT, check_self
from curation.diversity import RANDOM_SEEDS, mean_cosine_of, random_cosine, spec_bench_rows
from curation.diversity_input import Pool, read_pool
from curation.kernels.selection import mean_pairwise_cosine
from curation.manifest import drop_counts
from curation.options import Book, Options
from curation.recipe import Recipe
from curation.row_facts import config_facts, source_facts
from curation.store import BuildFolder, package_versions
from curation.throughput.composition import PREFIX_RULE
from curation.tokenizer import Tokenizer
from sources.registry import SOURCES

ORIGIN_WORDS = {
    "hub": "the sources at their pinned revisions",
    "mirror": "a local mirror of the sources",
    "samples": "the project's own samples of the sources",
}
"""How the card says where the records of a build came from."""

_NOTES = {
    "mirror": "Built from a local mirror: it can be checked with `speedbench verify --local`, and is not a release.",
    "samples": "Built from samples that the project wrote to try the machine with: nothing to measure on.",
}
_SHORT = "Built with `--allow-short`: where files or candidates were missing, fewer rows than wanted were delivered."

MAX_AUDITED_TOKENS = 2_000_000
"""Tokens of a config up to which the build compares its rows; `speedbench verify` compares those of all configs."""


def card_facts(
    recipe: Recipe,
    folder: BuildFolder,
    options: Options,
    tokenizer: Tokenizer,
    revisions: Mapping[str, str],
    book: Book,
) -> CardFacts:
    """Return all that the card of a build may state; its configs, pool and ledger are written already."""
    specs = {source.spec.name: source.spec for source in SOURCES.values()}
    pool = read_pool(folder.dist)
    configs = config_facts(folder.dist, book.configs, _languages(pool))
    return CardFacts(
        recipe=recipe.name,
        recipe_digest=recipe.digest(),
        origin=ORIGIN_WORDS[options.origin.name],
        embedder=str(book.facts.get("embedder", "none")),
        tokenizer=f"{tokenizer.name} ({tokenizer.version})",
        languages=tuple(sorted(book.languages - {""})),
        configs=configs,
        sources=source_facts(folder.dist, book.configs, specs, revisions),
        categories=category_facts(book.facts.get("categories", {}), pool),
        drops=drop_counts(book.drops),
        notes=_notes(options),
        settings=recipe_settings(recipe),
        versions=tuple({"speedbench": metadata.version("speedbench"), **package_versions()}.items()),
        throughput=throughput_facts(book.facts.get("throughput"), recipe),
        self_audit=audit_facts(folder, recipe, configs),
    )


def _notes(options: Options) -> tuple[str, ...]:
    notes = [_NOTES[options.origin.name]] if options.origin.name in _NOTES else []
    return (*notes, *([_SHORT] if options.allow_short else ()))


def _languages(pool: Pool | None) -> dict[str, str]:
    if pool is None:
        return {}
    tables = (pool.candidates, pool.spec_bench)
    return {
        record_id: language
        for table in tables
        for record_id, language in zip(
            table.column("record_id").to_pylist(), table.column("language").to_pylist(), strict=True
        )
    }


def recipe_settings(recipe: Recipe) -> tuple[tuple[str, str], ...]:
    """Return every setting of a recipe under its dotted name, in the order of its fields."""
    return tuple(_settings("", recipe.model_dump(mode="json", exclude={"name", "version"})))


def _settings(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    settings: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            settings += _settings(f"{prefix}{name}.", value)
        else:
            settings.append((prefix + name, _setting(value)))
    return settings


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one["name"]) if isinstance(one, dict) else str(one) for one in value) or "none"
    return "none" if value is None or value == "" else str(value)


def category_facts(categories: Mapping[str, Mapping[str, Any]], pool: Pool | None) -> tuple[CategoryFacts, ...]:
    """Return the card's facts of each category from the manifest's, and what the pool's vectors tell beside them."""
    return tuple(_category_facts(name, figures, pool) for name, figures in categories.items())


def _category_facts(name: str, figures: Mapping[str, Any], pool: Pool | None) -> CategoryFacts:
    k = figures["chosen"]
    return CategoryFacts(
        name=name,
        candidates=figures["candidates"],
        chosen=k,
        mean_cosine=_cosine(figures.get("objective"), k),
        bound_cosine=_cosine(figures.get("bound"), k),
        gap=figures.get("gap"),
        spec_bench_cosine=_spec_bench_cosine(name, pool),
        random_cosine=_random_cosine(name, k, pool),
        greedy_cosine=_cosine(figures.get("greedy_objective"), k),
    )


def _cosine(objective: float | None, k: int) -> float | None:
    return mean_cosine_of(objective, k) if objective is not None and k > 1 else None


def _spec_bench_cosine(category: str, pool: Pool | None) -> float | None:
    if pool is None:
        return None
    rows = spec_bench_rows(pool.spec_bench.column("category").to_pylist(), category)
    return mean_pairwise_cosine(np.asarray(pool.spec_bench_vectors[rows])) if len(rows) > 1 else None


def _random_cosine(category: str, k: int, pool: Pool | None) -> float | None:
    if pool is None or k < 2:
        return None
    named = pool.candidates.column("category").to_pylist()
    x = np.asarray(pool.vectors[[i for i, name in enumerate(named) if name == category]])
    x = x[np.isfinite(x).all(axis=1)]
    return fmean(random_cosine(x, k, seed) for seed in RANDOM_SEEDS) if len(x) >= k else None


def throughput_facts(figures: Mapping[str, Any] | None, recipe: Recipe) -> ThroughputFacts | None:
    """Return the card's facts of the throughput split from the manifest's; None for a build without one."""
    if figures is None:
        return None
    return ThroughputFacts(
        cells=tuple(
            CellFacts(c["config"], c["tier"], c["wanted"], c["found"], tuple(sorted(c["by_source"].items())))
            for c in figures["cells"]
        ),
        shared=tuple(
            SharedFacts(s["config"], s["longest_prefix"], s["mean_share"], s["max_share"]) for s in figures["shared"]
        ),
        tier_sentences=tuple(figures["tier_order"]),
        prefix_rule=PREFIX_RULE.format(num_tokens=recipe.throughput.max_shared_prefix_tokens + 1),
    )


def audit_facts(folder: BuildFolder, recipe: Recipe, configs: Sequence[ConfigFacts]) -> AuditFacts:
    """Return what the rows of the configs that are not too large share with one another."""
    audited = [c.name for c in configs if c.tokens.mean * c.num_rows <= MAX_AUDITED_TOKENS]
    found = check_self(folder.full, configs=audited, dedup=recipe.dedup)
    verdicts = [pair.verdict for pair in found.pairs]
    return AuditFacts(
        configs=tuple(found.rows.items()),
        left_out=tuple(c.name for c in configs if c.name not in audited),
        faults=verdicts.count(FAULT),
        contained=verdicts.count(CONTAINED),
        by_construction=verdicts.count(BY_CONSTRUCTION),
        jaccard_threshold=found.jaccard_threshold,
    )
