"""Two configurations of one engine, with and without speculation, run greedy and sampled for the lossless check."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from bench.config import BenchConfig, DataConfig
from bench.errors import ConfigError
from bench.lossless.greedy import Gaps, compare_greedy
from bench.lossless.near_ties import ask_gaps
from bench.lossless.runs import judge_runs, read_run
from bench.lossless.sampled import ALPHA
from bench.results import LOSSLESS, RunFolder
from bench.runner import Progress, run
from bench.server import running_server
from bench.split import Conversation, load_split

SAMPLES = 2_000
PROMPTS = 2

ShownProgress = Callable[[str], AbstractContextManager[Progress]]


def run_and_judge(
    plain: BenchConfig,
    speculative: BenchConfig,
    out: Path,
    shown: ShownProgress,
    *,
    samples: int = SAMPLES,
    prompts: int = PROMPTS,
    alpha: float = ALPHA,
) -> dict[str, Any]:
    """Run two configurations greedy over their rows and sampled over a few of them, and return the verdict.

    Parameters
    ----------
    out
        Folder of the four runs, of the logs and of the verdict; what it holds already is not sent again.
    samples
        Requests of each sampled run; 0 leaves that part out.
    prompts
        Rows that these are copies of, evenly spaced over the split.

    Raises
    ------
    BenchError
        If a run cannot start, or both configurations speak to one server that neither of them starts.
    """
    engines = (plain.engine, speculative.engine)
    if all(engine.serve is None for engine in engines) and engines[0].url == engines[1].url:
        raise ConfigError(f"engine.url: both configurations speak to {engines[0].url}, which can be started one way")
    out.mkdir(parents=True, exist_ok=True)
    copies = write_copies(plain.data, samples, prompts, out / "sampled.jsonl") if samples else None
    # Long enough that no engine shortens the first draft, and the same for both.
    max_tokens = max(engine.draft_length or 0 for engine in engines) + 3
    with served(speculative, out / "speculative.log") as there:
        run_parts(there, out / "speculative", shown, copies=copies, max_sampled_tokens=max_tokens)
    with served(plain, out / "plain.log") as there:
        run_parts(there, out / "plain", shown, copies=copies, max_sampled_tokens=max_tokens)
        gaps = _gaps(there, out / "plain-greedy", out / "speculative-greedy")
    pair = (out / "plain-sampled", out / "speculative-sampled") if copies else None
    verdict = judge_runs(out / "plain-greedy", out / "speculative-greedy", pair, alpha=alpha, gaps=gaps)
    RunFolder(out).write_json(LOSSLESS, verdict)
    return verdict


def _gaps(plain: BenchConfig, first: Path, second: Path) -> Gaps:
    """Return how close the tokens were where the outputs part, asked of the plain server while it runs."""
    before, after = read_run(first), read_run(second)
    found = compare_greedy(before.requests, after.requests)
    return ask_gaps(plain, found["differences"], before.requests, RunFolder(first).prompts())


@contextmanager
def served(config: BenchConfig, log: Path) -> Generator[BenchConfig]:
    """Run the server of a configuration, and yield the configuration that speaks to it as it is.

    How the server was started stays in its `engine.flags`.
    """
    serve = config.engine.serve
    flags = config.engine.flags if serve is None else serve.command
    with running_server(serve, config.engine.url, log):
        engine = config.engine.model_copy(update={"serve": None, "flags": flags})
        yield config.model_copy(update={"engine": engine})


def run_parts(
    config: BenchConfig, out: Path, shown: ShownProgress, *, copies: DataConfig | None, max_sampled_tokens: int
) -> None:
    """Send a server the greedy part and the sampled one.

    Parameters
    ----------
    out
        Path that the names of the two folders begin with: `OUT-greedy`, `OUT-sampled`.
    copies
        Rows of the sampled part; None leaves it out.
    max_sampled_tokens
        Length of a sampled answer.
    """
    sampling = config.sampling
    with shown(f"{out.name}, greedy") as progress:
        greedy = config.model_copy(update={"sampling": sampling.model_copy(update={"temperature": 0.0})})
        run(greedy, out.with_name(f"{out.name}-greedy"), progress)
    if copies is None:
        return
    drawn = {"temperature": sampling.temperature or 1.0, "max_tokens": max_sampled_tokens, "ignore_eos": False}
    sections = {
        "data": copies,
        "sampling": sampling.model_copy(update=drawn),
        "load": config.load.model_copy(update={"repeats": 1}),
    }
    with shown(f"{out.name}, sampled") as progress:
        run(config.model_copy(update=sections), out.with_name(f"{out.name}-sampled"), progress)


def write_copies(data: DataConfig, samples: int, prompts: int, path: Path) -> DataConfig | None:
    """Write first turns of rows evenly spaced over a split, each as often as it is sampled; None for random prompts."""
    if data.format == "random":
        return None
    rows = load_split(data).conversations
    count = min(prompts, len(rows))
    chosen = [rows[i * len(rows) // count] for i in range(count)]
    lines = [_copy(row, n) for n in range(-(-samples // count)) for row in chosen]
    RunFolder(path.parent).write_text(path.name, "".join(lines))
    return DataConfig(format="jsonl", path=str(path))


def _copy(row: Conversation, number: int) -> str:
    values = {
        "question_id": f"{row.question_id}/{number}",
        "category": row.slices.get("category", ""),
        "turns": row.turns[:1],
    }
    return json.dumps(values, ensure_ascii=False) + "\n"
