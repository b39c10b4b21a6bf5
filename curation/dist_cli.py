"""`speedbench fill`, `export` and `diff`: what users of a published DIST call."""

from __future__ import annotations

import json

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


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
