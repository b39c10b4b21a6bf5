"""Starts an in-process engine by its path in the environment of PyTorch, and asks it."""

import json
import os
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.answer import Answer
from bench.config import ServeConfig
from bench.engines.base import Ask, Sampling, encode, parse_answer
from bench.engines.registry import ENGINES
from bench.server import fetch, running_server
from bench.trace import Reads
from tests.engines.lab import free_port

FOLDER = Path(__file__).parents[2] / "bench" / "inprocess"
ENGINE = ENGINES["inprocess"]


def python() -> str:
    """Return the interpreter of the environment."""
    return os.environ["SPEEDBENCH_VLLM_PYTHON"]


class Asked:
    """An engine that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def events(self, ids: tuple[int, ...], **sampling: Any) -> list[dict[str, Any]]:
        """Return the JSON events of one answer."""
        lines = self._post(ids, sampling).split(b"\n\n")
        return [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]

    def answer(self, ids: tuple[int, ...], **sampling: Any) -> Answer:
        """Return one answer as the runner reads it."""
        body = self._post(ids, sampling)
        return parse_answer(ENGINE, Reads.of([(time.perf_counter_ns(), body)]), 200)

    def page(self, path: str, method: str = "GET") -> dict[str, Any]:
        """Return a page."""
        value: dict[str, Any] = json.loads(fetch(self.url + path, method=method))
        return value

    def _post(self, ids: tuple[int, ...], sampling: dict[str, Any]) -> bytes:
        body = encode(ENGINE.payload(Ask("m", Sampling(**sampling), ids)))
        with urllib.request.urlopen(self.url + ENGINE.route, body, timeout=120) as response:
            data: bytes = response.read()
            return data


@contextmanager
def served(log: Path, *arguments: str) -> Generator[Asked]:
    """Run a command of the in-process engines inside the block."""
    port = free_port()
    command = (python(), str(FOLDER), *arguments, "--port", str(port), "--device", "cpu")
    serve = ServeConfig(command=command, env={"OMP_NUM_THREADS": "1"}, startup_s=180)
    with running_server(serve, f"http://127.0.0.1:{port}", log):
        yield Asked(f"http://127.0.0.1:{port}")
