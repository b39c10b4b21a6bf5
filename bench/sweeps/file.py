"""Sweep files: the shipped experiments by name, or a path. Reads TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.config import BenchConfig, VocabularyConfig, decoded, parse_config, parse_toml
from bench.errors import ConfigError
from bench.recipes.shipped import find_recipe, recipe_engine


def experiment_names() -> tuple[str, ...]:
    """Return the names of the shipped experiments, sorted."""
    folder = resources.files("bench") / "experiments"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def experiment_titles() -> dict[str, str]:
    """Return the shipped experiments by name, with the first line of their files, which says what each asks."""
    return {name: sweep_text(name).partition("\n")[0].lstrip("# ") for name in experiment_names()}


def sweep_text(name_or_path: str) -> str:
    """Return the TOML of a shipped experiment, or of a file.

    Raises
    ------
    ConfigError
        If there is neither an experiment of this name nor such a file.
    """
    if name_or_path in experiment_names():
        return (resources.files("bench") / "experiments" / f"{name_or_path}.toml").read_text("utf-8")
    try:
        data = Path(name_or_path).read_bytes()
    except OSError as error:
        known = ", ".join(experiment_names())
        raise ConfigError(f"{name_or_path}: {error.strerror}; give a TOML file, or one of {known}") from None
    return decoded(data, name_or_path)


def load_sweep(
    name_or_path: str,
    *,
    data: str = "",
    configs: Sequence[str] = (),
    recipes: Sequence[str] = (),
    paths: Mapping[str, str] | None = None,
) -> BenchConfig:
    """Return a sweep, some of its settings replaced.

    Parameters
    ----------
    data
        DIST, or a JSONL file of rows, in the place of `data.path`.
    configs
        Configs of the DIST, in the place of `sweep.config`.
    recipes
        Recipes, in the place of `sweep.servers`; ``NAME=K`` gives the draft length. The plain one is the baseline.
    paths
        Folders and files that the commands of those recipes name.

    Raises
    ------
    ConfigError
        If the file is not there, not TOML, or a field of it is wrong.
    """
    values = parse_toml(sweep_text(name_or_path), name_or_path)
    _refuse_other_kinds(values, name_or_path)
    if data:
        values["data"] = values.get("data", {}) | _data_from(data, values)
    sweep = values["sweep"]
    if sweep.get("experiment", "") not in ("", *experiment_names()):
        known = ", ".join(experiment_names())
        raise ConfigError(f"{name_or_path}: sweep.experiment: {sweep['experiment']!r} is none of {known}")
    if configs:
        sweep["config"] = list(configs)
    if recipes:
        sweep["servers"] = [_server(recipe, paths or {}) for recipe in recipes]
    if "engine" not in values:
        values["engine"] = _first_engine(sweep.get("servers", ()), name_or_path)
    return parse_config(values, name_or_path)


def _refuse_other_kinds(values: Mapping[str, Any], where: str) -> None:
    """Refuse what the options of a command line cannot be laid over; the rest is checked with the whole file."""
    sweep = values.get("sweep")
    if not isinstance(sweep, dict):
        raise ConfigError(f"{where}: has no table [sweep]")
    if not isinstance(values.get("data", {}), dict):
        raise ConfigError(f"{where}: data must be a table")
    servers = sweep.get("servers", [])
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        raise ConfigError(f"{where}: sweep.servers must be a list of tables, [[sweep.servers]]")
    for server in servers:
        if not isinstance(server.get("recipe", ""), str) or not isinstance(server.get("paths", {}), dict):
            raise ConfigError(f"{where}: sweep.servers: recipe must be a name, and paths a table")


def parse_vocabulary(counts: str, corpus: str, top_k: str) -> VocabularyConfig:
    """Return the settings of a command line.

    Raises
    ------
    ConfigError
        If they are wrong: both or neither source, or a size that is no number >= 1.
    """
    try:
        sizes = tuple(int(size) for size in top_k.split(","))
        return VocabularyConfig(counts=counts, corpus=corpus, top_k=sizes)
    except ValidationError as error:
        raise ConfigError(f"--counts, --corpus, --top-k: {error.errors()[0]['msg']}") from None
    except ValueError:
        raise ConfigError(f"--top-k {top_k}: give numbers with commas between") from None


def _data_from(data: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return path and format; a file is JSONL of turns, or Spec-Bench's own questions in its experiment."""
    if not Path(data).is_file():
        return {"path": data, "format": "dist"}
    own = values.get("data", {}).get("format", "dist")
    jsonl = "spec_bench" if values.get("sweep", {}).get("experiment") == "spec_bench" else "jsonl"
    return {"path": data, "format": jsonl if own == "dist" else own}


def _server(recipe: str, paths: Mapping[str, str]) -> dict[str, Any]:
    name, given, length = recipe.partition("=")
    server: dict[str, Any] = {"name": f"{name}-k{length}" if given else name, "recipe": name, "paths": dict(paths)}
    if given:
        if not (length.isascii() and length.isdecimal() and int(length)):
            raise ConfigError(f"--recipe {recipe}: the draft length after = must be a number >= 1")
        server["draft_length"] = int(length)
    return server


def _first_engine(servers: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
    """Return a table [engine] of the first recipe, for a file whose servers all come from recipes."""
    if not servers or not all(server.get("recipe") for server in servers):
        raise ConfigError(f"{where}: has no table [engine], and not every server of [sweep] names a recipe")
    first = servers[0]
    engine = recipe_engine(find_recipe(first["recipe"]), url_port=0, paths=first.get("paths"))
    return engine.model_dump(exclude={"serve"})
