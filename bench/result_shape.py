"""What readers rely on in `run.json` and `summary.json`; an edited file, or another version's, is refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from bench.config import BenchConfig
from bench.errors import BenchError
from bench.figures.registry import RATIO_FIGURES, RUN_FIGURES, SAMPLE_FIGURES
from bench.statistics import Interval

Percentile = float | Literal["n too small"] | None


class _Shape(BaseModel):
    """Keys that must be there; others are let be, since a later version may write more."""

    model_config = ConfigDict(extra="allow", frozen=True)


class _Counts(_Shape):
    conversations: int
    complete: int
    requests: int
    succeeded: int
    failed: int
    errors: dict[str, int]
    input_tokens: int | None
    input_tokens_by_client: int | None
    output_tokens: int | None
    mean_output_tokens: float | None


class _Ratio(_Shape):
    pooled: float | None
    pooled_interval: Interval | None
    request_mean: float | None
    request_mean_interval: Interval | None
    n: int


class _Sample(_Shape):
    mean: float | None
    n: int
    p50: Percentile
    p90: Percentile
    p99: Percentile


class _OfRun(_Shape):
    value: float | None
    runs: list[float | None]
    interval: Interval | None


class _Headline(_Shape):
    value: float | None
    interval: Interval | None


class _Positions(_Shape):
    histogram: list[int] | None
    survival: list[int] | None
    acceptance_rates: list[float | None] | None
    drafted_acceptance_rates: list[float | None] | None
    steps: int
    delivered: int
    plain_steps: int | None
    drafted: int | None
    nodes: int | None


def _named(title: str, shapes: Mapping[str, type[_Shape]]) -> type[_Shape]:
    """Return the shape of a table with a row for each name."""
    fields: dict[str, Any] = {name: (shape, ...) for name, shape in shapes.items()}
    return create_model(title, __base__=_Shape, **fields)


_RATIOS: dict[str, type[_Shape]] = {figure.name: _Ratio for figure in RATIO_FIGURES}
_SAMPLES: dict[str, type[_Shape]] = {figure.name: _Sample for figure in SAMPLE_FIGURES}
_FIGURES = _named("Figures", _RATIOS | _SAMPLES)
_HEADLINES = _named("Headlines", dict.fromkeys(_RATIOS, _Headline))
_RUN_TABLE = _named("RunTable", {figure.name: _OfRun for figure in RUN_FIGURES})
_TABLE: dict[str, Any] = {"counts": (_Counts, ...), "figures": (_FIGURES, ...), "positions": (_Positions | None, ...)}
_Table = create_model("Table", __base__=_Shape, **_TABLE)
_Overall = create_model("Overall", __base__=_Shape, headline=(_HEADLINES, ...), **_TABLE)


class _Gate(_Shape):
    name: str
    detail: str


class _Rows(_Shape):
    sent: int
    total: int


class _Evidence(_Shape):
    source: str | None
    coverage: float | None
    without_counters: int


class _Counters(_Shape):
    draft_share: float | None = None


class _Client(_Shape):
    valid: bool
    dispatch_lag_p50_s: float | None
    dispatch_lag_p99_s: float | None
    merged_share: float | None
    loop_lag_p50_s: float | None
    loop_lag_p99_s: float | None
    read_lag_p50_s: float | None = None
    read_lag_p99_s: float | None = None
    worker_cpu_share: list[float]
    cpu_us_per_chunk: float | None
    miscounted: int
    counted: int
    reasons: list[str]


class _Summary(_Shape):
    name: str
    published: bool
    gates: list[_Gate]
    allowed_gates: list[_Gate] = []
    synthetic_prompts: bool
    synthetic_acceptance: bool = False
    note: str = ""
    speculative: bool
    rows: _Rows
    shortfall: dict[str, tuple[int, int]]
    evidence: _Evidence
    server_counters: _Counters | None
    client: _Client
    counts: _Counts
    overall: _Overall
    run: _RUN_TABLE  # type: ignore[valid-type]
    by: dict[str, dict[str, _Table]]


class _Split(_Shape):
    name: str
    sha256: str
    rows: int
    total: dict[str, int]
    placeholders: list[str]
    synthetic: bool


class _Clock(_Shape):
    monotonic_ns: int
    unix_ns: int


class _Host(_Shape):
    python: str
    system: str
    cpu: str | None
    cores: int | None
    gpus: list[dict[str, Any]] | None
    packages: dict[str, str | None]
    clock: _Clock


class _Probe(_Shape):
    told: dict[str, Any]
    server: dict[str, Any] | None


class _Described(_Shape):
    digest: str
    config: BenchConfig
    split: _Split
    host: _Host
    probe: _Probe


class _Place(_Shape):
    point: str
    server: str
    data: str
    config: str
    temperature: float
    concurrency: int
    draft_length: int | None
    repeat: int


class _Sweep(_Shape):
    experiment: str = ""
    points: list[_Place] = []
    skipped: dict[str, str] = {}


class _PrunedRow(_Shape):
    category: str
    top_k: int
    tokens: int
    outside: Interval
    acceptance_length: float | None
    pruned_length: float | None
    cost: float | None


class _Pruned(_Shape):
    source: str
    tokens: int
    known: int
    rows: list[_PrunedRow]


class _Kind(_Shape):
    kind: str
    answers: int
    acceptance_length: float | None
    evidence: list[str]


class _Judged(_Shape):
    question_id: str
    kind: str
    evidence: str
    text: str


class _Answers(_Shape):
    synthetic: bool
    kinds: list[_Kind]
    answers: list[_Judged]


class _Routed(_Shape):
    layers: list[list[int]] | None = None
    prefill_layers: list[list[int]] | None = None


class _Experts(_Shape):
    before: _Routed | None = None
    after: _Routed | None = None


_OTHERS: dict[str, type[_Shape]] = {
    "sweep.json": _Sweep,
    "vocabulary.json": _Pruned,
    "answers.json": _Answers,
    "experts.json": _Experts,
}


def refuse_other_file(values: Mapping[str, Any], path: Path) -> None:
    """Refuse a file of `_OTHERS` that lacks what its readers rely on; a file of another name passes.

    Raises
    ------
    BenchError
        With the path and the first key that is not there or is of another kind.
    """
    try:
        _OTHERS.get(path.name, _Shape).model_validate(values)
    except ValidationError as error:
        raise _refusal(error, str(path)) from None


def described_config(described: Mapping[str, Any], where: str) -> BenchConfig:
    """Return the configuration that a `run.json` holds.

    Raises
    ------
    BenchError
        If the file was edited, or is of a version whose keys are others; with `where` and the first such key.
    """
    try:
        return _Described.model_validate(described).config
    except ValidationError as error:
        raise _refusal(error, where) from None


def refuse_other_shape(summary: Mapping[str, Any], where: str) -> None:
    """Refuse a `summary.json` that lacks what readers of this version rely on.

    Raises
    ------
    BenchError
        With `where` and the first key that is not there or is of another kind.
    """
    try:
        _Summary.model_validate(summary)
    except ValidationError as error:
        raise _refusal(error, where) from None


def _refusal(error: ValidationError, where: str) -> BenchError:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"]) or "the file"
    return BenchError(
        f"{where}: {field}: {first['msg'].splitlines()[0]}; it was edited, or another version of speedbench wrote it: "
        "read it with that version, or run anew"
    )
