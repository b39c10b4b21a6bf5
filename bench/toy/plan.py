"""The plan of the toy pair's training: sizes, stages and seeds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from bench.toy.rows import Mixture
from bench.toy.vocabulary import BOS_ID, EOS_ID, POSITIONS, SIZE

SEED = 7
HEAD_DIM = 32
SHORT = 256
"""Tokens of most rows."""
TEXT = Mixture(
    code=0.35, manual=0.05, prose=0.2, chat=0.4, chats={"code": 0.3, "manual": 0.15, "prose": 0.2, "dialogue": 0.35}
)
CHATS = Mixture(
    code=0.2, manual=0.05, prose=0.15, chat=0.6, chats={"code": 0.25, "manual": 0.1, "prose": 0.2, "dialogue": 0.45}
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of a Llama: width, width of the feed-forward layer, and layers."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of training: steps, how the learning rate goes, and every how many steps a row is long.

    Attributes
    ----------
    batch
        Rows of 256 tokens a step; so small a model learns more from many small steps than from few large ones.
    learning_rate, final_learning_rate
        At the first and at the last step, straight in between; after `warmup_steps` from zero.
    every_2k, every_8k
        One step in so many is a single row of 2,048, or of 8,192 tokens; 0 for none.
    divergence
        Share of the loss that is the divergence from the teacher.
    spoken
        Rows that the teacher goes on with by itself; every other step is of these.
    """

    mixture: Mixture
    steps: int
    batch: int
    learning_rate: float
    final_learning_rate: float
    seed: int
    warmup_steps: int = 0
    every_2k: int = 0
    every_8k: int = 0
    divergence: float = 0.0
    spoken: int = 0


TARGET, DRAFT = Shape(128, 320, 3), Shape(96, 256, 1)
TARGET_STAGES = (
    Stage(TEXT, 1900, 2, 4e-3, 4e-3, seed=1, warmup_steps=50),
    Stage(CHATS, 900, 2, 4e-3, 1e-4, seed=2, every_2k=14, every_8k=180),
)
DRAFT_STAGES = (
    Stage(CHATS, 900, 4, 4e-3, 1e-4, 3, warmup_steps=50, every_2k=20, every_8k=225, divergence=0.8, spoken=288),
    Stage(CHATS, 500, 4, 3e-3, 1e-4, 4, warmup_steps=20, every_2k=20, divergence=0.8, spoken=576),
)


def model_config(shape: Shape) -> dict[str, Any]:
    """Return the `config.json` of a model: the weights are stored as float16 and loaded as float32."""
    heads = shape.hidden_size // HEAD_DIM
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": SIZE,
        **asdict(shape),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": POSITIONS,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "pad_token_id": EOS_ID,
        "initializer_range": 0.02,
        "dtype": "float32",
    }


def row_lengths(stage: Stage) -> Iterator[tuple[int, int]]:
    """Yield how many rows of what length each step of a stage takes."""
    for step in range(stage.steps):
        if stage.every_8k and step % stage.every_8k == stage.every_8k - 1:
            yield 1, POSITIONS - 1
        elif stage.every_2k and step % stage.every_2k == 0:
            yield 1, 2048
        else:
            yield stage.batch, SHORT


def learning_rate_at(stage: Stage, step: int) -> float:
    """Return the learning rate of a step."""
    warm = min(1.0, (step + 1) / stage.warmup_steps) if stage.warmup_steps else 1.0
    done = step / stage.steps
    return warm * (stage.learning_rate + done * (stage.final_learning_rate - stage.learning_rate))
