"""A small benchmark and a way to run the command on a corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from speedbench.cli import cli
from tests.audit.corpora import FOG, MILL, WIRE, write_benchmark


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEEDBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def benchmark_dist(tmp_path: Path) -> Path:
    """A benchmark of three prompts."""
    return write_benchmark(tmp_path / "dist", [MILL, WIRE, FOG])


Run = Callable[..., Result]


@pytest.fixture
def run_audit(tmp_path: Path, benchmark_dist: Path) -> Run:
    """Run `speedbench audit run` and expect an exit status."""

    def run(*corpus: object, options: Sequence[object] = (), out: str = "out", dist: Path | None = None) -> Result:
        arguments = ["audit", "run", *corpus, "--benchmark", dist or benchmark_dist, "--out", tmp_path / out, *options]
        return CliRunner().invoke(cli, [str(a) for a in arguments])

    return run
