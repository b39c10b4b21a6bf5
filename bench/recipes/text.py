"""A recipe as people read it: its commands, the run's TOML, and its row of the table in docs. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.config import BenchConfig
from bench.recipes.fields import Published, Recipe

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(config: BenchConfig) -> str:
    """Return a run's TOML file: what differs from the defaults, tables after values."""
    return "\n".join(_table(config.model_dump(mode="json", exclude_none=True, exclude_defaults=True), ())) + "\n"


def _table(values: Mapping[str, Any], above: tuple[str, ...]) -> Iterable[str]:
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping) and value}
    plain = {key: value for key, value in values.items() if key not in tables}
    if above and (plain or not tables):
        yield f"\n[{'.'.join(_key(part) for part in above)}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in tables.items():
        yield from _table(value, (*above, key))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    """Return a value; JSON's are TOML's, but for DEL in a text and for a table in a list."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def command_text(recipe: Recipe, config: BenchConfig) -> str:
    """Return the commands of a recipe as a shell script with the run's configuration below."""
    serve = config.engine.serve
    command = () if serve is None else serve.command
    env = {} if serve is None else serve.env
    lines = [f"# {recipe.title}", *(f"# {line}" for line in _about(recipe)), "", "# The server; `bench run` starts it."]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    lines += [shlex.join(command), "", f"# The run, after this file is saved as {recipe.name}.toml:"]
    lines += [f"speedbench bench run {recipe.name}.toml --out runs/{recipe.name}", "", f"# {recipe.name}.toml"]
    return "\n".join([*lines, as_toml(config)])


def _about(recipe: Recipe) -> Iterable[str]:
    engine, method = recipe.engine, recipe.method
    yield f"engine: {engine.name}{f', the paper used {engine.paper_version}' if engine.paper_version else ''}"
    if engine.image:
        yield f"image of the paper: {engine.image}"
    yield f"target: {recipe.target.hf_id}; draft: {recipe.draft.hf_id if recipe.draft else 'no model'}"
    yield (
        f"method: {method.name}; drafting {method.drafting}, verification {method.verification}, "
        f"alignment {method.alignment}; keeps greedy output: {method.strict_greedy}, "
        f"distribution above temperature 0: {method.stochastic}"
    )
    yield f"flags: {flags_text(recipe)}"
    if recipe.notes:
        yield f"note: {recipe.notes}"
    for published in recipe.published:
        yield f"published: {published_text(published)}"


def flags_text(recipe: Recipe) -> str:
    """Return what the flags were held against."""
    how = {"run": "run, through", "parsed": "parsed by", "read": "read, never parsed:", "never": "never checked"}
    return " ".join(filter(None, (how[recipe.flags.how], recipe.flags.against, f"({recipe.flags.version})")))


def published_text(published: Published) -> str:
    """Return published figures in a line: the means, and how many categories there are."""
    parts = [published.source]
    if published.temperature is not None:
        parts.append(f"T = {published.temperature:g}")
    if published.acceptance_length_mean is not None:
        parts.append(f"mean acceptance length {published.acceptance_length_mean:g}")
    if published.speed_up_mean is not None:
        parts.append(f"mean speed-up {published.speed_up_mean:g}x")
    parts += [f"acceptance length {name} {value:g}" for name, value in published.acceptance_length.items()]
    parts += [f"speed-up {name} {value:g}x" for name, value in published.speed_up.items()]
    return ", ".join(parts)


DOCS_HEADER = ("recipe", "system", "engine", "draft", "published", "flags", "run here", "untested")


def docs_table(recipes: Sequence[Recipe]) -> str:
    """Return the table of docs/recipes.md in Markdown, a row a recipe."""
    rows = [DOCS_HEADER, ("---",) * len(DOCS_HEADER), *map(_docs_row, recipes)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows) + "\n"


def _docs_row(recipe: Recipe) -> tuple[str, ...]:
    system = ": ".join(filter(None, (recipe.system.paper, recipe.system.column))) or recipe.title
    engine = recipe.engine.name + (f" (paper: {recipe.engine.paper_version})" if recipe.engine.paper_version else "")
    length = "" if recipe.draft_length is None else f", k = {recipe.draft_length}"
    draft = (recipe.draft.hf_id if recipe.draft else recipe.method.name) + (length if recipe.speculative else "")
    return (
        f"`{recipe.name}`",
        system,
        engine,
        draft,
        _published_cell(recipe),
        flags_text(recipe),
        recipe.ran or "nothing",
        recipe.untested or "—",
    )


def _published_cell(recipe: Recipe) -> str:
    """Return the means by temperature; where a source has none, how many of its figures there are."""
    cells = []
    for one in recipe.published:
        at = "" if one.temperature is None else f" at T = {one.temperature:g}"
        means = [f"AL {one.acceptance_length_mean:g}" if one.acceptance_length_mean else ""]
        means += [f"{one.speed_up_mean:g}x" if one.speed_up_mean else ""]
        single = len(one.acceptance_length) + len(one.speed_up)
        text = ", ".join(filter(None, means)) or f"{single} figures of {one.rows_config or one.rows}"
        cells.append(text + at + (" (self-reported)" if one.self_reported else ""))
    return "; ".join(cells) or "—"
