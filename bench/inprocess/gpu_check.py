"""One check of a GPU in minutes: the transformers engine over the lengths of the throughput splits. No network.

Target and drafter are initialised at random, so how many drafts match says nothing of any model; how long a step
takes, and how it splits into draft and verification, does not depend on what the weights are. Looking up the prompt
is run beside the draft model.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.inprocess.check_figures import cell_figures, difference, verdict_of
from bench.inprocess.device import default_device, describe_device
from bench.inprocess.models import num_parameters, random_model
from bench.inprocess.protocol import Finish, Request, SettingError, Step
from bench.inprocess.transformers_engine import Mode, Speculation, TransformersEngine

logger = logging.getLogger(__name__)

VOCABULARY, DRAFT_LENGTH, SEED = 32_000, 3, 0
BUCKETS = {"1k": 1_000, "2k": 2_000, "8k": 8_000, "16k": 16_000, "32k": 32_000}
TINY_BUCKETS = {"1k": 96, "2k": 160}
TEMPERATURES = (0.0, 1.0)
NOISE = 0.2
MODES: tuple[Mode, ...] = ("plain", "draft", "ngram")


class Listener:
    """Keeps the steps of one answer."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def send(self, step: Step) -> None:
        """Keep a step."""
        self.steps.append(step)

    def check(self) -> None:
        """Do nothing: somebody listens."""


def llama_config(hidden: int, layers: int, heads: int, kv_heads: int, vocabulary: int = VOCABULARY) -> dict[str, Any]:
    """Return the configuration of a Llama that takes 32k prompts; with an end of text that no answer is cut at."""
    return {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": 40_960,
        "tie_word_embeddings": False,  # tied, an untrained model repeats its last token, and so does any drafter
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
    }


class Check:
    """The models, the prompts and the time that is left."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.device = options.device or default_device()
        self.dtype = options.dtype or ("float32" if self.device == "cpu" else "bfloat16")
        self.tiny: bool = options.tiny
        if self.device == "cpu" and not self.tiny:
            raise SettingError("gpu-check: no CUDA device is to be seen; give --tiny for a small run on a CPU")
        self.begun = time.perf_counter()
        self.limit_s: float = options.limit_s
        self.target_config = llama_config(64, 2, 2, 2) if self.tiny else llama_config(2048, 16, 32, 8)
        self.draft_config = llama_config(32, 1, 1, 1) if self.tiny else llama_config(768, 8, 12, 4)
        self.buckets = TINY_BUCKETS if self.tiny else BUCKETS
        self.max_tokens = 1 + (3 if self.tiny else 12) * (DRAFT_LENGTH + 1)
        self.dist: str = options.dist
        self.prompts = {bucket: self._prompts(bucket) for bucket in self.buckets}
        self.engines = make_engines(self.target_config, self.draft_config, self.dtype, self.device)

    def has_time(self) -> bool:
        """Whether another cell may begin."""
        return time.perf_counter() - self.begun < self.limit_s

    def _prompts(self, bucket: str) -> list[tuple[int, ...]]:
        """Return the prompts of a bucket, each of its length exactly: of the DIST, else random ids."""
        length = self.buckets[bucket]
        if self.dist:
            return dist_prompts(self.dist, bucket, length, 2)
        return [random_ids(length, SEED + n) for n in range(2)]


def make_engines(
    target_config: dict[str, Any], draft_config: dict[str, Any], dtype: str, device: str
) -> dict[Mode, TransformersEngine]:
    """Return an engine for each mode, over one target."""
    target = random_model(target_config, SEED, dtype, device)
    drafter = random_model(draft_config, SEED + 1, dtype, device)
    return {
        "plain": TransformersEngine(target),
        "draft": TransformersEngine(target, Speculation(drafter, DRAFT_LENGTH)),
        "ngram": TransformersEngine(target, Speculation(None, DRAFT_LENGTH)),
    }


def random_ids(length: int, seed: int) -> tuple[int, ...]:
    """Return ids of the vocabulary, the two special ones left out."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    ids: list[int] = torch.randint(2, VOCABULARY, (length,), generator=generator).tolist()
    return tuple(ids)


def dist_prompts(dist: str, bucket: str, length: int, count: int) -> list[tuple[int, ...]]:
    """Return the first prompts of a throughput config as ids of their UTF-8 bytes, cut to a length.

    Bytes need no tokenizer, which a randomly initialised model does not have, and keep the repetitions of real text.

    Raises
    ------
    SettingError
        If there is no such file, it cannot be read here, or its texts are too short.
    """
    path = Path(dist) / "data" / f"throughput_{bucket}.parquet"
    try:
        from pyarrow import parquet

        rows = parquet.read_table(path, columns=["turns"]).slice(0, count).to_pylist()
    except (ImportError, OSError) as error:
        raise SettingError(f"--dist: {path}: {error}; leave --dist out for random ids") from None
    prompts = [tuple(2 + byte for byte in row["turns"][0].encode()[:length]) for row in rows]
    if not prompts or any(len(prompt) < length for prompt in prompts):
        raise SettingError(f"--dist: {path}: texts are shorter than {length} bytes; use full/ of the build")
    return prompts


def answer(engine: TransformersEngine, ids: tuple[int, ...], max_tokens: int, temperature: float) -> Answered:
    """Return one answer of an engine, end of text ignored."""
    listener = Listener()
    request = Request(ids, max_tokens, temperature, seed=SEED, ignore_eos=True)
    return listener.steps, engine.generate(request, listener)


Answered = tuple[list[Step], Finish]


def ids_of(answered: Answered) -> list[int]:
    """Return the tokens of an answer."""
    return [token for step in answered[0] for token in step.ids]


def run_cells(check: Check) -> Iterator[dict[str, Any]]:
    """Yield the figures of each bucket, temperature and mode; what the time did not allow says so."""
    for temperature in TEMPERATURES:
        for bucket in check.buckets:
            prompts = check.prompts[bucket]
            references: list[list[int]] = []
            for mode in MODES:
                cell: dict[str, Any] = {"bucket": bucket, "temperature": temperature, "mode": mode}
                if not check.has_time():
                    yield {**cell, "not_run": f"more than {check.limit_s:g} s had gone"}
                    continue
                answers = [answer(check.engines[mode], ids, check.max_tokens, temperature) for ids in prompts]
                cell |= cell_figures(answers) | {"prompt_tokens": len(prompts[0])}
                if mode == "plain":
                    references = [ids_of(answered) for answered in answers]
                elif temperature == 0 and references:
                    cell["against_plain"] = [
                        compare(check, prompt, reference, ids_of(answered))
                        for prompt, reference, answered in zip(prompts, references, answers, strict=True)
                    ]
                yield cell


def compare(check: Check, prompt: tuple[int, ...], plain: list[int], speculative: list[int]) -> dict[str, Any]:
    """Return where two greedy answers part, and how close the target's two likeliest tokens are there."""
    at = difference(plain, speculative)
    if at is None:
        return {"equal": True}
    gap, scale = top_two(check.engines["plain"].target, [*prompt, *plain[:at]])
    return {"equal": False, "at_token": at, "logit_gap": gap, "logit_scale": scale}


def top_two(target: Any, ids: list[int]) -> tuple[float, float]:
    """Return the distance of the two highest logits after some ids, and the size of the highest."""
    import torch

    with torch.inference_mode():
        logits = target(torch.tensor([ids], device=target.device), logits_to_keep=1).logits[0, -1].float()
    first, second = logits.topk(2).values.tolist()
    return first - second, abs(first)


def controls(check: Check) -> dict[str, Any]:
    """Return checks in float32: a drafter that is the target keeps all drafts, and greedy answers are the plain ones.

    Among the drafters is the target with noise in its weights, which keeps some drafts and loses some.
    """
    target = random_model(check.target_config, SEED, "float32", check.device)
    twin = random_model(check.target_config, SEED, "float32", check.device)
    ids = random_ids(check.buckets["1k"], SEED)

    def greedy(speculation: Speculation | None) -> Answered:
        return answer(TransformersEngine(target, speculation), ids, check.max_tokens, 0.0)

    plain = ids_of(greedy(None))
    found = {
        "drafter_is_target": greedy(Speculation(twin, DRAFT_LENGTH)),
        "ngram": greedy(Speculation(None, DRAFT_LENGTH)),
    }
    add_noise(twin, NOISE)
    found["noisy_drafter"] = greedy(Speculation(twin, DRAFT_LENGTH))
    return {
        "acceptance_length": {name: cell_figures([it])["acceptance_length"] for name, it in found.items()},
        "drafter_is_target_expected": float(DRAFT_LENGTH + 1),
        "greedy_equals_plain": {name: difference(plain, ids_of(it)) is None for name, it in found.items()},
    }


def add_noise(model: Any, share: float) -> None:
    """Add to each weight a normal number of a share of its tensor's standard deviation; norms of one value stay."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * parameter.std() * share)


def run_check(options: argparse.Namespace) -> int:
    """Run all of it and write the results; return 0 if answers agree as far as the precision allows, else 3."""
    out = Path(options.out)
    if not out.parent.is_dir():
        raise SettingError(f"--out: no folder {out.parent}")
    check = Check(options)
    facts: dict[str, Any] = {
        "environment": describe_device(check.device),
        "dtype": check.dtype,
        "draft_length": DRAFT_LENGTH,
        "prompts": check.dist or "random ids",
        "parameters": num_parameters(check.engines["plain"].target),
        "draft_parameters": num_parameters(check.engines["draft"].speculation.draft_model),
    }
    for mode in MODES:  # kernels are chosen and memory is taken on first use
        answer(check.engines[mode], random_ids(64, SEED), 8, 1.0)
    results = {**facts, "float32_controls": controls(check), "cells": _kept(run_cells(check), out, facts)}
    results["lossless"] = verdict_of(results)
    results["wall_s"] = time.perf_counter() - check.begun
    _write(out, results)
    logger.info("%s: lossless %s, %.0f s", out, results["lossless"]["verdict"], results["wall_s"])
    return 0 if results["lossless"]["verdict"] != "differs" else 3


def _kept(cells: Iterator[dict[str, Any]], out: Path, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Write what there is after each cell: a check that is cut off leaves its figures."""
    done = []
    for cell in cells:
        done.append(cell)
        logger.info("%s T=%g %s", cell["bucket"], cell["temperature"], cell["mode"])
        _write(out, {**facts, "cells": done, "complete": False})
    return done


def _write(out: Path, results: dict[str, Any]) -> None:
    temporary = out.with_name(out.name + ".part")
    temporary.write_text(json.dumps(results, indent=1), "utf-8")
    os.replace(temporary, out)
