"""The rows of the demo, built from the samples of the sources. The only importer of the build in `bench`."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

from curation.load import read_manifest
from curation.options import Options
from curation.pipeline import build_splits
from curation.recipe import Recipe, TokenizerConfig, load_recipe
from sources.origins import SamplesOrigin


def demo_recipe(tokenizer: Path) -> Recipe:
    """Return the recipe of the demo's rows, lengths in the tokens of a `tokenizer.json`."""
    with resources.as_file(resources.files("bench") / "demo" / "rows.toml") as path:
        recipe = load_recipe(str(path))
    digest = hashlib.sha256(tokenizer.read_bytes()).hexdigest()
    return recipe.model_copy(update={"tokenizer": TokenizerConfig(name=str(tokenizer), sha256=digest)})


def demo_rows(tokenizer: Path, out: Path, *, parts: tuple[str, ...] = ("qualitative", "throughput")) -> Path:
    """Return the folder with the text of every row.

    Parameters
    ----------
    tokenizer
        The served model's `tokenizer.json`.
    out
        Folder of the build; one that holds these rows already stays as it is.
    parts
        Splits to build.
    """
    recipe = demo_recipe(tokenizer)
    manifest = read_manifest(out / "dist") if (out / "dist").is_dir() else None
    if (
        manifest is not None
        and manifest.get("recipe_digest") == recipe.digest()
        and set(parts) <= set(manifest["parts"])
    ):
        return out / "full"
    build_splits(recipe, out, Options(SamplesOrigin(), parts))
    return out / "full"
