"""The sections of the experiments, written out in the order in which they stand on a page."""

from __future__ import annotations

from bench.report.experiments.categories import categories
from bench.report.experiments.draft_latency import draft_latency
from bench.report.experiments.draft_length import draft_length
from bench.report.experiments.pareto import pareto
from bench.report.experiments.random_tokens import random_tokens
from bench.report.experiments.spec_bench import spec_bench
from bench.report.experiments.speed_up import speed_up
from bench.report.experiments.temperature import temperature
from bench.report.experiments.vocabulary import vocabulary

EXPERIMENTS = (
    categories,
    temperature,
    draft_length,
    pareto,
    speed_up,
    draft_latency,
    spec_bench,
    random_tokens,
    vocabulary,
)
"""A section each; None where the results hold no run of the experiment."""
