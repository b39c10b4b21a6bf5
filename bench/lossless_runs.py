"""The lossless check over folders: runs are read, or made of two configurations, and the verdict is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.config import BenchConfig, DataConfig
from bench.errors import BenchError, ConfigError, UnlikeRuns
from bench.finished import measured_traces
from bench.lossless import ALPHA, compare_greedy, compare_sampled, not_shown, overall_verdict
from bench.measured import Measured
from bench.results import RUN, RunFolder
from bench.runner import Progress, run
from bench.server import running_server
from bench.split import Conversation, load_split

LOSSLESS = "lossless.json"
SAMPLES = 2_000
PROMPTS = 2

LIKE = (
    "split.sha256",
    "prompts_sha256",
    "chat_format_sha256",
    "config.engine.dialect",
    "config.engine.model",
    "config.engine.model_revision",
    "config.sampling.temperature",
    "config.sampling.top_p",
    "config.sampling.max_tokens",
    "config.sampling.ignore_eos",
    "probe.server.version",
)
"""Settings that the two runs must share; hardware and load need not be the same."""

Json = dict[str, Any]
ShownProgress = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True, slots=True)
class ReadRun:
    """One finished run: what `run.json` says, and its requests."""

    folder: RunFolder
    described: Mapping[str, Any]
    config: BenchConfig
    requests: list[Measured]

    @property
    def sampled(self) -> bool:
        """Whether its tokens were drawn at a temperature above 0."""
        return self.config.sampling.temperature > 0

    def to_json(self) -> Json:
        """Return what names the run in a verdict."""
        return {"folder": str(self.folder.root), "digest": self.described["digest"], "name": self.config.name}


def judge_runs(
    plain: Path, speculative: Path, sampled: tuple[Path, Path] | None = None, *, alpha: float = ALPHA
) -> Json:
    """Return the verdict on finished runs, which is also written into the folder of each speculative one.

    Parameters
    ----------
    plain, speculative
        Folders of two runs over the same prompts; their temperature says which part of the verdict they are for.
    sampled
        Two further runs, at a temperature above 0 where the first two are greedy.
    alpha
        False alarm rate of the test of sampled outputs.

    Raises
    ------
    UnlikeRuns
        If two runs differ in what must be the same, or the first of them speculates.
    BenchError
        If a folder holds no finished run, or both pairs are for the same part.
    """
    pairs = [_read_pair(*folders) for folders in ((plain, speculative), sampled) if folders is not None]
    if len({pair[0].sampled for pair in pairs}) < len(pairs):
        raise BenchError(f"{pairs[1][0].folder.root}: --sampled takes runs of the other kind: one pair greedy, one not")
    t0 = next((_judge(pair, alpha) for pair in pairs if not pair[0].sampled), not_shown("no greedy runs were given"))
    t1 = next((_judge(pair, alpha) for pair in pairs if pair[0].sampled), not_shown("no sampled runs were given"))
    verdict = {"verdict": overall_verdict(t0, t1), "t0": t0, "t1": t1}
    for _, second in pairs:
        second.folder.write_json(LOSSLESS, verdict)
    return verdict


def _judge(pair: tuple[ReadRun, ReadRun], alpha: float) -> Json:
    first, second = pair
    if first.sampled:
        found = compare_sampled(first.requests, second.requests, alpha=alpha)
    else:
        found = compare_greedy(first.requests, second.requests)
    temperature = first.config.sampling.temperature
    return {**found, "temperature": temperature, "plain": first.to_json(), "speculative": second.to_json()}


def _read_pair(plain: Path, speculative: Path) -> tuple[ReadRun, ReadRun]:
    first, second = _read(plain), _read(speculative)
    if first.config.engine.draft_length != 0:
        raise UnlikeRuns(f"{plain}: engine.draft_length is {first.config.engine.draft_length}; give a run with 0 first")
    if second.config.engine.draft_length == 0:
        raise UnlikeRuns(f"{speculative}: engine.draft_length is 0; give the run with speculation second")
    for path in LIKE:
        a, b = _at(first.described, path), _at(second.described, path)
        if a != b:
            raise UnlikeRuns(f"{plain} and {speculative} differ in {path}: {a!r} and {b!r}; run them alike")
    return first, second


def _read(path: Path) -> ReadRun:
    folder = RunFolder(path)
    described = folder.read_json(RUN)
    config = BenchConfig.model_validate(described["config"])
    return ReadRun(folder, described, config, measured_traces(folder, config))


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def run_and_judge(
    plain: BenchConfig,
    speculative: BenchConfig,
    out: Path,
    shown: ShownProgress,
    *,
    samples: int = SAMPLES,
    prompts: int = PROMPTS,
    alpha: float = ALPHA,
) -> Json:
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
    for role, config in (("plain", plain), ("speculative", speculative)):
        run_parts(config, out / role, shown, copies=copies, max_sampled_tokens=max_tokens)
    pair = (out / "plain-sampled", out / "speculative-sampled") if copies else None
    verdict = judge_runs(out / "plain-greedy", out / "speculative-greedy", pair, alpha=alpha)
    RunFolder(out).write_json(LOSSLESS, verdict)
    return verdict


def run_parts(
    config: BenchConfig, out: Path, shown: ShownProgress, *, copies: DataConfig | None, max_sampled_tokens: int
) -> None:
    """Start the server of a configuration once, and send it the greedy part and the sampled one.

    Parameters
    ----------
    out
        Path that the names of the two folders and of the log begin with: `OUT-greedy`, `OUT-sampled`, `OUT.log`.
    copies
        Rows of the sampled part; None leaves it out.
    max_sampled_tokens
        Length of a sampled answer.
    """
    serve = config.engine.serve
    flags = config.engine.flags if serve is None else serve.command
    engine = config.engine.model_copy(update={"serve": None, "flags": flags})
    greedy = config.sampling.model_copy(update={"temperature": 0.0})
    served = config.model_copy(update={"engine": engine, "sampling": greedy})
    with running_server(serve, config.engine.url, out.with_name(f"{out.name}.log")):
        with shown(f"{out.name}, greedy") as progress:
            run(served, out.with_name(f"{out.name}-greedy"), progress)
        if copies is not None:
            sampled = config.sampling.model_copy(
                update={
                    "temperature": config.sampling.temperature or 1.0,
                    "max_tokens": max_sampled_tokens,
                    "ignore_eos": False,
                }
            )
            load = config.load.model_copy(update={"repeats": 1})
            part = served.model_copy(update={"data": copies, "sampling": sampled, "load": load})
            with shown(f"{out.name}, sampled") as progress:
                run(part, out.with_name(f"{out.name}-sampled"), progress)


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
