"""The manifest of a build: all that explains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from curation.options import Book, Options
from curation.reading import AnyOpen, revisions
from curation.recipe import Recipe
from curation.stages.base import Drop
from curation.store import BuildFolder, file_digests, package_versions
from curation.tokenizer import Tokenizer
from sources.lock import is_locked, load_lock


def manifest(
    recipe: Recipe,
    folder: BuildFolder,
    options: Options,
    tokenizer: Tokenizer,
    opened: Sequence[AnyOpen],
    book: Book,
) -> dict[str, Any]:
    """Return all that explains a build: recipe, origin, versions, sources, figures and the digest of every file."""
    lock, pinned = load_lock(), revisions(opened)
    return {
        "recipe": recipe.model_dump(mode="json"),
        "recipe_digest": recipe.digest(),
        "origin": options.origin.name,
        "allow_short": options.allow_short,
        "parts": list(options.parts),
        "versions": package_versions(),
        "tokenizer": {"name": tokenizer.name, "version": tokenizer.version, "sha256": tokenizer.sha256},
        "sources": {
            o.source.spec.name: {
                "revision": pinned[o.source.spec.name],
                "locked": is_locked(o.source.spec, lock),
                "files": dict(o.resolved.digests),
                "absent": [a.path for a in o.resolved.absent],
            }
            for o in opened
        },
        "configs": list(book.configs),
        **book.facts,
        "drops": [{"stage": stage, "reason": reason, "records": n} for stage, reason, n in drop_counts(book.drops)],
        "files": file_digests(folder.root),
    }


def drop_counts(drops: Sequence[Drop]) -> tuple[tuple[str, str, int], ...]:
    """Return (stage, reason, records) of the ledger, most records first within a stage, stages in the order of acts."""
    stages = list(dict.fromkeys(drop.stage for drop in drops))
    counted = Counter((drop.stage, drop.reason) for drop in drops)
    ordered = sorted(counted.items(), key=lambda item: (stages.index(item[0][0]), -item[1], item[0][1]))
    return tuple((stage, reason, n) for (stage, reason), n in ordered)
