"""What a card may state: every figure of it comes from here, and comes here from files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """One config: its file, its rows and its columns with the types that `dataset_info` writes."""

    name: str
    path: str
    num_rows: int
    num_placeholders: int
    num_bytes: int
    download_bytes: int
    columns: tuple[tuple[str, str], ...]
    categories: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """One source that gave rows: how many, from which revision, under which licence."""

    name: str
    title: str
    source: str
    hub_id: str
    revision: str
    license: str
    license_title: str
    license_url: str
    published: bool
    publish_reason: str
    num_rows: int
    citation: str


@dataclass(frozen=True, slots=True)
class CategoryFacts:
    """How one category was chosen: the figures of its selection and certificate."""

    name: str
    candidates: int
    chosen: int
    mean_cosine: float | None
    bound_cosine: float | None
    gap: float | None


@dataclass(frozen=True, slots=True)
class CardFacts:
    """All that a card of one build may state."""

    recipe: str
    recipe_digest: str
    origin: str
    embedder: str
    tokenizer: str
    languages: tuple[str, ...]
    configs: tuple[ConfigFacts, ...]
    sources: tuple[SourceFacts, ...]
    categories: tuple[CategoryFacts, ...]
    drops: tuple[tuple[str, str, int], ...]
    """(stage, reason, records) of the ledger."""
