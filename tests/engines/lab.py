"""Real engines, each started by our own runner through a shipped recipe: what a mode answered lies in folders."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bench.config import BenchConfig, DataConfig, LoadConfig, SamplingConfig
from bench.finished import read_measured
from bench.lossless.greedy import Gaps
from bench.lossless.near_ties import ask_gaps
from bench.lossless.paired_runs import run_parts, served, write_copies
from bench.measured import Measured
from bench.recipes.shipped import find_recipe, recipe_config
from bench.results import SUMMARY, RunFolder
from bench.runner import Progress
from bench.toy.files import gguf_file, hf_folder
from sources.cache_root import cache_root

EngineName = Literal["llamacpp", "vllm", "transformers"]
Mode = Literal["plain", "draft", "ngram"]
Drafter = Literal["draft", "target", "random_draft"]

ENGINES: tuple[EngineName, ...] = ("llamacpp", "transformers", "vllm")
DRAFT_LENGTH = 3
GREEDY_TOKENS = 100
CONTROL_STEPS = 12
SAMPLES = 800
PROMPTS = 1
CONCURRENCY: dict[EngineName, int] = {"llamacpp": 1, "transformers": 1, "vllm": 8}

TEXTS = (
    "def mean(values):\n    total = 0.0\n    for value in values:\n        total += value\n    return",
    "class Lantern:\n    def __init__(self, oil, wick):\n        self.oil = oil\n        self.wick = wick\n\n    def",
    "import os\nimport sys\n\ndef main(argv):\n    if len(argv) < 2:\n        print(",
    "for name in sorted(names):\n    path = os.path.join(root, name)\n    if os.path.isdir(path):\n        ",
    "try:\n    number = int(text)\nexcept ValueError:\n    raise",
    "The harbour lay under fog, and the ferryman counted his lamps twice before he",
    "Write a function that returns the longest line of a file.",
    "with open(path, 'rb') as stream:\n    data = stream.read()\n    if not data:\n        return None\n    ",
    "def parse(line):\n    key, _, value = line.partition('=')\n    return key.strip(),",
    "What does the keyword yield do in Python, and when is it useful?",
    "    def __len__(self):\n        return len(self._items)\n\n    def __iter__(self):\n        return",
    "Tell me about a mill that grinds only at night.",
    "while queue:\n    node = queue.pop(0)\n    if node in seen:\n        continue\n    seen.add(node)\n    ",
    "def _get_default(self, key, default=None):\n    try:\n        return self[key]\n    except KeyError:\n        ",
    "Once there were three sisters who lived at the edge of a salt marsh, and",
    "if __name__ == '__main__':\n    import doctest\n    doctest.testmod()\n\n\nclass Error(Exception):\n    ",
)
"""Sixteen prompts: code as the pair was trained on, and prose."""

SAMPLED = frozenset(
    (engine, mode, "draft")
    for engine in ENGINES
    for mode in ("plain", "draft", "ngram")
    if (engine, mode) != ("vllm", "ngram")
)
"""What is sampled too. On vLLM's CPU sampler one mode with drafts is enough to find its fault."""


@dataclass(frozen=True)
class Ran:
    """The folders of one mode of one engine; `sampled` is there for the modes in `SAMPLED` only.

    Attributes
    ----------
    gaps
        What the running server without speculation said of each answer's second token against itself.
    """

    greedy: Path
    sampled: Path
    gaps: Gaps = field(default_factory=dict)

    def requests(self) -> dict[str, Measured]:
        """Return the greedy requests by question_id."""
        folder = RunFolder(self.greedy)
        return {m.trace.conversation_id: m for m in read_measured(folder)[1]}

    def summary(self) -> dict[str, Any]:
        """Return the figures of the greedy run."""
        return RunFolder(self.greedy).read_json(SUMMARY)


class Lab:
    """Starts each mode of each engine once, when something of it is first asked for."""

    def __init__(self, root: Path, *, samples: int = SAMPLES) -> None:
        self._root, self._ran = root, dict[tuple[str, str, str], Ran]()
        rows = [{"question_id": f"q{n:02}", "category": "toy", "turns": [text]} for n, text in enumerate(TEXTS)]
        path = root / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        self._data = DataConfig(format="jsonl", path=str(path))
        self._copies = write_copies(self._data, samples, PROMPTS, root / "sampled.jsonl") if samples else None

    def ran(self, engine: EngineName, mode: Mode, drafter: Drafter = "draft") -> Ran:
        """Return what a mode answered; another drafter than the pair's own gets the requests of the controls."""
        key = (engine, mode, drafter)
        if key not in self._ran:
            out = self._root / "-".join(key)
            copies = self._copies if key in SAMPLED else None
            with served(self._config(*key), out.with_name(f"{out.name}.log")) as config:
                run_parts(config, out, self._shown, copies=copies, max_sampled_tokens=DRAFT_LENGTH + 3)
                ran = Ran(out.with_name(f"{out.name}-greedy"), out.with_name(f"{out.name}-sampled"))
                gaps = _gaps_to_itself(config, ran) if mode == "plain" else {}
            self._ran[key] = replace(ran, gaps=gaps)
        return self._ran[key]

    def _config(self, engine: EngineName, mode: Mode, drafter: Drafter) -> BenchConfig:
        paths = {"toy_draft_hf": str(hf_folder(drafter, cache_root()))} if engine != "llamacpp" else {}
        if engine == "llamacpp" and mode == "draft":
            paths = {"toy_draft_gguf": str(gguf_file(drafter, cache_root()))}
        recipe = find_recipe(f"toy-{engine}-{mode}").model_copy(update={"batch_size": CONCURRENCY[engine]})
        control = drafter != "draft"
        tokens = 1 + CONTROL_STEPS * (DRAFT_LENGTH + 1) if control else GREEDY_TOKENS
        # llama.cpp goes past the end of text by taking it out of the target's distribution, but not out of the
        # drafter's: a target that drafts for itself would then disagree with itself.
        ignore_eos = control and engine != "llamacpp"
        return recipe_config(
            recipe,
            url_port=free_port(),
            data=self._data,
            load=LoadConfig(concurrency=CONCURRENCY[engine], warmup_requests=2),
            sampling=SamplingConfig(max_tokens=tokens, ignore_eos=ignore_eos),
            paths=paths,
            name="-".join((engine, mode, drafter)),
        )

    @contextmanager
    def _shown(self, name: str) -> Generator[Progress]:
        yield lambda *_: None


def _gaps_to_itself(config: BenchConfig, ran: Ran) -> Gaps:
    requests = list(ran.requests().values())
    place = {"repeat": 0, "turn": 0, "position": 1}
    rows = [
        {"conversation_id": m.trace.conversation_id, **place, "plain": ids[1], "speculative": ids[1]}
        for m in requests
        if (ids := m.answer.token_ids) is not None
    ]
    return ask_gaps(config, rows, requests, RunFolder(ran.greedy).prompts())


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
