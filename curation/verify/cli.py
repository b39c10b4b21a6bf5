"""`speedbench verify`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from sources.tables import json_option


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("dist")
@click.option("--local", "is_local", is_flag=True, help="Let a build of a mirror or of samples pass.")
@json_option
def verify(dist: str, is_local: bool, as_json: bool) -> None:
    """Check that DIST is all that a release must be; every fault in one pass, each with file and row."""
    from curation.errors import DistError
    from curation.verify.registry import verify_dist
    from sources.tables import print_rows

    found = verify_dist(dist, is_local=is_local)
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False, indent=2))
    else:
        print_rows([asdict(fault) for fault in found.faults], as_json=False)
    for name, reason in found.left_out:
        click.echo(f"not checked: {name}: {reason}", err=True)
    if found.faults:
        count = f"{len(found.faults)} fault{'s' if len(found.faults) > 1 else ''}"
        raise DistError(f"{dist}: {count}; each line names the file, the row and the remedy")
    click.echo(f"{dist}: good ({', '.join(found.made)})", err=True)
