"""Models of the transformers library: from a folder, or randomly initialised from a configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.inprocess.protocol import SettingError

DTYPES = ("float32", "bfloat16", "float16")


def load_model(folder: str, dtype: str, device: str) -> Any:
    """Return the causal model in a folder or Hub repository, in evaluation mode.

    Raises
    ------
    SettingError
        If there is no such model.
    """
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, **_dtype_setting(dtype))
    except (OSError, ValueError) as error:
        raise SettingError(f"{folder}: cannot be loaded as a causal model: {_first_line(error)}") from None
    return model.to(device).eval()


def random_model(config: str | Path | dict[str, Any], seed: int, dtype: str, device: str) -> Any:
    """Return a randomly initialised causal model.

    Parameters
    ----------
    config
        A `config.json` of the transformers library with its `model_type`, or what it holds.

    Raises
    ------
    SettingError
        If it is no such configuration.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        values = dict(config) if isinstance(config, dict) else json.loads(Path(config).read_text("utf-8"))
        made = AutoConfig.for_model(values.pop("model_type"), **values)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{config}: not a configuration of a model: {type(error).__name__}: {error}") from None
    # The library draws from PyTorch's one global generator; this process has no other use for it.
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(made, **_dtype_setting(dtype))
    return model.to(device).eval()


def load_tokenizer(folder: str) -> Any | None:
    """Return the tokenizer in a folder; None if it has none."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, ImportError, KeyError):
        return None


def end_ids(model: Any) -> tuple[int, ...]:
    """Return the ids that end a text: of the generation configuration, else of the model's."""
    for config in (getattr(model, "generation_config", None), model.config):
        ids = getattr(config, "eos_token_id", None)
        if ids is not None:
            return tuple(ids) if isinstance(ids, (list, tuple)) else (int(ids),)
    return ()


def positions(model: Any) -> int | None:
    """Return the positions that the model was made for; None if its configuration does not say."""
    value = getattr(model.config, "max_position_embeddings", None)
    return int(value) if value else None


def num_parameters(model: Any) -> int:
    """Return the parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def _dtype_setting(dtype: str) -> dict[str, Any]:
    import torch
    import transformers

    major, minor = (int(part) for part in transformers.__version__.split(".")[:2])
    return {"dtype" if (major, minor) >= (4, 56) else "torch_dtype": getattr(torch, dtype)}


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
