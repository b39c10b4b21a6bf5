"""Where an engine finds the toy pair: what ships, complete Hugging Face folders, and gguf files made on first use."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Literal

import numpy as np

from bench.toy.weights import read_weights, weights_bytes
from sources.disk import made_once

Model = Literal["target", "draft", "random_draft"]
"""`random_draft`: the drafter's shape with random weights, a control that hardly ever guesses right."""
WEIGHTS, CONFIG = "model.safetensors", "config.json"
SHARED = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
"""Files that both models use; they lie beside the two folders."""
_RANDOM_STD = 0.05
_FORMAT = 1
"""Raised when what is made from the shipped files changes, so that no cached file of an older version is taken."""


def toy_folder() -> Path:
    """Return the folder that ships: `target/`, `draft/`, and beside them the files that they share."""
    return Path(__file__).parent


def hf_folder(model: Model, cache: Path) -> Path:
    """Return a complete Hugging Face folder of a model (config, weights, tokenizer), made in `cache` on first use.

    Notes
    -----
    The weights are stored as float16; load them as float32 everywhere, since float16 arithmetic picks other tokens.
    """
    return made_once(cache / f"{_key()}-{model}", lambda scratch: _write_hf(model, scratch))


def gguf_file(model: Model, cache: Path) -> Path:
    """Return a model as a gguf file (float32, tokenizer inside) for llama.cpp, made in `cache` on first use.

    Raises
    ------
    BenchError
        If the `gguf` package is not installed.
    """
    from bench.toy.llama_gguf import write_gguf

    folder = hf_folder(model, cache)
    return made_once(cache / f"{folder.name}.gguf", lambda scratch: write_gguf(folder, scratch))


def random_draft(cache: Path) -> Path:
    """Return the Hugging Face folder of the control drafter; `gguf_file("random_draft", cache)` is its gguf."""
    return hf_folder("random_draft", cache)


def weights_sha256(model: Literal["target", "draft"]) -> str:
    """Return the SHA-256 of a model's shipped weights."""
    return _sha256(toy_folder() / model / WEIGHTS)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _key() -> str:
    """Return the name of this version of the pair: every shipped byte that a made file depends on is in it."""
    root = toy_folder()
    names = [*SHARED, *(f"{model}/{name}" for model in ("target", "draft") for name in (CONFIG, WEIGHTS))]
    digests = "".join(_sha256(root / name) for name in names)
    return f"toy-{_FORMAT}-{hashlib.sha256(digests.encode()).hexdigest()[:12]}"


def _write_hf(model: Model, scratch: Path) -> None:
    root = toy_folder()
    source = root / ("draft" if model == "random_draft" else model)
    scratch.mkdir()
    for path in (source / CONFIG, source / WEIGHTS, *(root / name for name in SHARED)):
        shutil.copyfile(path, scratch / path.name)
    if model == "random_draft":
        (scratch / WEIGHTS).write_bytes(_random_weights(source / WEIGHTS))


def _random_weights(like: Path) -> bytes:
    """Return weights of the same shapes: normal, and the gains of the norms at one."""
    rng = np.random.default_rng(0)
    shapes = {name: tensor.shape for name, tensor in sorted(read_weights(like).items())}
    return weights_bytes({n: np.ones(s) if len(s) == 1 else rng.normal(0, _RANDOM_STD, s) for n, s in shapes.items()})
