"""`speedbench fill`, `export`, `diff` and `explore`: what users and reviewers of a DIST call."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sources.tables import json_option

partial_option = click.option(
    "--allow-partial", is_flag=True, help="Go on without the rows that have no text, and say how many."
)
out_option = click.option(
    "--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="A new folder for the result."
)


@click.command()
@click.argument("dist")
@out_option
@click.option("--mirror", type=click.Path(path_type=Path), help="Read the sources from a local mirror.")
@click.option("--samples", is_flag=True, help="Read the project's own samples of each source.")
@click.option("--recipe", default="", help="The recipe that built DIST, where its manifest is not beside it.")
@partial_option
@json_option
def fill(
    dist: str, out: Path, mirror: Path | None, samples: bool, recipe: str, allow_partial: bool, as_json: bool
) -> None:
    """Write a copy of DIST with the text of its placeholder rows in place, each checked against its digest.

    Rows are found by their src_id at the revision that they name. What cannot be filled is listed, and then nothing is
    written, or with --allow-partial the rest. DIST may be nvidia/SPEED-Bench@REVISION; its rows have no digest.
    """
    from curation.cli import origin_of
    from curation.errors import DistError
    from curation.fill.fill import fill_dist
    from curation.recipe import load_recipe
    from sources.tables import print_rows

    with origin_of(mirror, samples=samples) as origin:
        report = fill_dist(
            dist, out, origin, recipe=load_recipe(recipe) if recipe else None, allow_partial=allow_partial
        )
    print_rows([problem.as_row() for problem in report.problems], as_json=as_json)
    if not report.written:
        raise DistError(f"{dist}: {report.summary}; nothing was written, --allow-partial writes the rest")
    click.echo(f"{out}: {report.summary}", err=True)


@click.command()
@click.argument("dist")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["messages", "turns"]),
    default="messages",
    show_default=True,
    help="messages: for vLLM's speed_bench and aiperf; turns: for SGLang's speed_bench and vLLM's spec_bench.",
)
@click.option("--config", "configs", multiple=True, help="Only this config; may be given more than once.")
@out_option
@partial_option
@json_option
def export(dist: str, shape: str, configs: tuple[str, ...], out: Path, allow_partial: bool, as_json: bool) -> None:
    """Write the prompts of DIST as JSON lines, one file a config, in the form that other tools read."""
    from dataclasses import asdict

    from curation.export import export_dist
    from sources.tables import print_rows

    written = export_dist(dist, out, shape=shape, configs=configs, allow_partial=allow_partial)
    print_rows([asdict(config) for config in written], as_json=as_json)


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--version", default="", help="Head the changelog entry with this version.")
@json_option
def diff(old: str, new: str, version: str, as_json: bool) -> None:
    """Say what differs between OLD and NEW: rows, the version step that follows, and the changelog entry.

    Both are folders or ORG/NAME@REVISION. Rows or their text: minor at least; ids or columns: major.
    """
    from curation.diff import diff_dists
    from curation.diff_report import as_document, summary_rows
    from sources.tables import print_rows

    found = diff_dists(old, new)
    entry = found.changelog_entry(version or "Unreleased")
    if as_json:
        click.echo(json.dumps({**as_document(found), "changelog": entry}, ensure_ascii=False))
        return
    print_rows(summary_rows(found), as_json=False)
    click.echo(f"\nstep: {found.step}\n\n{entry}", nl=False)


@click.command()
@click.argument("dist")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The page, an HTML file.")
@json_option
def explore(dist: str, out: Path, as_json: bool) -> None:
    """Write one page to read and judge the rows of DIST: filters, search, neighbours, what was dropped, pictures.

    The page needs no other file and no network. Of a build (OUT/dist or OUT/full) it shows the pool and the ledger
    too.
    """
    from dataclasses import asdict

    from curation.explore import explore_dist

    explored = explore_dist(dist, out)
    for note in explored.notes:
        click.echo(note, err=True)
    click.echo(f"{explored.num_rows:,} rows, {explored.num_bytes / 1e6:,.1f} MB", err=True)
    click.echo(json.dumps({"page": str(out), **asdict(explored)}) if as_json else str(out))
