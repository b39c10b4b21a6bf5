"""The commands `speedbench bench recipes …`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bench.config import BenchConfig, DataConfig
    from bench.recipes.fields import Recipe

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
path_option = click.option(
    "--path", "paths", multiple=True, metavar="NAME=PATH", help="A folder or file that the command names, e.g. model."
)
_RUN_OPTIONS = (
    click.option("--dist", default="", help="Rows to send; default: those of the system's paper, for you to name."),
    click.option("--config", "rows_config", default="qualitative", show_default=True, help="Config of the DIST."),
    click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port of the server."),
    click.option("--draft-length", type=click.IntRange(min=1), help="Instead of the recipe's own."),
    click.option("--engine-version", default="", help="An older engine, whose flags have other names."),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what makes a run of a recipe."""
    for option in reversed((path_option, *_RUN_OPTIONS)):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@click.option("--print", "name", metavar="NAME", help="Print the commands of a recipe: the same as `show NAME`.")
@click.pass_context
def recipes(ctx: click.Context, name: str | None) -> None:
    """Recipes of engines and methods: what this host can run, and the exact commands."""
    if ctx.invoked_subcommand is None:
        if name:
            ctx.invoke(show, name=name)
        else:
            click.echo(ctx.get_help())


@recipes.command("list")
@path_option
@click.option("--markdown", is_flag=True, help="Print the table of docs/recipes.md, which is of no host.")
@json_option
def list_all(paths: tuple[str, ...], markdown: bool, as_json: bool) -> None:
    """List the recipes, and say which can run on this host and why not."""
    from bench.recipes.shipped import list_recipes, runnable
    from bench.recipes.text import docs_table
    from bench.tables import as_text

    if markdown:
        click.echo(docs_table(list_recipes()), nl=False)
        return
    given = _pairs(paths, list_recipes())
    rows = [(recipe, *runnable(recipe, given)) for recipe in list_recipes()]
    if as_json:
        click.echo(json.dumps([{**_facts(recipe), "runs": ok, "missing": why} for recipe, ok, why in rows], indent=1))
        return
    lines = [
        [r.name, r.engine.name, r.system.column or r.system.paper or "—", "yes" if ok else "no", why]
        for r, ok, why in rows
    ]
    click.echo(as_text([["recipe", "engine", "system", "runs here", "missing"], *lines]))


@recipes.command()
@click.argument("name")
@run_options
@json_option
def show(name: str, as_json: bool = False, **options: Any) -> None:
    """Print the commands of a recipe: the server's, and the run's with its configuration."""
    from bench.recipes.shipped import find_recipe
    from bench.recipes.text import command_text

    recipe = find_recipe(name)
    config = _config(recipe, options, unnamed="<{}>")
    if as_json:
        click.echo(json.dumps({"recipe": _facts(recipe), "config": config.model_dump(mode="json")}, indent=1))
    else:
        click.echo(command_text(recipe, config))


@recipes.command()
@click.argument("name")
@run_options
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The TOML file to write.")
def write(name: str, out: Path, **options: Any) -> None:
    """Write the configuration of a recipe's run, for `bench run`."""
    from bench.recipes.shipped import find_recipe, runnable
    from bench.recipes.text import as_toml
    from bench.results import RunFolder

    recipe = find_recipe(name)
    text = as_toml(_config(recipe, options, unnamed=""))
    out.parent.mkdir(parents=True, exist_ok=True)
    RunFolder(out.parent).write_text(out.name, text)
    runs, why = runnable(recipe, _pairs(options["paths"], [recipe]))
    click.echo(out)
    if not runs:
        click.echo(f"{name}: not on this host: {why}", err=True)


def _facts(recipe: Recipe) -> dict[str, Any]:
    return recipe.model_dump(mode="json", exclude_none=True)


def _pairs(paths: tuple[str, ...], recipes: Sequence[Recipe]) -> dict[str, str]:
    """Return NAME=PATH options as a table; a name that none of the recipes takes is refused."""
    known = ["model", "draft", "tokenizer", *sorted({name for recipe in recipes for name in recipe.engine.needs})]
    for pair in paths:
        name, equals, _ = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"need NAME=PATH, got {pair!r}", param_hint="--path")
        if name not in known:
            raise click.BadParameter(f"nothing is named {name!r}; names are {', '.join(known)}", param_hint="--path")
    return dict(pair.split("=", 1) for pair in paths)


def _config(recipe: Recipe, options: Mapping[str, Any], unnamed: str) -> BenchConfig:
    """Return the run; `unnamed` is what stands for a path that the user has not named, "" to refuse."""
    from bench.recipes.shipped import recipe_config

    paths = _pairs(options.get("paths", ()), [recipe])
    if unnamed:
        paths = {name: unnamed.format(name) for name in recipe.engine.needs} | paths
    return recipe_config(
        recipe,
        url_port=options.get("port", 8000),
        data=_data(options, paths),
        paths=paths,
        draft_length=options.get("draft_length"),
        engine_version=options.get("engine_version", ""),
    )


def _data(options: Mapping[str, Any], paths: Mapping[str, str]) -> DataConfig:
    from bench.config import DataConfig

    if not options.get("dist") and "checkout" in paths:
        return DataConfig(format="spec_bench", path=f"{paths['checkout']}/data/spec_bench/question.jsonl")
    return DataConfig(path=options.get("dist") or "<DIST>", config=options.get("rows_config", "qualitative"))
