"""`speedbench release`."""

from __future__ import annotations

import click

from sources.tables import json_option


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("dist")
@click.option("--repo", required=True, metavar="ORG/NAME", help="Dataset repository; made if it is not there.")
@click.option("--version", required=True, metavar="X.Y.Z", help="Version of the release; its tag is vX.Y.Z.")
@click.option("--dry-run", is_flag=True, help="Print what stands in the way, or what would change; push nothing.")
@click.option(
    "--before-build",
    metavar="RECIPE",
    help="Check what a build of RECIPE and its push will need, and stop; no DIST yet.",
)
@json_option
def release(dist: str, repo: str, version: str, dry_run: bool, before_build: str | None, as_json: bool) -> None:
    """Verify DIST and push it to the Hub as one commit with one tag; running it again goes on where it stopped."""
    from curation.release.flow import check_before_build, dry_run_rows, release_dist
    from sources.tables import print_rows

    if before_build is not None:
        check_before_build(before_build, repo, version)
    elif dry_run:
        print_rows(dry_run_rows(dist, repo, version), as_json=as_json)
    else:
        pushed = release_dist(dist, repo, version)
        print_rows([{"repo": repo, "tag": pushed.tag, "revision": pushed.revision}], as_json=as_json)
