"""Whether this host can run a recipe: interpreters, packages, GPUs and models that are there. Reads, never fetches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from bench.environment import gpus
from bench.recipes.fields import ModelRef, Recipe

_MIB_PER_GB = 1e9 / 2**20


def find_python(environment: str) -> str:
    """Return the interpreter of an engine's own environment: `$SPEEDBENCH_<ENVIRONMENT>_PYTHON`, or this one.

    It is not resolved: an interpreter knows its environment by the link it was called by.
    """
    named = "" if environment == "here" else os.environ.get(f"SPEEDBENCH_{environment.upper()}_PYTHON", "")
    return os.path.abspath(named) if named else sys.executable


def local_model(model: ModelRef) -> str | None:
    """Return the folder of a model: its id where that is a folder, or its snapshot in the Hub's cache; else None."""
    if Path(model.hf_id).is_dir():
        return model.hf_id
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model.hf_id, "config.json", revision=model.revision or None)
    return str(Path(found).parent) if isinstance(found, str) else None


def runnable(recipe: Recipe, paths: Mapping[str, str] | None = None) -> tuple[bool, str]:
    """Return whether this host can run a recipe, and else all that is missing; `paths` as in `recipe_config`."""
    given = paths or {}
    missing = [*_missing_gpus(recipe), *_missing_package(recipe)]
    missing += [f"needs --path {name}=…" for name in recipe.engine.needs if name not in given]
    for key, model in (("model", recipe.target), ("draft", recipe.draft)):
        if model is not None and key not in given and not model.is_toy and local_model(model) is None:
            missing.append(f"{model.hf_id} is not on this disk")
    return not missing, "; ".join(missing)


def _missing_gpus(recipe: Recipe) -> list[str]:
    need = recipe.parallelism.gpus
    if not need:
        return []
    weights = [model.weights_gb for model in (recipe.target, recipe.draft) if model and model.weights_gb]
    each_gb = sum(weights) / need
    of_memory = f" with more than {each_gb:.0f} GB{' each' if need > 1 else ''} (weights alone)" if weights else ""
    wanted = f"needs {need} GPU{'s' if need > 1 else ''}{of_memory}"
    here = _gpu_memory_gb()
    if len(here) < need:
        return [f"{wanted}, this host has {len(here) or 'none'}"]
    if sum(memory > each_gb for memory in here) < need:
        return [f"{wanted}, the largest here has {max(here):.0f} GB"]
    return []


@lru_cache(maxsize=1)
def _gpu_memory_gb() -> tuple[float, ...]:
    return tuple(float(row["memory.total"].split()[0]) / _MIB_PER_GB for row in gpus() or ())


def _missing_package(recipe: Recipe) -> list[str]:
    engine = recipe.engine
    missing = [f"{engine.program} is not on the path"] if engine.program and not shutil.which(engine.program) else []
    python = find_python(engine.environment) if engine.packages else ""
    remedy = "" if engine.environment == "here" else f"; set SPEEDBENCH_{engine.environment.upper()}_PYTHON"
    gone = [package for package in engine.packages if not _has_package(python, package)]
    return missing + [f"{package} is not installed{remedy}" for package in gone]


@lru_cache(maxsize=64)
def _has_package(python: str, package: str) -> bool:
    """Return whether an interpreter finds a package, without importing it."""
    if python == sys.executable:
        return find_spec(package) is not None
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    try:
        return (
            subprocess.run([python, "-c", code, package], capture_output=True, check=False, timeout=60).returncode == 0
        )
    except OSError:
        return False
