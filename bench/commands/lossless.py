"""The command `speedbench bench lossless`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

PATH = click.Path(exists=True, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("plain", type=PATH)
@click.argument("speculative", type=PATH)
@click.option("--sampled", nargs=2, type=FOLDER, help="Two further runs, sampled where the first two are greedy.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder of the runs of two CONFIG files.")
@click.option("--samples", default=2_000, show_default=True, help="Requests of each sampled run; 0: greedy only.")
@click.option("--prompts", default=2, show_default=True, help="Rows that these are copies of.")
@click.option("--alpha", default=0.001, show_default=True, help="False alarm rate of the test of sampled outputs.")
@click.option(
    "--fail-on", multiple=True, type=click.Choice(["differs", "not-shown"]), help="Exit with 3 if this is the verdict."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def lossless(
    plain: Path,
    speculative: Path,
    sampled: tuple[Path, Path] | None,
    out: Path | None,
    fail_on: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Say whether speculation changed the outputs: token by token when greedy, in distribution when sampled.

    PLAIN and SPECULATIVE are the folders of two finished runs over the same prompts, or two CONFIG files, which are
    then run into --out. The verdict (equal, differs, not shown) is written to lossless.json in the speculative folder.
    """
    verdict = _verdict(plain, speculative, sampled or None, out, options)
    if as_json:
        click.echo(json.dumps(verdict, indent=1, ensure_ascii=False))
    else:
        from bench.lossless.tables import difference_rows, verdict_rows
        from bench.tables import as_text

        click.echo(as_text(verdict_rows(verdict)))
        rows = difference_rows(verdict)
        if len(rows) > 1:
            click.echo("\n" + as_text(rows))
    if verdict["verdict"].replace(" ", "-") in fail_on:
        sys.exit(3)


def _verdict(
    plain: Path, speculative: Path, sampled: tuple[Path, Path] | None, out: Path | None, options: dict[str, Any]
) -> dict[str, Any]:
    from bench.config import load_config
    from bench.lossless.paired_runs import run_and_judge
    from bench.lossless.runs import judge_runs
    from bench.progress import shown_progress

    if not 0 < options["alpha"] < 1:
        raise click.UsageError(f"--alpha must be in (0, 1), got {options['alpha']}")
    if options["samples"] < 0 or options["prompts"] < 1:
        raise click.UsageError("--samples must be at least 0, --prompts at least 1")
    if plain.is_dir() and speculative.is_dir():
        if out is not None:
            raise click.UsageError("--out is for two CONFIG files; folders of runs get the verdict themselves")
        return judge_runs(plain, speculative, sampled, alpha=options["alpha"])
    if plain.is_dir() or speculative.is_dir():
        raise click.UsageError("give two folders of finished runs, or two CONFIG files")
    if out is None or sampled:
        raise click.UsageError("two CONFIG files need --out and no --sampled: both parts are run")
    return run_and_judge(load_config(plain), load_config(speculative), out, shown_progress, **options)
