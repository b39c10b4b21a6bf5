"""A simulated engine in a thread, and configurations that speak to it."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.config import BenchConfig, parse_config
from bench.simulator.process import Process
from bench.simulator.server import Simulation, SimulatorServer
from bench.simulator.vocabulary import write_tokenizer

CATEGORIES = ("math", "roleplay", "writing")


class Served:
    """A simulator that runs in a thread of this process."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.url = ""
        self.server: SimulatorServer

    def __enter__(self) -> "Served":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        self.server = SimulatorServer(self._simulation)
        self.url = await self.server.start()
        self._ready.set()
        await self._end.wait()
        await self.server.close()
        await asyncio.sleep(0)


@pytest.fixture
def served() -> Callable[[Simulation], Served]:
    return Served


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten conversations a category, every third of two turns, one of three."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    lines = []
    for category in CATEGORIES:
        for n in range(10):
            turns = [f"Tell me of {category}, part {n}.", "And then?", "Why?"][: 3 if n == 0 else 1 + (n % 3 == 0)]
            row = {"question_id": f"{category}-{n}", "category": category, "turns": turns, "difficulty": "easy"}
            lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture
def configured(rows: Path, tokenizer: Path) -> Callable[..., BenchConfig]:
    """A configuration for a URL; sections are updated by keyword."""

    def make(url: str, dialect: str = "vllm", **sections: dict) -> BenchConfig:
        values: dict = {
            "engine": {"dialect": dialect, "url": url, "draft_length": 3, "tokenizer": str(tokenizer)},
            "data": {"format": "jsonl", "path": str(rows)},
            "load": {"concurrency": 8, "warmup_requests": 0},
            "client": {"workers": 1},
        }
        for name, section in sections.items():
            values[name] = {**values.get(name, {}), **section}
        return parse_config(values, "test")

    return make


@pytest.fixture
def process() -> Process:
    return Process((0.8, 0.6, 0.5), 20, 50, prompt_spread=0.5)
