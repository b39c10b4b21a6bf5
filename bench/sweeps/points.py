"""The points of a sweep: which runs its grid is made of. Starts nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from bench.config import BenchConfig, DataConfig, EngineConfig, ServeConfig, ServerVariant, SweepConfig
from bench.errors import ConfigError
from bench.recipes.shipped import Recipe, find_recipe, recipe_engine

TOY_NOTE = "toy model: shows the machinery, not a result"
"""What every table of a run of the toy pair says."""
TOY_ALLOWS = ("client", "looping", "one_token")
"""Gates that hold no figure of the toy pair back: it is a toy, small and quick enough that any host disturbs it."""

_BUCKET = re.compile(r"throughput_(\d+)(k?)")


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of the grid: its name, where it lies on each axis, and the configuration of its run.

    Attributes
    ----------
    data
        Name of the variant of the data, "" where there is but one.
    repeat
        Which start of the server it belongs to, from 0.
    """

    name: str
    server: str
    config: BenchConfig
    data: str = ""
    repeat: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the place of the point on every axis."""
        run = self.config
        return {
            "point": self.name,
            "server": self.server,
            "recipe": run.engine.recipe,
            "data": self.data,
            "config": run.data.config,
            "temperature": run.sampling.temperature,
            "concurrency": run.load.concurrency,
            "draft_length": run.engine.draft_length,
            "repeat": self.repeat,
        }


@dataclass(frozen=True, slots=True)
class Group:
    """Points that one start of a server answers; `serve` is None where it runs already."""

    server: str
    serve: ServeConfig | None
    points: tuple[Point, ...]


def groups(config: BenchConfig, port: int) -> Iterator[Group]:
    """Yield the points of each start of a server, in the order of the file.

    Parameters
    ----------
    port
        Where the server of a recipe listens; one port does, for servers run one after the other.

    Raises
    ------
    ConfigError
        If the file has no table [sweep], or a variant of it is wrong.
    """
    sweep = config.sweep
    if sweep is None:
        raise ConfigError("the configuration has no table [sweep]")
    for server in sweep.servers or (None,):
        engine, serve = _engine(config, server, port)
        for repeat in range(sweep.repeats):
            cells = tuple(_cells(config, sweep, engine, server.name if server else "", repeat))
            yield Group(server.name if server else "", serve, cells)


def points(config: BenchConfig, port: int = 0) -> list[Point]:
    """Return every point of a sweep."""
    return [point for group in groups(config, port) for point in group.points]


def _engine(config: BenchConfig, server: ServerVariant | None, port: int) -> tuple[EngineConfig, ServeConfig | None]:
    """Return the engine of a variant, without what starts it, and what starts it."""
    engine = config.engine
    if server is None:
        return engine.model_copy(update={"serve": None}), engine.serve
    if server.recipe:
        recipe = _wide_enough(find_recipe(server.recipe), config)
        engine = recipe_engine(recipe, url_port=port, paths=server.paths, draft_length=server.draft_length)
        # The command, which holds the drafter and its length, is part of what was run, and so of the digest.
        command = engine.serve.command if engine.serve else ()
        return engine.model_copy(update={"serve": None, "flags": command}), engine.serve
    changes: dict[str, Any] = {"flags": server.flags, "draft_length": server.draft_length, "serve": None}
    if server.url is not None:
        changes["url"] = server.url
    return engine.model_copy(update=changes), server.serve or engine.serve


def _wide_enough(recipe: Recipe, config: BenchConfig) -> Recipe:
    """Return the recipe with room for every stream: the server must not queue what the sweep sends at once."""
    streams = max(config.sweep.concurrency if config.sweep else (1,))
    return recipe.model_copy(update={"batch_size": max(recipe.batch_size, streams)})


def _cells(config: BenchConfig, sweep: SweepConfig, engine: EngineConfig, server: str, repeat: int) -> Iterator[Point]:
    for variant, changes in (sweep.data or {"": {}}).items():
        for name in sweep.config or (config.data.config,):
            data = _data(config.data, name, changes, engine, variant)
            for temperature in sweep.temperature or (config.sampling.temperature,):
                for concurrency in sweep.concurrency:
                    parts = [server or "server", variant, name, f"t{temperature:g}" if sweep.temperature else ""]
                    parts += [f"c{concurrency}", f"r{repeat}" if sweep.repeats > 1 else ""]
                    cell = config.model_copy(
                        update={
                            "engine": engine,
                            **_toy_settings(config, engine),
                            "data": data,
                            "load": config.load.model_copy(update={"concurrency": concurrency}),
                            "sampling": config.sampling.model_copy(update={"temperature": temperature}),
                            "sweep": None,
                        }
                    )
                    yield Point("-".join(part for part in parts if part), server, cell, variant, repeat)


def _toy_settings(config: BenchConfig, engine: EngineConfig) -> dict[str, Any]:
    """Return note and limits of a run of the toy pair; nothing for any other model."""
    if not engine.recipe or not find_recipe(engine.recipe).target.is_toy:
        return {}
    limits = config.limits.model_copy(update={"allow": TOY_ALLOWS})
    return {"note": config.note or TOY_NOTE, "limits": limits}


def _data(base: DataConfig, config: str, changes: Mapping[str, Any], engine: EngineConfig, variant: str) -> DataConfig:
    """Return the data of a variant; random prompts are as long as the config's bucket, over the model's vocabulary."""
    values = base.model_dump() | {"config": config} | dict(changes)
    if values["format"] == "random" and changes:
        bucket = _BUCKET.fullmatch(config)
        if bucket and "random_isl" not in changes:
            values["random_isl"] = int(bucket[1]) * (1000 if bucket[2] else 1)
        values["random_tokenizer"] = changes.get("random_tokenizer", engine.tokenizer)
    try:
        return DataConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"sweep.data.{variant}: {field}: {first['msg']}") from None
