"""`speedbench bench vocabulary`: what a pruned vocabulary would cost, from the token ids of any run."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--counts", default="", help="JSON of id to count, or .npy of counts by id, of the training text.")
@click.option("--corpus", default="", help="Text file, folder of text files, or .npy of ids, to be counted instead.")
@click.option("--top-k", default="16000,32000,64000", show_default=True, help="Sizes of the vocabulary, by commas.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def vocabulary(run: Path, counts: str, corpus: str, top_k: str, as_json: bool) -> None:
    """Say which share of RUN's output lies outside a training vocabulary, and the acceptance that it costs at most."""
    from bench.pruned import write_pruned
    from bench.sweeps.file import parse_vocabulary
    from bench.tables import as_text, shown

    rows = write_pruned(run, parse_vocabulary(counts, corpus, top_k))
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    lines = [["category", "top_k", "tokens", "outside", "acceptance_length", "pruned_length", "cost"]]
    for row in rows:
        values = [row["outside"]["value"], row["acceptance_length"], row["pruned_length"], row["cost"]]
        lines.append([row["category"], str(row["top_k"]), str(row["tokens"]), *map(shown, values)])
    click.echo(as_text(lines))
