"""`speedbench build` and `speedbench diversity`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sources.tables import json_option

if TYPE_CHECKING:
    from sources.origins import Origin

PARTS = ("qualitative", "throughput")


@click.command()
@click.argument("recipe")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the build.")
@click.option("--only", type=click.Choice(PARTS), help="Build one of the two splits.")
@click.option("--mirror", type=click.Path(path_type=Path), help="Read the sources from a local mirror.")
@click.option("--samples", is_flag=True, help="Read the project's own samples of each source.")
@click.option("--allow-short", is_flag=True, help="Go on where files or candidates are missing, and say so.")
@click.option("--workers", type=click.IntRange(min=1), default=None, help="Processes; by default one a core.")
@click.option("--estimate", is_flag=True, help="Print candidates, tokens and cost of embedding, and stop.")
def build(
    recipe: str,
    out: Path,
    only: str | None,
    mirror: Path | None,
    samples: bool,
    allow_short: bool,
    workers: int | None,
    estimate: bool,
) -> None:
    """Build the splits of RECIPE (v1, v1-offline, demo, or a path) into --out."""
    from curation.options import Options
    from curation.pipeline import build_splits
    from curation.qualitative import estimate_qualitative
    from curation.recipe import load_recipe

    chosen = load_recipe(recipe)
    with origin_of(mirror, samples=samples) as origin:
        options = Options(origin, parts=(only,) if only else PARTS, allow_short=allow_short, workers=workers)
        if estimate:
            click.echo(json.dumps(asdict(estimate_qualitative(chosen, options))))
            return
        build_splits(chosen, out, options)
    click.echo(str(out / "dist"))


@contextmanager
def origin_of(mirror: Path | None, *, samples: bool) -> Iterator[Origin]:
    """Yield where records come from: a mirror, the samples, or else the Hub, with bars while it downloads."""
    from sources.fetch import HubOrigin
    from sources.origins import MirrorOrigin, SamplesOrigin
    from sources.progress import download_bars

    if mirror is not None and samples:
        raise click.UsageError("--mirror and --samples exclude each other")
    if mirror is not None:
        yield MirrorOrigin(mirror)
    elif samples:
        yield SamplesOrigin()
    else:
        with download_bars() as bars:
            yield HubOrigin(progress=bars)


@click.command()
@click.argument("dist")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Write the comparison as a picture.")
@json_option
@click.option("--allow-partial", is_flag=True, help="Leave placeholder rows out, and say how many.")
def diversity(dist: str, plot: Path | None, as_json: bool, allow_partial: bool) -> None:
    """Compare the qualitative split of DIST with Spec-Bench, random choice, greedy choice and the bound."""
    from curation.diversity_input import measure_diversity
    from curation.diversity_report import as_document, as_text, write_plot

    report = measure_diversity(dist, allow_partial=allow_partial)
    if plot is not None:
        write_plot(report, plot)
        click.echo(f"plot: {plot}", err=True)
    click.echo(json.dumps(as_document(report), ensure_ascii=False) if as_json else as_text(report))
