"""The main flow, from pinned files to `dist/`: read it from top to bottom.

::

    qualitative = select(embed(clean(read(sources))))   # curation/qualitative.py
    throughput  = fit_to_buckets(read(sources))         # curation/throughput/, streamed
    publish(qualitative, throughput, card(ledger))      # full/, dist/, then the manifest
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from curation.building import whole_build
from curation.card_facts import card_facts
from curation.manifest import manifest
from curation.options import Book, Options
from curation.publish import write_cards
from curation.qualitative import build_qualitative
from curation.reading import AnyOpen, chosen_sources, require_sources, revisions
from curation.recipe import Recipe
from curation.stages.base import ledger_table
from curation.store import BuildFolder, write_json, write_table
from curation.throughput.split import build_throughput_split
from curation.tokenizer import Tokenizer, load_tokenizer
from sources.base import Source
from sources.passages import PassageSource
from sources.registry import QUALITATIVE, REFERENCE, THROUGHPUT

logger = logging.getLogger(__name__)

SPLIT_SOURCES: dict[str, tuple[Source | PassageSource, ...]] = {
    "qualitative": (*QUALITATIVE, *REFERENCE),
    "throughput": THROUGHPUT,
}


def build_splits(recipe: Recipe, out: Path, options: Options) -> BuildFolder:
    """Build the splits of a recipe into a folder and return it, whole or not at all; the manifest is written last.

    Raises
    ------
    Refusal
        If a source cannot be read, a pool is smaller than its quota, or the recipe cannot be followed.
    """
    book = Book()
    offered = [s for part in options.parts for s in SPLIT_SOURCES[part]]
    require_sources(chosen_sources(recipe, offered), options.origin, allow_short=options.allow_short)
    tokenizer = load_tokenizer(recipe.tokenizer)
    opened: tuple[AnyOpen, ...] = ()
    with whole_build(out) as folder:
        if "qualitative" in options.parts:
            opened += build_qualitative(recipe, folder, options, tokenizer, book)
        if "throughput" in options.parts:
            opened += build_throughput_split(recipe, folder, options, book)
        publish(recipe, folder, options, tokenizer, opened, book)
    return BuildFolder(out)


def publish(
    recipe: Recipe,
    folder: BuildFolder,
    options: Options,
    tokenizer: Tokenizer,
    opened: Sequence[AnyOpen],
    book: Book,
) -> None:
    """Write the ledger, the cards and checksums of `dist/` and `full/`, and last the manifest."""
    write_table(folder.root / "ledger.parquet", ledger_table(book.drops))
    facts = card_facts(recipe, folder, options, tokenizer, revisions(opened), book)
    write_cards(folder, facts)
    write_json(folder.manifest, manifest(recipe, folder, options, tokenizer, opened, book))
    for config in facts.configs:
        logger.info(
            "built %s: %d rows, %d of them placeholders in dist/", config.name, config.num_rows, config.num_placeholders
        )
    unpinned = [s.name for s in facts.sources if not s.revision]
    if unpinned and options.origin.name == "hub":
        logger.warning("not pinned, so not to be released: %s; run `speedbench sources lock`", ", ".join(unpinned))
