"""`python -m bench.embedded`: serve a GGUF by llama.cpp, plain or with speculation, until ended."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import click

from bench.embedded.options import EmbeddedOptions
from bench.embedded.server import start
from bench.errors import BenchError

GGUF = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--port", type=click.IntRange(0, 65535), required=True, help="On the loopback; 0 takes a free one.")
@click.option("--model", type=GGUF, required=True, help="The target, a GGUF file.")
@click.option("--draft", type=GGUF, help="The drafter, a GGUF file of the same vocabulary.")
@click.option("--draft-length", type=COUNT, default=3, show_default=True, help="Tokens of a draft by --draft.")
@click.option("--ngram", type=click.IntRange(min=0), default=0, help="Tokens of a draft that repeats earlier text.")
@click.option("--ngram-match", type=COUNT, default=3, show_default=True, help="Tokens to find again for --ngram.")
@click.option("--parallel", type=COUNT, default=1, show_default=True, help="Requests that are decoded at once.")
@click.option("--ctx", "context", type=COUNT, default=8192, show_default=True, help="Positions of one request.")
@click.option("--threads", type=COUNT, default=1, show_default=True, help="Threads of a forward.")
@click.option("--probabilistic", is_flag=True, help="Sample the drafts, as speculative sampling does.")
def main(**values: Any) -> None:
    """Serve a model by llama.cpp (package xllamacpp) for `speedbench bench`, dialect llamacpp."""
    try:
        server, url = start(EmbeddedOptions(**values))
    except BenchError as error:
        click.echo(f"bench.embedded: {error}", err=True)
        sys.exit(1)
    click.echo(f"listening on {url}", err=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        del server


if __name__ == "__main__":
    main()
