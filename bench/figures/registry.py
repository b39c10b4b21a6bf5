"""The figures of a result, written out in the order in which they are shown."""

from __future__ import annotations

from bench.figures.acceptance import (
    AcceptanceLength,
    AcceptanceRate,
    AnswerAcceptanceLength,
    EngineAcceptanceLength,
    ReasoningAcceptanceLength,
    RejectedDrafts,
    TokensPerStep,
)
from bench.figures.base import RatioFigure, RunFigure, SampleFigure
from bench.figures.latency import (
    EndToEndLatency,
    StepLatency,
    TimePerOutputToken,
    TimeToFirstToken,
    TimeToFirstTokenFromIntended,
    UserThroughput,
)
from bench.figures.throughput import BatchSpread, EnergyPerToken, Goodput, OutputThroughput, OutputThroughputPerGpu

RATIO_FIGURES: tuple[RatioFigure, ...] = (
    AcceptanceLength(),
    TokensPerStep(),
    AcceptanceRate(),
    RejectedDrafts(),
    ReasoningAcceptanceLength(),
    AnswerAcceptanceLength(),
)

SAMPLE_FIGURES: tuple[SampleFigure, ...] = (
    TimeToFirstToken(),
    TimeToFirstTokenFromIntended(),
    StepLatency(),
    TimePerOutputToken(),
    UserThroughput(),
    EndToEndLatency(),
)

RUN_FIGURES: tuple[RunFigure, ...] = (
    EngineAcceptanceLength(),
    OutputThroughput(),
    OutputThroughputPerGpu(),
    Goodput(),
    BatchSpread(),
    EnergyPerToken(),
)
