"""The recipe of the toy pair: `python -m bench.toy.train --out DIR`; extra `[hf]`, eight CPU minutes, one thread.

The target is trained on text and chats by cross-entropy, first at a constant learning rate, then, with more chats and
with rows of up to 8,192 tokens, down to almost none. The drafter is distilled from it: cross-entropy and the divergence
from the target's distribution (Hinton et al., 2015), by turns on the second stage's mixture and on text that the target
wrote itself (Agarwal et al., 2024), since that is what it will have to guess.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from bench.toy.card import KINDS, CorpusFacts, Made, ModelFacts, render_card
from bench.toy.corpus import Corpus, read_corpus, texts_for_tokenizer
from bench.toy.files import CONFIG, WEIGHTS
from bench.toy.plan import (
    CHATS,
    DRAFT,
    DRAFT_STAGES,
    SEED,
    SHORT,
    TARGET,
    TARGET_STAGES,
    Shape,
    Stage,
    learning_rate_at,
    model_config,
    row_lengths,
)
from bench.toy.rows import Drawer, Encoded, Mixture, encode_corpus
from bench.toy.vocabulary import train_tokenizer, write_tokenizer
from bench.toy.weights import weights_bytes


def build(shape: Shape, seed: int) -> Any:
    """Return an untrained model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**model_config(shape), attn_implementation="sdpa"))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(0.0, _spread(name, parameter.shape[1]), generator=generator)
    return model


def _spread(name: str, fan_in: int) -> float:
    """Return the standard deviation that a matrix starts with; at the usual 0.02 so narrow a model learns slowly."""
    if "embed" in name:
        return 0.05
    adds_to_the_stream = "o_proj" in name or "down_proj" in name
    return (0.5 if adds_to_the_stream else 1.0) * float(fan_in**-0.5)


def train(model: Any, stage: Stage, encoded: Encoded, teacher: Any = None) -> None:
    """Train a model in place for one stage."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.02)
    model.train()
    drawer = Drawer(encoded, stage.mixture, stage.seed)
    generator = torch.Generator().manual_seed(stage.seed)
    spoken = _spoken(teacher, drawer, stage.spoken, generator) if stage.spoken else None
    for step, (count, length) in enumerate(row_lengths(stage)):
        if spoken is not None and length == SHORT and step % 2:
            rows = spoken[torch.randint(0, len(spoken), (count,), generator=generator)]
        else:
            rows = torch.from_numpy(drawer.rows(count, length))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(stage, step)
        loss = _loss(model, rows, teacher, stage.divergence)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 99:
            click.echo(f"step {step + 1}\tloss {loss.item():.3f}\tcpu_s {time.process_time():.0f}")
    model.eval()


def _spoken(teacher: Any, drawer: Drawer, count: int, generator: Any, *, at_once: int = 48, given: int = 64) -> Any:
    """Return rows whose first `given` tokens are drawn and whose others the teacher says, at temperature 0.6."""
    import torch

    parts = []
    with torch.no_grad():
        for _ in range(count // at_once):
            rows = torch.from_numpy(drawer.rows(at_once, given - 1))
            said, past = rows, None
            while rows.shape[1] <= SHORT:
                out = teacher(said, past_key_values=past, use_cache=True)
                past = out.past_key_values
                shares = torch.softmax(out.logits[:, -1] / 0.6, -1)
                said = torch.multinomial(shares, 1, generator=generator)
                rows = torch.cat([rows, said], 1)
            parts.append(rows)
    return torch.cat(parts)


def _loss(model: Any, rows: Any, teacher: Any, divergence: float) -> Any:
    """Return the mean cross-entropy, mixed with KL(teacher || model) where there is a teacher; nat/token."""
    import torch
    from torch.nn import functional

    logits = model(rows[:, :-1]).logits.flatten(0, 1)
    loss = functional.cross_entropy(logits, rows[:, 1:].flatten())
    if teacher is None:
        return loss
    with torch.no_grad():
        wanted = functional.log_softmax(teacher(rows[:, :-1]).logits.flatten(0, 1), -1)
    apart = functional.kl_div(functional.log_softmax(logits, -1), wanted, log_target=True, reduction="batchmean")
    return (1 - divergence) * loss + divergence * apart


def held_out_loss(model: Any, encoded: Encoded, kind: str, *, count: int = 16, length: int = SHORT) -> float:
    """Return the cross-entropy of held-out rows of one kind, nat/token."""
    import torch

    parts = dict.fromkeys(KINDS, 0.0) | {kind: 1.0}
    mixture = Mixture(**parts, chats=CHATS.chats)
    rows = torch.from_numpy(Drawer(encoded, mixture, SEED).rows(count, length))
    with torch.no_grad():
        return float(_loss(model, rows, None, 0.0))


def round_to_float16(model: Any) -> None:
    """Give every weight the value that is stored."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())


def write_model(model: Any, shape: Shape, folder: Path) -> None:
    """Write config and weights; the tied output matrix is not stored twice."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(model_config(shape), indent=2) + "\n", "utf-8")
    tensors = {name: p.detach().numpy() for name, p in model.named_parameters()}
    (folder / WEIGHTS).write_bytes(weights_bytes(tensors))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for target/, draft/ and tokenizer.")
def main(out: Path) -> None:
    """Train the toy pair and write it to --out."""
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out.mkdir(parents=True, exist_ok=True)
    corpus = read_corpus(SEED)
    tokenizer = train_tokenizer(texts_for_tokenizer(corpus))
    write_tokenizer(tokenizer, out)
    encoded, unseen = (encode_corpus(corpus, tokenizer, held_out=held_out) for held_out in (False, True))
    click.echo(f"tokens\t{ {kind: len(ids) for kind, ids in encoded.streams.items()} }")
    target, draft = build(TARGET, SEED), build(DRAFT, SEED)
    for stage in TARGET_STAGES:
        train(target, stage, encoded)
    round_to_float16(target)
    for stage in DRAFT_STAGES:
        train(draft, stage, encoded, target)
        # After each stage, so that the next could as well begin from a file.
        round_to_float16(draft)
    facts = [
        _written("target", target, TARGET, TARGET_STAGES, out, unseen),
        _written("draft", draft, DRAFT, DRAFT_STAGES, out, unseen),
    ]
    card = render_card(facts, _corpus_facts(corpus), Made(_versions(), time.process_time()))
    (out / "MODEL_CARD.md").write_text(card, "utf-8")


def _written(name: str, model: Any, shape: Shape, stages: Sequence[Stage], out: Path, unseen: Encoded) -> ModelFacts:
    """Write a model and return what there is to say of it."""
    write_model(model, shape, out / name)
    raw = (out / name / WEIGHTS).read_bytes()
    facts = ModelFacts(
        name,
        f"{shape.num_hidden_layers} x {shape.hidden_size}",
        model.num_parameters(),
        len(raw),
        hashlib.sha256(raw).hexdigest(),
        sum(stage.steps for stage in stages),
        sum(length * count for stage in stages for count, length in row_lengths(stage)),
        {kind: round(held_out_loss(model, unseen, kind), 3) for kind in KINDS},
    )
    click.echo(f"{facts.name}\tbytes {facts.num_bytes}\tsha256 {facts.sha256}\t{facts.losses}")
    return facts


def _corpus_facts(corpus: Corpus) -> CorpusFacts:
    characters = {kind: sum(map(len, getattr(corpus, kind))) for kind in ("code", "manual", "prose")}
    return CorpusFacts(characters, Counter(chat.kind for chat in corpus.chats))


def _versions() -> dict[str, str]:
    packages = ("torch", "transformers", "tokenizers")
    return {"Python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


if __name__ == "__main__":
    main()
