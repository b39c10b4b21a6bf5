"""The `speedbench` command: a table of sub-commands, each loaded when it is called."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Any

import click

from sources.errors import Refusal

logger = logging.getLogger(__name__)

# name: (module:attribute, the line that `speedbench --help` prints). Written out, so that help needs no import.
COMMANDS = {
    "sources": ("sources.cli:sources", "List the sources, check access to them, pin what is not pinned yet."),
    "pull": ("sources.cli:pull", "Fetch the pinned files into the cache, verified and resumable."),
    "build": ("curation.cli:build", "Build the splits of a recipe."),
    "diversity": ("curation.cli:diversity", "Compare the diversity of a build with Spec-Bench and random choice."),
    "fill": ("curation.dist_cli:fill", "Put the text of placeholder rows in place, verified row by row."),
    "verify": ("curation.verify.cli:verify", "Check that a DIST is all that a release must be."),
    "release": ("curation.release.cli:release", "Push a verified DIST to the Hub: one commit, one tag."),
    "export": ("curation.dist_cli:export", "Write the prompts in the form that other tools read."),
    "diff": ("curation.dist_cli:diff", "Say what differs between two releases, and the version step that follows."),
    "explore": ("curation.dist_cli:explore", "Write one page on which the rows can be read and judged."),
    "audit": ("curation.audit.cli:audit", "Look for the benchmark's prompts in a training corpus."),
    "bench": ("bench.cli:bench", "Measure speculative decoding on an inference engine."),
}


class LazyGroup(click.Group):
    """A group whose sub-commands are imported only when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one sub-command."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a sub-command; Ctrl-C ends it with one line and the exit status that shells give it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # here, as click would turn it into an `Aborted!` with exit status 1
            click.echo("speedbench: interrupted; what was finished is kept", err=True)
            ctx.exit(130)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of sub-commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", count=True, help="Say more on stderr; twice for debugging.")
@click.option("-q", "--quiet", is_flag=True, help="Say only what went wrong.")
@click.version_option(package_name="speedbench")
def cli(verbose: int, quiet: bool) -> None:
    """Curate, check, publish and measure a benchmark for speculative decoding."""
    level = logging.WARNING if quiet else (logging.INFO if verbose < 2 else logging.DEBUG)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    for package in ("sources", "cards", "curation", "bench", "speedbench"):
        logging.getLogger(package).setLevel(level)


def main() -> None:
    """Run the command; a `Refusal`, or what the system refuses, becomes one line on stderr and exit status 1."""
    try:
        cli(prog_name="speedbench")
    except Refusal as refusal:
        click.echo(f"speedbench: {refusal}", err=True)
        sys.exit(1)
    except OSError as error:  # no disk left, no permission, a file in the place of a folder: nothing of ours to mend
        where = f"{error.filename}: " if error.filename else ""
        why = error.strerror or (str(error).splitlines() or [type(error).__name__])[0]
        click.echo(f"speedbench: {where}{why}; check the path, its permissions and the space that is left", err=True)
        logger.debug("the system refused", exc_info=error)
        sys.exit(1)
