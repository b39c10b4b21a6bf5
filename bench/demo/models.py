"""The models that the demo can serve, and what is run on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.demo.smollm2 import smollm2_paths
from bench.errors import ConfigError
from bench.sweeps.points import TOY_ALLOWS, TOY_NOTE
from bench.toy.files import hf_folder
from sources.cache_root import cache_root


@dataclass(frozen=True, slots=True)
class DemoModel:
    """One model and the sizes that keep its demo under three minutes on two cores.

    Attributes
    ----------
    recipes
        Recipe of each way to draft, by name; the first one drafts nothing.
    tokenizer
        Folder with `tokenizer.json`, in whose tokens the buckets are exact.
    paths
        Files and folders that the recipes' commands name.
    rows
        Rows of each category, None for all.
    throughput
        Configs of the throughput split, sent `concurrency` streams at once.
    ignore_eos
        Answer with `max_tokens` tokens, whatever ends before.
    allow
        Gates that hold nothing back: engine and client share this host's cores, and a toy says odd things.
    """

    name: str
    recipes: Mapping[str, str]
    tokenizer: Path
    max_tokens: int
    throughput: tuple[str, ...]
    concurrency: int
    rows: int | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    ignore_eos: bool = False
    note: str = ""
    allow: tuple[str, ...] = ("client",)


def _toy() -> DemoModel:
    return DemoModel(
        "toy",
        {mode: f"toy-llamacpp-{mode}" for mode in ("plain", "draft", "ngram")},
        hf_folder("target", cache_root()),
        max_tokens=64,
        throughput=("throughput_256", "throughput_512", "throughput_1k", "throughput_2k"),
        concurrency=4,
        # Many of its answers end after a few tokens, a millisecond, which is no speed.
        ignore_eos=True,
        note=TOY_NOTE,
        allow=TOY_ALLOWS,
    )


def _smollm2() -> DemoModel:
    paths = smollm2_paths(cache_root())
    return DemoModel(
        "smollm2",
        {mode: f"smollm2-llamacpp-{mode}" for mode in ("plain", "ngram")},
        paths["tokenizer"],
        max_tokens=32,
        throughput=("throughput_256",),
        concurrency=1,
        rows=1,
        paths={key: str(path) for key, path in paths.items()},
    )


MODELS: dict[str, Callable[[], DemoModel]] = {"toy": _toy, "smollm2": _smollm2}
"""The models by name, made when one is asked for."""


def find_model(name: str) -> DemoModel:
    """Return a model of the demo.

    Raises
    ------
    ConfigError
        If there is none of this name.
    EngineError
        If the package that carries it is not installed.
    """
    if name not in MODELS:
        raise ConfigError(f"--model {name}: known are {', '.join(MODELS)}")
    return MODELS[name]()
