"""The shipped recipes, and the run that a recipe becomes on this host.

A recipe's commands hold placeholders: `{python} {port} {model} {draft} {tokenizer} {draft_length} {step_tokens} (one
more) {tp} {ep} {batch_size} {options} {cache} {inprocess}`, any name of `paths`, and for the toy pair `{toy_target_hf}
{toy_draft_hf} {toy_target_gguf} {toy_draft_gguf}`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.config import BenchConfig, DataConfig, EngineConfig, LoadConfig, SamplingConfig, ServeConfig
from bench.errors import ConfigError
from bench.recipes.fields import Published, Recipe
from bench.recipes.host import find_python, local_model, runnable
from sources.cache_root import cache_root
from sources.disk import atomic

__all__ = [
    "Published",
    "Recipe",
    "find_recipe",
    "list_recipes",
    "parse_recipe",
    "recipe_config",
    "recipe_engine",
    "recipe_names",
    "runnable",
]

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def recipe_names() -> tuple[str, ...]:
    """Return the names of the shipped recipes, sorted."""
    folder = resources.files("bench") / "recipes"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


@lru_cache(maxsize=1)
def list_recipes() -> tuple[Recipe, ...]:
    """Return the shipped recipes by name."""
    return tuple(find_recipe(name) for name in recipe_names())


@lru_cache(maxsize=256)
def find_recipe(name: str) -> Recipe:
    """Return a shipped recipe by its name.

    Raises
    ------
    ConfigError
        If there is none of this name, or its file is wrong.
    """
    return parse_recipe(_read(name, seen=()), f"recipe {name}")


def parse_recipe(values: Mapping[str, Any], where: str) -> Recipe:
    """Return the recipe in parsed values; `where` names them in errors.

    Raises
    ------
    ConfigError
        If a field is unknown, missing or out of range.
    """
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "recipe"
        raise ConfigError(f"{where}: {field}: {first['msg']}") from None


def _read(name: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of a recipe over those of the one that it `extends`, less those that it would `unset`."""
    if name in seen:
        raise ConfigError(f"recipe {name}: extends itself through {' -> '.join(seen)}")
    if name not in recipe_names():
        raise ConfigError(f"no recipe {name!r}; `speedbench bench recipes list` shows them")
    try:
        values = tomllib.loads((resources.files("bench") / "recipes" / f"{name}.toml").read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"recipe {name}: not TOML: {error}") from None
    parent, unset = values.pop("extends", None), values.pop("unset", ())
    base = {} if parent is None else _read(str(parent), (*seen, name))
    kept = {key: value for key, value in base.items() if key not in unset}
    return _merged(kept, {**values, "name": name})


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def recipe_config(
    recipe: Recipe,
    *,
    url_port: int,
    data: DataConfig,
    load: LoadConfig | None = None,
    sampling: SamplingConfig | None = None,
    paths: Mapping[str, str] | None = None,
    draft_length: int | None = None,
    engine_version: str = "",
    name: str = "",
) -> BenchConfig:
    """Return the run of a recipe over some rows; the runner starts and stops its server.

    Parameters
    ----------
    url_port
        Port that the server listens on, on the loopback address.
    load, sampling
        Default: the recipe's own batch size, repeats and sampling.
    paths
        Folders or files of `model`, `draft`, `tokenizer` and of whatever else the recipe's command names.
    draft_length
        Instead of the recipe's own; a recipe without drafting takes none.
    engine_version
        An older version of the engine whose flags have other names; one of those that the recipe knows.

    Raises
    ------
    ConfigError
        If the command names something that is neither known nor in `paths`.
    """
    own = recipe.sampling
    return BenchConfig(
        name=name or recipe.name,
        engine=recipe_engine(
            recipe, url_port=url_port, paths=paths, draft_length=draft_length, engine_version=engine_version
        ),
        data=data,
        load=load or LoadConfig(concurrency=recipe.batch_size, repeats=recipe.repeats),
        sampling=sampling or SamplingConfig(max_tokens=own.max_tokens, temperature=own.temperature, top_p=own.top_p),
    )


def recipe_engine(
    recipe: Recipe,
    *,
    url_port: int,
    paths: Mapping[str, str] | None = None,
    draft_length: int | None = None,
    engine_version: str = "",
) -> EngineConfig:
    """Return the table [engine] of a recipe's run, placeholders filled; see `recipe_config`."""
    if draft_length is not None and not recipe.speculative:
        raise ConfigError(f"recipe {recipe.name}: drafts nothing, so it takes no draft_length")
    engine = recipe.engine
    length = recipe.draft_length if draft_length is None else draft_length
    fill = _filler(recipe, url_port, dict(paths or {}), length)
    return EngineConfig(
        dialect=engine.dialect,
        url=f"http://127.0.0.1:{url_port}",
        model=fill(engine.model_name),
        tokenizer=fill(engine.tokenizer),
        chat_template_kwargs=dict(engine.chat_template_kwargs),
        recipe=recipe.name,
        draft_length=length,
        draft_model=recipe.draft.hf_id if recipe.draft else "",
        model_revision=recipe.target.revision,
        draft_revision=recipe.draft.revision if recipe.draft else "",
        num_gpus=recipe.parallelism.gpus or None,
        serve=ServeConfig(
            command=tuple(fill(part) for part in _command(recipe, engine_version)),
            health=engine.health,
            env={key: fill(value) for key, value in engine.env.items()},
            startup_s=engine.startup_s,
        ),
    )


def _command(recipe: Recipe, engine_version: str) -> tuple[str, ...]:
    """Return the command with the flags of a version of the engine."""
    engine = recipe.engine
    if not engine_version:
        return engine.command
    if engine_version not in engine.renamed:
        known = ", ".join(engine.renamed) or "none"
        raise ConfigError(f"recipe {recipe.name}: no flags of version {engine_version}; it knows those of {known}")
    names = engine.renamed[engine_version]
    return tuple(names.get(part, part) for part in engine.command)


def _filler(recipe: Recipe, port: int, paths: dict[str, str], draft_length: int | None) -> Callable[[str], str]:
    """Return what fills the placeholders of a text; what costs something is made only if it is named."""

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: value(match[1]), text)

    def value(key: str) -> str:
        if key in paths:
            return paths[key]
        if key not in values:
            raise ConfigError(f"recipe {recipe.name}: nothing fills {{{key}}}; give it with --path {key}=…")
        paths[key] = values[key]()
        return paths[key]

    values: dict[str, Callable[[], str]] = {
        "python": lambda: find_python(recipe.engine.environment),
        "port": lambda: str(port),
        "model": lambda: local_model(recipe.target) or recipe.target.hf_id,
        "draft": lambda: _draft_of(recipe),
        "tokenizer": lambda: value("model"),
        "draft_length": lambda: _length_of(recipe, draft_length),
        "step_tokens": lambda: str(int(_length_of(recipe, draft_length)) + 1),
        "tp": lambda: str(recipe.parallelism.tp),
        "ep": lambda: str(recipe.parallelism.ep),
        "batch_size": lambda: str(recipe.batch_size),
        "cache": lambda: str(cache_root()),
        "inprocess": lambda: str(Path(__file__).parents[1] / "inprocess"),
        "options": lambda: str(_options_file(recipe, fill(recipe.engine.options))),
        "toy_target_hf": lambda: _toy("hf_folder", "target"),
        "toy_draft_hf": lambda: _toy("hf_folder", "draft"),
        "toy_target_gguf": lambda: _toy("gguf_file", "target"),
        "toy_draft_gguf": lambda: _toy("gguf_file", "draft"),
    }
    return fill


def _draft_of(recipe: Recipe) -> str:
    if recipe.draft is None:
        raise ConfigError(f"recipe {recipe.name}: names {{draft}} but has no draft model")
    return local_model(recipe.draft) or recipe.draft.hf_id


def _length_of(recipe: Recipe, draft_length: int | None) -> str:
    if draft_length is None:
        raise ConfigError(f"recipe {recipe.name}: names {{draft_length}} but has none")
    return str(draft_length)


def _options_file(recipe: Recipe, text: str) -> Path:
    """Return the options file under the cache; its name holds its digest, so that a run's own digest covers it."""
    stem, dot, suffix = recipe.engine.options_name.rpartition(".")
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = cache_root() / "recipes" / f"{recipe.name}-{stem}-{digest}{dot}{suffix}"
    if not path.is_file():
        with atomic(path) as scratch:
            scratch.write_text(text, "utf-8")
    return path


def _toy(make: str, model: str) -> str:
    """Return a folder or file of the toy pair, made on first use; imported late, since GGUF needs its own package."""
    from importlib import import_module

    return str(getattr(import_module("bench.toy.files"), make)(model, cache_root()))
