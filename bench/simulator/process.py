"""The acceptance process of the simulator: a pure function of the prompt's ids and the settings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bench.acceptance import Acceptance, Step, from_steps
from bench.simulator.vocabulary import END

_LETTERS = b"etaoin shrdlucmfwypvbgkjqxz"


@dataclass(frozen=True, slots=True)
class Process:
    """How answers come about.

    Attributes
    ----------
    acceptance_rates
        ``AR_1..AR_k``; their number is the draft length k. Empty: no speculation.
    min_tokens, max_tokens
        The length of an answer is uniform in this range, its end mark counted; the request's budget cuts it.
    plain_share
        Share of the steps that draft nothing, in [0, 1].
    adaptive
        Whether a step drafts a uniform 1..k tokens instead of k.
    prompt_spread
        Standard deviation of a prompt's own shift of all rates, on the logit scale.
    merged_share
        Share of the steps that are held back and sent with the next one.
    reasoning_share
        Part of an answer that is reasoning, for the routes that tell it apart.
    failed_share, broken_share, cut_share
        Shares of the prompts answered by HTTP 500, by an error inside the stream, by a closed connection.
    """

    acceptance_rates: tuple[float, ...] = (0.8, 0.7, 0.6)
    min_tokens: int = 20
    max_tokens: int = 60
    plain_share: float = 0.0
    adaptive: bool = False
    prompt_spread: float = 0.0
    merged_share: float = 0.0
    reasoning_share: float = 0.0
    failed_share: float = 0.0
    broken_share: float = 0.0
    cut_share: float = 0.0
    seed: int = 0

    @property
    def draft_length(self) -> int:
        """K, tokens drafted a step."""
        return len(self.acceptance_rates)


Fate = Literal["answered", "failed", "broken", "cut"]


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """One answer: ids, the steps that brought them (a step that drafted 0 is plain), chunks as token counts."""

    ids: tuple[int, ...]
    steps: tuple[Step, ...]
    chunks: tuple[int, ...]
    finish_reason: Literal["stop", "length"]
    num_reasoning: int
    fate: Fate

    @property
    def verify_steps(self) -> list[Step]:
        """The steps that drafted."""
        return [step for step in self.steps if step.drafted]

    def acceptance(self, k: int) -> Acceptance:
        """Return the truth in the normal form."""
        plain = len(self.steps) - len(self.verify_steps)
        return from_steps(self.verify_steps, "per_step", plain_steps=plain, k=k)


def simulate_answer(
    process: Process, prompt_ids: Sequence[int], budget: int, *, ignore_eos: bool = False
) -> SimulatedAnswer:
    """Return the answer to a prompt; the same for the same ids, settings and seed.

    Parameters
    ----------
    budget
        Most tokens of the answer, >= 1.
    """
    digest = hashlib.sha256(np.asarray(prompt_ids, np.uint32).tobytes()).digest()
    rng = np.random.default_rng([process.seed, int.from_bytes(digest[:8], "big")])
    fate = _fate(process, float(rng.random()))
    length = int(rng.integers(process.min_tokens, process.max_tokens + 1))
    total = budget if ignore_eos else min(length, budget)
    letters = rng.integers(0, len(_LETTERS), total)
    ids = [_LETTERS[i] for i in letters]
    ended = not ignore_eos and length <= budget
    if ended:
        ids[-1] = END
    steps = _steps(process, rng, total - 1)
    return SimulatedAnswer(
        tuple(ids),
        tuple(steps),
        tuple(_chunks(process, rng, steps)),
        "stop" if ended else "length",
        int(total * process.reasoning_share),
        fate,
    )


def _fate(process: Process, drawn: float) -> Fate:
    edge = 0.0
    fates: list[tuple[Fate, float]] = [
        ("failed", process.failed_share),
        ("broken", process.broken_share),
        ("cut", process.cut_share),
    ]
    for fate, share in fates:
        edge += share
        if drawn < edge:
            return fate
    return "answered"


def _steps(process: Process, rng: np.random.Generator, left: int) -> list[Step]:
    rates = np.asarray(process.acceptance_rates)
    if process.prompt_spread and len(rates):
        inner = np.clip(rates, 1e-9, 1 - 1e-9)
        logits = np.log(inner / (1 - inner)) + rng.normal(0.0, process.prompt_spread)
        rates = 1 / (1 + np.exp(-logits))
    drafted = _drafted(process, rng, left)
    kept = rng.random((left, len(rates))) < rates
    # Matched: drafts before the first that was not kept, at most as many as were drafted.
    matched = np.minimum(np.cumprod(kept, axis=1).sum(axis=1), drafted)
    steps = list[Step]()
    for d, m in zip(drafted.tolist(), matched.tolist(), strict=True):
        if not left:
            break
        delivered = min(m + 1, left)
        left -= delivered
        steps.append(Step(d, m, delivered))
    return steps


def _drafted(process: Process, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return the draft length of n steps; 0 for a plain one."""
    k = process.draft_length
    drafted = rng.integers(1, k + 1, n) if process.adaptive and k else np.full(n, k)
    return np.where(rng.random(n) < process.plain_share, 0, drafted)


def _chunks(process: Process, rng: np.random.Generator, steps: Sequence[Step]) -> list[int]:
    """Return the tokens of each chunk; the first is the prefill's alone."""
    chunks, held = [1], 0
    for n, step in enumerate(steps):
        held += step.delivered
        if n + 1 < len(steps) and process.merged_share and rng.random() < process.merged_share:
            continue
        chunks.append(held)
        held = 0
    return chunks
