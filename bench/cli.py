"""The commands `speedbench bench …`. Each parses, calls one function and prints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click

from bench.errors import BenchError, UnpublishedFigure
from bench.slices import SLICES

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
by_option = click.option("--by", type=click.Choice(SLICES), multiple=True, help="Add a table by this slice.")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


EXTRAS = {
    **dict.fromkeys(("aiohttp", "httptools", "orjson", "prometheus_client", "scipy", "tokenizers", "uvloop"), "bench"),
    **dict.fromkeys(("gguf", "xllamacpp"), "llamacpp"),
}
"""The extra that brings each package."""


# name: (module, the line that `bench --help` prints). Commands in files of their own, imported when they are called.
COMMANDS = {
    "demo": ("bench.commands.demo", "Measure a small model on llama.cpp and write the page; nothing is fetched."),
    "vocabulary": ("bench.commands.vocabulary", "Say what a pruned vocabulary would cost the drafter of a run."),
    "recipes": ("bench.commands.recipes", "Recipes of engines and methods: what runs here, and the exact commands."),
    "lossless": ("bench.commands.lossless", "Say whether speculation changed the outputs."),
    "sweep": ("bench.commands.sweep", "Run every point of a grid: a shipped experiment, or a file of your own."),
    "report": ("bench.commands.report", "Write one page of the figures of runs and sweeps."),
}


class BenchGroup(click.Group):
    """A group that loads its commands late, and says which extra to install where one of its packages is missing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; one of `COMMANDS` is the attribute of its module that has its name."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        known = {name: command.get_short_help_str(200) for name, command in self.commands.items()}
        known |= {name: text for name, (_, text) in COMMANDS.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(known.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the sub-command."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            raise BenchError(f"{error.name} is not installed; install speedbench[{EXTRAS[error.name]}]") from None


@click.group(cls=BenchGroup, context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Measure speculative decoding on an inference engine."""


@bench.command()
@click.argument("config", type=FILE)
def probe(config: Path) -> None:
    """Send one request and say what the server of CONFIG tells; it is started where CONFIG says how."""
    from bench.config import load_config
    from bench.probe import probe_server

    click.echo(json.dumps(probe_server(load_config(config)), indent=1))


@bench.command()
@click.argument("config", type=FILE)
@click.option("--out", type=FOLDER, required=True, help="Folder of the run; what it holds already is not sent again.")
@click.option("--retry-failed", is_flag=True, help="Send the conversations that failed once more.")
@click.option("--reference", type=FILE, help="Published lengths; shown by category if they are over the same rows.")
@by_option
@json_option
def run(
    config: Path, out: Path, retry_failed: bool, reference: Path | None, by: tuple[str, ...], as_json: bool
) -> None:
    """Send a split to an engine as CONFIG says, and print the figures."""
    from bench.config import load_config
    from bench.progress import shown_progress
    from bench.runner import run as run_once

    loaded = load_config(config)
    with shown_progress(loaded.name) as progress:
        summary = run_once(loaded, out, progress, retry_failed=retry_failed)
    _print_summary(summary, by, as_json, _reference(reference, out) if reference else None)
    if not as_json:
        _print_published(out, summary)


@bench.command()
@click.argument("first", type=FOLDER)
@click.argument("second", type=FOLDER)
@click.option("--allow", multiple=True, help="A setting that may differ, or a gate that may be shut.")
@click.option("--by", type=click.Choice(SLICES), default="category", show_default=True, help="Compare by this.")
@json_option
def compare(first: Path, second: Path, allow: tuple[str, ...], by: str, as_json: bool) -> None:
    """Compare two runs over the same conversations: SECOND against FIRST, the baseline."""
    from bench.comparison.compare import compare as compare_sides
    from bench.comparison.tables import comparison_rows
    from bench.finished import read_side
    from bench.tables import as_text

    result = compare_sides(read_side(first), read_side(second), allow=allow, by=by)
    click.echo(json.dumps(result, indent=1) if as_json else as_text(comparison_rows(result, by)))


@bench.command()
@click.option("--qualitative", type=FOLDER, required=True, help="A run over the qualitative split: acceptance.")
@click.option("--sweep", "sweep_folder", type=FOLDER, required=True, help="A sweep: step latencies.")
@click.option("--allow", multiple=True, help="A gate that may be shut.")
@json_option
def predict(qualitative: Path, sweep_folder: Path, allow: tuple[str, ...], as_json: bool) -> None:
    """Predict the speed-up by category, concurrency and input length, and the best draft length."""
    from bench.comparison.predict import PREDICTION_COLUMNS, predict_from

    _print_rows(predict_from(qualitative, sweep_folder, allow=allow), PREDICTION_COLUMNS, as_json)


@bench.command()
@click.argument("result", type=FOLDER)
@click.option("--against", type=FILE, help="The golden table.")
@click.option("--write", type=click.Path(dir_okay=False, path_type=Path), help="Write RESULT as a golden table.")
@json_option
def gate(result: Path, against: Path | None, write: Path | None, as_json: bool) -> None:
    """Hold RESULT against a golden table; exit status 1 if a category falls short."""
    from bench.comparison.golden import golden_from, judge, parse_golden
    from bench.finished import read_summary
    from bench.result_shape import described_config
    from bench.results import RUN, RunFolder

    if against is None and write is None:
        raise click.UsageError("give --against, or --write to make a golden table")
    folder = RunFolder(result)
    summary, described = read_summary(folder), folder.read_json(RUN)
    described_config(described, str(result / RUN))
    if write is not None:
        RunFolder(write.parent).write_json(write.name, golden_from(summary, described))
    if against is None:
        return
    rows = judge(summary, described, parse_golden(against.read_bytes(), str(against)))
    _print_rows(rows, ("category", "value", "least", "n", "n_golden", "holds"), as_json)
    short = [row["category"] for row in rows if not row["holds"]]
    if short:
        raise BenchError(f"{result}: below {against} in {', '.join(short)}")


@bench.command()
@click.option("--dialect", default="vllm", show_default=True, help="Engine whose wire format is spoken.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, show_default=True, help="0 takes a free one, which is printed.")
@click.option("--acceptance-rates", default="0.8,0.7,0.6", show_default=True, help="AR_1..AR_k; empty: no speculation.")
@click.option("--tokens", default="20,60", show_default=True, help="Least and most tokens of an answer.")
@click.option("--step-s", default=0.01, show_default=True, help="Seconds of a verify step.")
@click.option("--step-s-per-stream", default=0.0, show_default=True, help="Seconds that each active stream adds to it.")
@click.option("--prefill-s", default=0.0, show_default=True, help="Seconds before the first token.")
@click.option("--prompt-spread", default=0.0, show_default=True, help="Of a prompt's own rates, on the logit scale.")
@click.option("--plain-share", default=0.0, show_default=True, help="Share of steps without a draft.")
@click.option("--failed-share", default=0.0, show_default=True, help="Share of requests that fail.")
@click.option("--merged-share", default=0.0, show_default=True, help="Share of chunks sent with the next.")
@click.option("--fail-after", default=0, show_default=True, help="Requests after which every one is refused; 0: never.")
@click.option("--ranks", default=1, show_default=True, help="Data-parallel ranks in the counters.")
@click.option("--seed", default=0, show_default=True, help="Of the acceptance process.")
@click.option("--stamped", is_flag=True, help="Put the server's clock into each chunk.")
@click.option("--tokenizer", type=FOLDER, help="Write the simulator's tokenizer into this folder.")
def simulate(host: str, port: int, tokenizer: Path | None, **options: Any) -> None:
    """Serve a loopback engine with a known acceptance process, until interrupted."""
    from bench.simulator.options import simulation_from
    from bench.simulator.server import run_loop, serve
    from bench.simulator.vocabulary import write_tokenizer

    if tokenizer is not None:
        write_tokenizer(tokenizer)
    run_loop()(serve(simulation_from(options), host, port, click.echo))


@bench.command()
@click.option("--streams", default="64,512,2048,4096", show_default=True, help="Numbers of streams, by commas.")
@click.option(
    "--transport", type=click.Choice(["lean", "aiohttp"]), default="lean", show_default=True, help="How bytes are read."
)
@click.option("--seconds", default=5.0, show_default=True, help="Of streaming, at each number of streams.")
@json_option
def calibrate(streams: str, transport: str, seconds: float, as_json: bool) -> None:
    """Measure this client on this host against the simulator."""
    from bench.calibrate import CALIBRATION_COLUMNS, calibrate_client

    counts = [int(count) for count in streams.split(",")]
    _print_rows(calibrate_client(counts, transport, seconds), CALIBRATION_COLUMNS, as_json)


def _reference(path: Path, out: Path) -> dict[str, float] | None:
    from bench.comparison.golden import parse_reference, reference_lengths
    from bench.results import RUN, RunFolder

    lengths = reference_lengths(parse_reference(path.read_bytes(), str(path)), RunFolder(out).read_json(RUN))
    if lengths is None:
        click.echo(f"{path}: over other rows than this run, so it is not shown", err=True)
    return lengths


def _print_summary(
    summary: Mapping[str, Any], by: tuple[str, ...], as_json: bool, reference: dict[str, float] | None
) -> None:
    """Print the tables of a published run; a run that is held back prints its gates and counts only."""
    from bench.tables import as_text, marked, overall_rows, position_rows, shown, slice_rows

    if as_json:
        click.echo(json.dumps(summary, indent=1))
    click.echo(f"# {marked(summary['name'], summary)}", err=True)
    counts = summary["overall"]["counts"]
    told = {key: counts[key] for key in ("conversations", "complete", "requests", "succeeded", "failed")}
    click.echo("; ".join(f"{key} {shown(value)}" for key, value in told.items()), err=True)
    for name, (sent, there) in summary["shortfall"].items():
        click.echo(f"{name}: {sent} of {there} rows", err=True)
    if not summary["published"]:
        shut = "; ".join(f"{gate['name']} ({gate['detail']})" for gate in summary["gates"])
        raise UnpublishedFigure(f"{summary['name']}: no figure is published: {shut}{_remedy(summary['gates'])}")
    if not as_json:
        click.echo(as_text(overall_rows(summary)))
        click.echo("\n" + as_text(position_rows(summary)))
        for slice_name in by:
            shown_reference = reference if slice_name == "category" else None
            click.echo("\n" + as_text(slice_rows(summary, slice_name, shown_reference)))


def _print_published(out: Path, summary: Mapping[str, Any]) -> None:
    """Print what others published of the run's recipe, if anything, beside the run's own."""
    from bench.recipes.published import published_rows
    from bench.results import RUN, RunFolder
    from bench.tables import as_text

    rows = published_rows(RunFolder(out).read_json(RUN), summary)
    if len(rows) > 1:
        click.echo("\n" + as_text(rows))


def _remedy(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return how a run may be shown in spite of its gates, "" where one of them cannot be allowed."""
    from bench.config import AllowedGate

    names = [gate["name"] for gate in gates]
    if not set(names) <= set(get_args(AllowedGate)):
        return ""
    return f"; mend it, or set limits.allow = {json.dumps(names)} and run again: nothing is sent twice"


def _print_rows(rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool) -> None:
    from bench.tables import as_text, shown

    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        click.echo(as_text([list(columns), *([shown(row.get(column)) for column in columns] for row in rows)]))
