"""The command `speedbench bench report`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(file_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The page to write.")
def report(results: tuple[Path, ...], out: Path) -> None:
    """Write one page of RESULTS: folders of runs or of sweeps; two runs or more are compared."""
    from bench.report.page import write_report

    write_report(results, out)
    click.echo(out)
