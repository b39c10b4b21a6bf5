"""The table in docs/bench.md says what each dialect tells; here each dialect's stream is asked."""

import re
from pathlib import Path

import pytest

from bench.engines.registry import ENGINES
from bench.figures import base
from bench.figures.base import Context
from bench.figures.registry import RATIO_FIGURES, RUN_FIGURES, SAMPLE_FIGURES
from bench.measured import measure
from bench.summary import summarise
from bench.trace import Reads, Trace
from tests.bench.test_streams import STREAMS

DOCS = Path(__file__).parents[2] / "docs" / "bench.md"


def told_by(name: str) -> dict[str, bool]:
    """Which figures one stream of a dialect gives, its events a step apart."""
    body = STREAMS[name]
    ends = [m.end() for m in re.finditer(rb"\n\n|\r\n\r\n", body)]
    parts = [
        (1_000_000_000 + i * 20_000_000, body[a:b]) for i, (a, b) in enumerate(zip([0, *ends], ends, strict=False))
    ]
    trace = Trace("q", 0, 1, {"category": "qa"}, "", 4, 0, 0, 900_000_000, 2_000_000_000, Reads.of(parts), 200)
    requests = [measure(trace, ENGINES[name], draft_length=3)]
    told = {figure.name: base.pooled(figure, requests) is not None for figure in RATIO_FIGURES}
    told |= {figure.name: len(base.all_samples(figure, requests)) > 0 for figure in SAMPLE_FIGURES}
    told |= {figure.name: figure.value(requests, Context()) is not None for figure in RUN_FIGURES}
    positions = summarise(requests, Context(), None)["overall"]["positions"] or {}
    told["AR_i"] = bool(positions.get("acceptance_rates"))
    told["AR_i_drafted"] = bool(positions.get("drafted_acceptance_rates"))
    return told


def documented() -> dict[str, dict[str, bool]]:
    text = DOCS.read_text("utf-8")
    table = text[text.index("| figure | vllm |") :].split("\n\n")[0].splitlines()
    names = [cell.strip() for cell in table[0].strip("|").split("|")][1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    return {name: {row[0]: row[i + 1] == "yes" for row in rows} for i, name in enumerate(names)}


@pytest.mark.parametrize("name", ENGINES)
def test_the_documented_table_is_what_the_dialect_tells(name):
    told = told_by(name)
    for figure, is_told in documented()[name].items():
        assert told[figure] == is_told, figure


def test_every_figure_is_documented():
    text = DOCS.read_text("utf-8")
    for figure in (*RATIO_FIGURES, *SAMPLE_FIGURES, *RUN_FIGURES):
        assert f"`{figure.name}`" in text or f"`{figure.name.rpartition('_')[0]}" in text, figure.name


def test_engines_that_nobody_has_run_are_marked():
    text = DOCS.read_text("utf-8")
    for name, engine in ENGINES.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| {name} | `"))
        assert engine.ever_run != ("never run" in row), name
