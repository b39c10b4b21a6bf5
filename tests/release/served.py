"""The samples served as sources from the Hub of the tests, and the command run against them as a user runs it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from sources.origins import samples_root
from sources.registry import SOURCES
from tests.hub.fakehub import WRITE_TOKEN, FakeHub, Repo

NAMES = ("gsm8k", "creative_writing", "hle", "bamboo", "long_code_arena")
RECIPE = f"""
extends = "v1-offline"
name = "served"
sources = {json.dumps(NAMES)}

[selection]
quota = 4
nested = [2]
categories = ["math", "stem", "writing"]

[throughput]
buckets = [256]
rows_per_cell = 2
"""
QUESTIONS = "data/spec_bench/question.jsonl"
WORDS = [a + b for a in ("am", "bar", "ced", "dri", "fjo", "gra") for b in ("ber", "ge", "ilo", "mo", "ndu", "rk")]


def serve(hub: FakeHub) -> Repo:
    """Serve the samples of some sources, and a file of as many questions as Spec-Bench has; return that repository."""
    for name in NAMES:
        spec = SOURCES[name].spec
        root = samples_root() / (spec.samples or spec.name)
        files = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        if QUESTIONS in files:
            files[QUESTIONS] = questions()
        repo = hub.dataset(spec.repo) if spec.host == "hub" else hub.project(spec.repo)
        repo.commit(files, spec.revision)
        repo.gated = spec.gated
    return hub.project(SOURCES["gsm8k"].spec.repo)


def questions(changes: Mapping[int, str] = MappingProxyType({})) -> bytes:
    """Return 480 questions in Spec-Bench's schema, their ids from 81; `changes` are texts that replace some of them."""
    draw = random.Random("questions")
    mt_bench = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
    tasks = [name for name in mt_bench for _ in range(10)]
    tasks += [n for n in ("translation", "summarization", "qa", "math_reasoning", "rag") for _ in range(80)]
    lines = []
    for i, task in enumerate(tasks, start=81):
        turns = [f"Question {i}: {' '.join(draw.choices(WORDS, k=24))}?" for _ in range(2 if i < 161 else 1)]
        turns = [changes[i]] if i in changes else turns
        lines.append(json.dumps({"question_id": i, "category": task, "turns": turns}) + "\n")
    return "".join(lines).encode()


class Workplace:
    """A user's machine: a home, a cache, a lock and a token, and nothing of this process."""

    def __init__(self, root: Path, hub: FakeHub, token: str = WRITE_TOKEN) -> None:
        self.root = root
        self.output: list[str] = []
        root.mkdir(parents=True, exist_ok=True)
        (root / "served.toml").write_text(RECIPE)
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "LANG", "TMPDIR"}}
        self.environment = {
            **kept,
            **hub.environment(token),
            "HOME": str(root),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HF_HOME": str(root / "hf"),
            "SPEEDBENCH_CACHE": str(root / "cache"),
            "SPEEDBENCH_LOCK": str(root / "lock.toml"),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of ours."""
        return subprocess.Popen(
            [sys.executable, "-m", "speedbench", *arguments],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command of ours and return what it printed."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        self.output.append(out + err)
        assert process.returncode == status, f"speedbench {' '.join(arguments)}\n{out}\n{err}"
        return out if not status else err

    def python(self, code: str, *arguments: str, environment: Sequence[tuple[str, str]] = ()) -> str:
        """Run Python on this machine and return what it printed."""
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.root,
            env={**self.environment, **dict(environment)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.output.append(done.stdout + done.stderr)
        assert done.returncode == 0, done.stderr
        return done.stdout
