"""What a Llama says, by definition: one whole forward in numpy, no cache, for tests of what ships and serves it."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.toy.files import WEIGHTS
from bench.toy.weights import read_weights


class Llama:
    """A Hugging Face folder of a Llama with tied embeddings, in float32."""

    def __init__(self, folder: Path) -> None:
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        self.w = read_weights(folder / WEIGHTS)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale = np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"])
        return x / scale * self.w[name]

    def _rotated(self, x: np.ndarray) -> np.ndarray:
        half = x.shape[-1] // 2
        theta = self.config["rope_parameters"]["rope_theta"]
        angles = np.outer(np.arange(x.shape[1]), theta ** (-np.arange(half) / half)).astype(np.float32)
        cos, sin = np.cos(np.tile(angles, 2)), np.sin(np.tile(angles, 2))
        return x * cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * sin

    def _attended(self, x: np.ndarray, at: str) -> np.ndarray:
        heads, n = self.config["num_attention_heads"], len(x)
        q, k, v = (
            (x @ self.w[f"{at}.self_attn.{p}_proj.weight"].T).reshape(n, heads, -1).swapaxes(0, 1) for p in "qkv"
        )
        scores = self._rotated(q) @ self._rotated(k).swapaxes(1, 2) / np.sqrt(q.shape[-1])
        scores += np.triu(np.full((n, n), -np.inf, np.float32), 1)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = shares / shares.sum(-1, keepdims=True) @ v
        return mixed.swapaxes(0, 1).reshape(n, -1) @ self.w[f"{at}.self_attn.o_proj.weight"].T

    def logits(self, ids: list[int]) -> np.ndarray:
        """Return the logits of the next token after each id, shape (len(ids), vocabulary)."""
        x = self.w["model.embed_tokens.weight"][ids]
        for layer in range(self.config["num_hidden_layers"]):
            at = f"model.layers.{layer}"
            x = x + self._attended(self._norm(x, f"{at}.input_layernorm.weight"), at)
            h = self._norm(x, f"{at}.post_attention_layernorm.weight")
            gate, up = (h @ self.w[f"{at}.mlp.{p}_proj.weight"].T for p in ("gate", "up"))
            x = x + (gate / (1 + np.exp(-gate)) * up) @ self.w[f"{at}.mlp.down_proj.weight"].T
        return self._norm(x, "model.norm.weight") @ self.w["model.embed_tokens.weight"].T

    def says(self, ids: list[int], answer: list[int]) -> bool:
        """Tell whether each token of an answer is the likeliest after all that stands before it."""
        return self.logits(ids + answer)[len(ids) - 1 : -1].argmax(-1).tolist() == answer
