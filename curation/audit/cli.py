"""`speedbench audit`: run, merge, self."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from curation.audit.results import Results

CLASS_NAMES = ("exact", "format", "near", "number_variant", "partial", "common_text", "ngram", "semantic")
RULE_NAMES = ("adaptive", "open-r1", "datatrove", "lm-eval")
CLEANED = "exact,format,near"

folder = click.Path(path_type=Path, file_okay=False)
out_option = click.option("--out", required=True, type=folder, help="Folder of the results.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON in place of the table.")
clean_option = click.option("--clean", type=folder, help="Write the corpus without the matched documents here.")
fail_option = click.option(
    "--fail-on", multiple=True, type=click.Choice(CLASS_NAMES), help="Exit with 3 if a pair of this class is found."
)


def _classes(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    for name in names:
        if name not in CLASS_NAMES:
            raise click.BadParameter(f"{name!r} is none of {', '.join(CLASS_NAMES)}")
    return names


def _shard(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, int]:
    i, _slash, n = value.partition("/")
    if not (i.isdecimal() and n.isdecimal() and int(i) < int(n)):
        raise click.BadParameter(f"{value!r} is not I/N with I from 0 to N - 1")
    return int(i), int(n)


classes_option = click.option(
    "--classes", default=CLEANED, show_default=True, callback=_classes, help="What --clean removes, comma-separated."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def audit() -> None:
    """Look for the benchmark's prompts in a training corpus."""


@audit.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option("--benchmark", required=True, help="Folder of a DIST, or ORG/NAME@REV on the Hub.")
@out_option
@click.option("--text", multiple=True, help="Dotted path of the text in a row; found by name if not given.")
@click.option("--rule", type=click.Choice(RULE_NAMES), default="adaptive", help="How pairs are judged.")
@click.option("--shard", default="0/1", callback=_shard, help="I/N: run every N-th unit from I on (I from 0).")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; by default one a core.")
@click.option("--on", "engine", type=click.Choice(["local", "ray"]), default="local", help="Where units run.")
@click.option("--address", help="Of the Ray cluster; by default the one that RAY_ADDRESS or this machine names.")
@click.option("--kernel", type=click.Choice(["auto", "numpy", "numba"]), default="auto", help="How text is scanned.")
@click.option("--semantic", is_flag=True, help="Also list texts alike by an embedding, as candidates.")
@click.option("--embedder", default="v1-offline", show_default=True, help="Recipe that names the embedder.")
@click.option("--clean-text", help="Text known to be clean, from which --semantic takes its thresholds.")
@click.option("--uncalibrated", is_flag=True, help="Let --semantic run without --clean-text.")
@clean_option
@classes_option
@fail_option
@json_option
def run(**options: Any) -> None:
    """Look for the prompts of --benchmark in CORPUS: files, folders, globs or addresses."""
    as_json, fail_on = options.pop("as_json"), options.pop("fail_on")
    with _cycles_seldom_sought():
        from curation.audit.session import Request, run_audit

        request = Request(**options)
        results = run_audit(request)
    if results is None:
        i, n = request.shard
        click.echo(f"shard {i}/{n} is done; when all are: speedbench audit merge {request.out} --out DIR", err=True)
        return
    _show(results, as_json=as_json, fail_on=fail_on)


@audit.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, file_okay=False, exists=True))
@out_option
@clean_option
@classes_option
@fail_option
@json_option
def merge(
    folders: tuple[Path, ...],
    out: Path,
    clean: Path | None,
    classes: tuple[str, ...],
    fail_on: tuple[str, ...],
    as_json: bool,
) -> None:
    """Put the shards of one audit together: the same bytes as one run over all."""
    from curation.audit.session import merge_audit

    _show(merge_audit(folders, out, clean, classes), as_json=as_json, fail_on=fail_on)


@audit.command(name="self")
@click.argument("dist")
@click.option("--json", "as_json", is_flag=True, help="Print every pair as JSON.")
def self_(dist: str, as_json: bool) -> None:
    """Look for rows of DIST that hold the same prompt."""
    from curation.audit.self_check import as_document, as_text, check_self

    result = check_self(dist)
    click.echo(json.dumps(as_document(result), ensure_ascii=False, indent=2) if as_json else as_text(result))
    if result.faults:
        sys.exit(1)


@contextmanager
def _cycles_seldom_sought() -> Iterator[None]:
    """Let Python look for cycles of objects a hundred times less often: an audit makes many objects and no cycles."""
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _show(results: Results, *, as_json: bool, fail_on: tuple[str, ...]) -> None:
    summary = results.summary
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False, indent=2, sort_keys=True))
    else:
        click.echo("class\tpairs\tdocuments\tprompts")
        for name, extent in summary["by_class"].items():
            click.echo(f"{name}\t{extent['pairs']}\t{extent['documents']}\t{extent['prompts']}")
    if any(summary["by_class"][name]["pairs"] for name in fail_on):
        sys.exit(3)
