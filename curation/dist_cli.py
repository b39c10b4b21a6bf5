"""`speedbench fill`, `export` and `diff`: what users of a published DIST call."""

from __future__ import annotations

import json
from pathlib import Path

import click

partial_option = click.option(
    "--allow-partial", is_flag=True, help="Go on without the rows that have no text, and say how many."
)
out_option = click.option(
    "--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="A new folder for the result."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


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
