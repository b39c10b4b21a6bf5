"""A target and a drafter that agree in part, written without PyTorch: random weights, with noise on the drafter's."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.simulator.vocabulary import MARKS, write_tokenizer
from bench.toy.weights import weights_bytes

HIDDEN, LAYERS, HEADS, POSITIONS = 64, 2, 2, 512
VOCABULARY = 256 + len(MARKS)
NOISE = 0.03
"""Of the drafter's weights, over the standard deviation of the target's; about every second draft is kept."""


def config(**more: Any) -> dict[str, Any]:
    """Return the configuration; no text ends by itself unless `eos_token_id` is given."""
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": POSITIONS,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": 0,
        **more,
    }


def _weights(noise: float) -> dict[str, np.ndarray]:
    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "lm_head.weight": (VOCABULARY, HIDDEN)}
    square, up = (HIDDEN, HIDDEN), (2 * HIDDEN, HIDDEN)
    for n in range(LAYERS):
        at = f"model.layers.{n}"
        shapes |= {f"{at}.self_attn.{part}_proj.weight": square for part in "qkvo"}
        shapes |= {
            f"{at}.mlp.gate_proj.weight": up,
            f"{at}.mlp.up_proj.weight": up,
            f"{at}.mlp.down_proj.weight": up[::-1],
        }
    weights = {name: rng.normal(0, 0.3, shape) for name, shape in shapes.items()}
    noisy = {name: tensor + other.normal(0, 0.3 * noise, tensor.shape) for name, tensor in weights.items()}
    norms = ["model.norm.weight"]
    norms += [
        f"model.layers.{n}.{part}_layernorm.weight" for n in range(LAYERS) for part in ("input", "post_attention")
    ]
    return noisy | {name: np.ones(HIDDEN) for name in norms}


def write_model(folder: Path, *, noise: float = 0.0, **more: Any) -> Path:
    """Write a complete folder and return it."""
    write_tokenizer(folder)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    (folder / "config.json").write_text(json.dumps(config(**more)))
    (folder / "model.safetensors").write_bytes(weights_bytes(_weights(noise)))
    return folder
