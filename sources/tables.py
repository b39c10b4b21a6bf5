"""Rows printed to stdout, for a person or as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the table.")
"""Of every command that prints a table."""


def print_rows(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows of the same columns as JSON or as a table."""
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    elif rows:
        _print_table(rows)


def _print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    # Folded to the width of a terminal; in a pipe a row stays on one line, however long.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=100_000)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(value)) for value in row.values()))
    console.print(table)
