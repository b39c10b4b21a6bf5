"""Figures that others published of a recipe's system, and whether they are over the rows of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from bench.recipes.fields import Published
from bench.recipes.shipped import find_recipe, recipe_names
from bench.tables import marked, shown

Rows = Literal["same rows", "same data set", "other rows"]


def published_figures(recipe_name: str) -> tuple[Published, ...]:
    """Return what is published of a shipped recipe; nothing for "" and for a name that this version does not ship."""
    return find_recipe(recipe_name).published if recipe_name in recipe_names() else ()


def rows_of(published: Published, described: Mapping[str, Any]) -> Rows:
    """Return how the rows of a run (`run.json`) relate to those that published figures are over.

    "same rows" by digest only. "same data set" is a run over every row of that data set and config: its rows are the
    published ones unless it changed since, which no publication pins. All else is "other rows", a part of it included.
    """
    split, data = described["split"], described["config"]["data"]
    if published.split_sha256 and split["sha256"] == published.split_sha256:
        return "same rows"
    part = data["first_turn_only"] or data.get("categories")
    whole = split["rows"] == sum(split["total"].values()) and not part
    name = str(data["path"]).partition("@")[0]
    if whole and data["format"] == "dist" and (name, data["config"]) == (published.rows, published.rows_config):
        return "same data set"
    return "other rows"


def conditions(published: Published) -> str:
    """Return what published figures hold for, in a line: hardware, batch, draft length, temperature, rows, engine."""
    known = (
        published.hardware,
        f"batch size {published.batch_size}" if published.batch_size else "batch size not stated",
        f"draft length {published.draft_length}" if published.draft_length is not None else "",
        "temperature not stated" if published.temperature is None else f"temperature {published.temperature:g}",
        published.precision,
        published.engine_version,
        " ".join(filter(None, (published.rows, published.rows_config))),
        published.definition,
        "measured by those who made the method or the draft model" if published.self_reported else "",
    )
    return ", ".join(part for part in known if part)


def unlike_settings(published: Published, described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings of a run that differ from the published ones, each in words; unknown is not unlike."""
    config = described["config"]
    ours = {
        "temperature": config["sampling"]["temperature"],
        "batch size": config["load"]["concurrency"],
        "draft length": config["engine"]["draft_length"],
    }
    theirs = {
        "temperature": published.temperature,
        "batch size": published.batch_size,
        "draft length": published.draft_length,
    }
    pairs = ((name, ours[name], theirs[name]) for name in ours)
    return tuple(f"{name} {a:g}, published {b:g}" for name, a, b in pairs if None not in (a, b) and a != b)


def published_beside(published: Iterable[Published], described: Mapping[str, Any]) -> tuple[Published, ...]:
    """Return the published figures that are for a run's config, at its temperature or at one that nobody states."""
    config = described["config"]
    temperature, rows = config["sampling"]["temperature"], config["data"]["config"]
    return tuple(
        one
        for one in published
        if one.temperature in (None, temperature) and (not one.rows_config or one.rows_config.startswith(rows))
    )


PUBLISHED_HEAD = ("figure", "category", "measured", "published", "rows", "differs in", "source", "holds for")


def published_rows(described: Mapping[str, Any], summary: Mapping[str, Any]) -> list[list[str]]:
    """Return a line for each published figure beside the run's own, and what sets the two apart; at least the head.

    A speed-up has no measured value here: it takes a run without drafts, which `bench compare` sets beside this one.
    """
    lines = [[marked(PUBLISHED_HEAD[0], summary), *PUBLISHED_HEAD[1:]]]
    known = published_figures(described["config"]["engine"].get("recipe", ""))
    for one in published_beside(known, described):
        apart = [rows_of(one, described), "; ".join(unlike_settings(one, described)), one.source, conditions(one)]
        lengths = {"": one.acceptance_length_mean, **one.acceptance_length}
        speeds = {"": one.speed_up_mean, **one.speed_up}
        pooled = one.definition.startswith("mean accepted tokens, pooled")
        for name, value in lengths.items():
            if value is not None:
                own = _own_length(summary, name, pooled=pooled)
                lines.append(["acceptance_length", name or "mean", shown(own), shown(value), *apart])
        lines += [
            ["speed_up", name or "mean", shown(None), shown(value), *apart]
            for name, value in speeds.items()
            if value is not None
        ]
    return lines


def _own_length(summary: Mapping[str, Any], category: str, *, pooled: bool) -> float | None:
    """Return the run's acceptance length: of a category, or of all, by the aggregation that was published."""
    if not category and not pooled:
        value: float | None = summary["overall"]["headline"]["acceptance_length"]["value"]
        return value
    table = summary["by"]["category"].get(category) if category else summary["overall"]
    if table is None:
        return None
    length: float | None = table["figures"]["acceptance_length"]["pooled" if pooled else "request_mean"]
    return length
