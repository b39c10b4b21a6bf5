"""The lossless check over the folders of finished runs; the verdict is written beside the speculative one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.comparison.compare import SAME_QUESTION, unlike_setting
from bench.config import BenchConfig
from bench.errors import BenchError, UnlikeRuns
from bench.finished import read_measured
from bench.lossless.greedy import Gaps, compare_greedy
from bench.lossless.sampled import ALPHA, compare_sampled
from bench.lossless.verdict import Json, not_shown, overall_verdict
from bench.measured import Measured
from bench.results import LOSSLESS, RUN, RunFolder

LIKE = (
    *SAME_QUESTION,
    "config.sampling.temperature",
    "config.sampling.top_p",
    "config.sampling.max_tokens",
    "config.sampling.ignore_eos",
    "probe.server.version",
)
"""Settings that the two runs must share; hardware and load need not be the same."""


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
    plain: Path,
    speculative: Path,
    sampled: tuple[Path, Path] | None = None,
    *,
    alpha: float = ALPHA,
    gaps: Gaps | None = None,
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
    gaps
        How close the two tokens were where greedy outputs part, by conversation and repeat, where it was asked.

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
    t0 = next(
        (_judge(pair, alpha, gaps or {}) for pair in pairs if not pair[0].sampled),
        not_shown("no greedy runs were given"),
    )
    t1 = next(
        (_judge(pair, alpha, gaps or {}) for pair in pairs if pair[0].sampled), not_shown("no sampled runs were given")
    )
    verdict = {"verdict": overall_verdict(t0, t1), "t0": t0, "t1": t1}
    for _, second in pairs:
        second.folder.write_json(LOSSLESS, verdict)
    return verdict


def _judge(pair: tuple[ReadRun, ReadRun], alpha: float, gaps: Gaps) -> Json:
    first, second = pair
    if first.sampled:
        found = compare_sampled(first.requests, second.requests, alpha=alpha)
    else:
        found = compare_greedy(first.requests, second.requests, gaps=gaps)
    temperature = first.config.sampling.temperature
    return {**found, "temperature": temperature, "plain": first.to_json(), "speculative": second.to_json()}


def _read_pair(plain: Path, speculative: Path) -> tuple[ReadRun, ReadRun]:
    first, second = read_run(plain), read_run(speculative)
    if first.config.engine.draft_length != 0:
        raise UnlikeRuns(f"{plain}: engine.draft_length is {first.config.engine.draft_length}; give a run with 0 first")
    if second.config.engine.draft_length == 0:
        raise UnlikeRuns(f"{speculative}: engine.draft_length is 0; give the run with speculation second")
    found = unlike_setting(first.described, second.described, LIKE)
    if found is not None:
        path, a, b = found
        raise UnlikeRuns(f"{plain} and {speculative} differ in {path}: {a!r} and {b!r}; run them alike")
    return first, second


def read_run(path: Path) -> ReadRun:
    """Return a finished run.

    Raises
    ------
    BenchError
        If the folder holds none.
    """
    folder = RunFolder(path)
    config, measured = read_measured(folder)  # refuses one that has not ended: a part of a run is no verdict
    return ReadRun(folder, folder.read_json(RUN), config, measured)
