"""Units as tasks of a real local Ray, one worker killed on the way."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.audit.conftest import Run
from tests.audit.corpora import FILLER, MILL, WIRE, write_jsonl

RESULTS = ("hits.parquet", "summary.json", "report.html")


def task_processes() -> list[int]:
    """Processes that run a task now; Ray names them after it."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                name = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if name.startswith(b"ray::run_unit"):
                found.append(int(place.name))
    return found


def kill_one(out: Path, killed: list[int]) -> None:
    """Kill a worker once a unit is done; give up after two minutes."""
    deadline = time.monotonic() + 120
    while not killed and time.monotonic() < deadline:
        if list(out.glob("units/*.json")):
            for process in task_processes()[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
        threading.Event().wait(0.01)


@pytest.mark.peers
@pytest.mark.filterwarnings("default")
def test_ray_gives_the_bytes_of_a_local_run_although_a_worker_is_killed(tmp_path: Path, run_audit: Run) -> None:
    assert importlib.util.find_spec("ray"), "the extra [ray] is not installed: run `make test-peers`"
    for i in range(24):
        text = [f"{FILLER * 40} {(MILL, WIRE)[j % 2] if j % 50 == i else ''} {j}" for j in range(400)]
        write_jsonl(tmp_path / "corpus" / f"{i}.jsonl", text)
    assert run_audit(tmp_path / "corpus", out="local").exit_code == 0
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(tmp_path / "ray", killed))
    killer.start()
    result = run_audit(tmp_path / "corpus", out="ray", options=["--on", "ray"])
    killer.join()
    assert result.exit_code == 0, result.exception
    assert killed, "no worker was caught at work"
    for name in RESULTS:
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
