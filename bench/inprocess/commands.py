"""The command line of the in-process engines. Standard library only."""

from __future__ import annotations

import argparse
import ast
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bench.inprocess.models import DTYPES
from bench.inprocess.protocol import Engine, SettingError
from bench.inprocess.server import InProcessServer

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Serve an engine, or run the GPU check, and return the exit status."""
    options = make_parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    try:
        if options.command == "gpu-check":
            from bench.inprocess.gpu_check import run_check

            return run_check(options)
        engine = make_transformers(options) if options.command == "transformers" else make_specbench(options)
        server = InProcessServer(engine, options.port)
    except (SettingError, OSError) as error:
        logger.error("%s", error)
        return 1
    logger.info("%s listens on %s", options.command, server.url)
    with suppress(KeyboardInterrupt):
        server.answer_forever()
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the three commands."""
    parser = argparse.ArgumentParser(prog="python -m bench.inprocess", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, add in (("transformers", _add_transformers), ("specbench", _add_specbench), ("gpu-check", _add_check)):
        add(commands.add_parser(name, allow_abbrev=False))
    return parser


def _add_device(command: argparse.ArgumentParser) -> None:
    command.add_argument("--device", default="", help="cpu, cuda, cuda:1, …; default: cuda where there is one")
    command.add_argument("--dtype", default="", choices=("", *DTYPES), help="default: float32 on a CPU, else bfloat16")


def _add_transformers(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=int, required=True)
    command.add_argument("--model", default="", help="folder of the target")
    command.add_argument("--draft", default="", help="folder of a draft model of the same tokenizer")
    command.add_argument("--draft-length", type=int, default=3, help="tokens that the draft model drafts a step")
    command.add_argument("--ngram", type=int, default=0, help="tokens drafted a step by looking up the prompt")
    command.add_argument("--ngram-size", type=int, default=3, help="longest n-gram that is looked up")
    command.add_argument("--random-init", default="", help="config.json of a target to initialise at random")
    command.add_argument("--draft-random-init", default="", help="the same for the draft model, with the next seed")
    command.add_argument("--seed", type=int, default=0, help="of the random initialisation")
    command.add_argument("--experts", action="store_true", help="count the choices of the routers: GET /experts")
    _add_device(command)


def _add_specbench(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=int, required=True)
    command.add_argument("--checkout", required=True, help="folder of the Spec-Bench checkout")
    command.add_argument("--method", required=True, help="module:function of the forward function")
    command.add_argument("--model", required=True, help="folder of the model, or what the loader takes")
    command.add_argument("--loader", default="", help="module:function that returns model and tokenizer")
    command.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help="of the forward function")
    command.add_argument("--load-arg", action="append", default=[], metavar="NAME=VALUE", help="of the loader")
    command.add_argument("--target", default="", help="module of the target below the model, or START:END")
    command.add_argument("--chain", action="store_true", help="the method drafts one path, not a tree")
    _add_device(command)


def _add_check(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", required=True, help="JSON file of the results")
    command.add_argument("--dist", default="", help="folder with throughput configs; default: random ids")
    command.add_argument("--tiny", action="store_true", help="models and prompts of a size for a CPU")
    command.add_argument("--limit-s", type=float, default=420.0, help="begin no cell after as many seconds")
    _add_device(command)


def _resolve_device(options: argparse.Namespace) -> tuple[str, str]:
    from bench.inprocess.device import default_device

    device = options.device or default_device()
    return device, options.dtype or ("float32" if device == "cpu" else "bfloat16")


def make_transformers(options: argparse.Namespace) -> Engine:
    """Return the engine of the `transformers` command."""
    from bench.inprocess.models import load_model, load_tokenizer, random_model
    from bench.inprocess.transformers_engine import Speculation, TransformersEngine

    _refuse_unclear(options)
    device, dtype = _resolve_device(options)

    def model(folder: str, config: str, seed: int) -> Any:
        return random_model(config, seed, dtype, device) if config else load_model(folder, dtype, device)

    target = model(options.model, options.random_init, options.seed)
    drafter = None
    if options.draft or options.draft_random_init:
        drafter = model(options.draft, options.draft_random_init, options.seed + 1)
    length = options.draft_length if drafter is not None else options.ngram
    return TransformersEngine(
        target,
        Speculation(drafter, length, options.ngram_size),
        tokenizer=load_tokenizer(options.model) if options.model else None,
        count_experts=options.experts,
        name=options.model or options.random_init,
    )


def _refuse_unclear(options: argparse.Namespace) -> None:
    if bool(options.model) == bool(options.random_init):
        raise SettingError("give one of --model and --random-init")
    drafts = [name for name in ("draft", "draft_random_init", "ngram") if getattr(options, name)]
    if len(drafts) > 1:
        raise SettingError("give at most one of --draft, --draft-random-init and --ngram")
    if options.draft_length < 1 or options.ngram < 0 or options.ngram_size < 1:
        raise SettingError("--draft-length and --ngram-size must be >= 1, --ngram >= 0")


def make_specbench(options: argparse.Namespace) -> Engine:
    """Return the engine of the `specbench` command."""
    from bench.inprocess.specbench import Method, SpecBenchEngine

    device, dtype = _resolve_device(options)
    method = Method(
        options.checkout,
        options.method,
        options.model,
        options.loader,
        parse_pairs(options.arg, "--arg"),
        parse_pairs(options.load_arg, "--load-arg"),
        options.target,
        options.chain,
    )
    return SpecBenchEngine(method, dtype, device)


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return ``NAME=VALUE`` pairs; a value is a Python literal where it reads as one, else text.

    Raises
    ------
    SettingError
        If a pair has no ``=``.
    """
    values = dict[str, Any]()
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name.isidentifier():
            raise SettingError(f"{option}: need NAME=VALUE, got {pair!r}")
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            values[name] = text
    return values
