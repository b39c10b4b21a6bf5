"""`speedbench bench sweep`: a shipped experiment, or a grid of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bench.errors import ConfigError, UnpublishedFigure


@click.command()
@click.argument("experiment", required=False)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder; finished points are kept.")
@click.option("--data", default="", help="DIST, or JSONL file, whose rows are sent.")
@click.option("--config", "configs", multiple=True, help="Config of the DIST, instead of the file's; may be repeated.")
@click.option("--recipe", "recipes", multiple=True, help="NAME or NAME=DRAFT_LENGTH, instead of the file's servers.")
@click.option("--path", "paths", multiple=True, help="KEY=PATH that the commands of those recipes name.")
@click.option("--list", "listed", is_flag=True, help="List the shipped experiments.")
@click.option("--print", "printed", is_flag=True, help="Print the file of EXPERIMENT, to be changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def sweep(
    experiment: str | None,
    out: Path | None,
    data: str,
    configs: tuple[str, ...],
    recipes: tuple[str, ...],
    paths: tuple[str, ...],
    listed: bool,
    printed: bool,
    as_json: bool,
) -> None:
    """Run every point of EXPERIMENT's grid: a shipped experiment's name, or the path of a TOML file."""
    from bench.progress import shown_progress
    from bench.sweeps.file import experiment_titles, load_sweep, sweep_text
    from bench.sweeps.rows import POINT_COLUMNS
    from bench.sweeps.run import run_sweep
    from bench.sweeps.samples import with_samples
    from bench.tables import as_text, shown

    if listed:
        click.echo(
            json.dumps(experiment_titles()) if as_json else as_text(list(map(list, experiment_titles().items())))
        )
        return
    if experiment is None:
        raise click.UsageError("give the name of an experiment (--list shows them) or the path of a TOML file")
    if printed:
        click.echo(sweep_text(experiment), nl=False)
        return
    if out is None:
        raise click.UsageError("give --out, the folder of the sweep")
    loaded = with_samples(load_sweep(experiment, data=data, configs=configs, recipes=recipes, paths=_pairs(paths)))
    with shown_progress(loaded.name) as progress:
        points = run_sweep(loaded, out, progress)
    if as_json:
        click.echo(json.dumps(points, indent=1))
    else:
        click.echo(as_text([list(POINT_COLUMNS), *([shown(row[name]) for name in POINT_COLUMNS] for row in points)]))
    held = [point["point"] for point in points if not point["published"]]
    if held:
        raise UnpublishedFigure(f"{out}: {len(held)} of {len(points)} points are held back: {', '.join(held)}")


def _pairs(paths: tuple[str, ...]) -> dict[str, str]:
    pairs = dict[str, str]()
    for text in paths:
        key, given, value = text.partition("=")
        if not given:
            raise ConfigError(f"--path {text}: give KEY=PATH")
        pairs[key] = value
    return pairs
