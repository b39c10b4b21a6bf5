"""The model card of the toy pair, from the facts of its training. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KINDS = ("code", "manual", "prose", "chat")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model as it was trained.

    Attributes
    ----------
    losses
        Cross-entropy of held-out rows by kind, nat/token, of the float16 values.
    """

    name: str
    shape: str
    num_parameters: int
    num_bytes: int
    sha256: str
    steps: int
    tokens: int
    losses: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """What was trained on: characters of each kind of text, chats of each kind, and the project's own dialogues."""

    characters: Mapping[str, int]
    chats: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Made:
    """Where and with what the pair was trained."""

    versions: Mapping[str, str]
    cpu_s: float


def render_card(models: Sequence[ModelFacts], corpus: CorpusFacts, made: Made) -> str:
    """Return the text of MODEL_CARD.md."""
    c, n = corpus.characters, corpus.chats
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    return TEMPLATE.format(
        files="\n".join(_file_row(m) for m in models),
        losses="\n".join(
            f"| {m.name} | " + " | ".join(f"{m.losses[kind]:.2f}" for kind in KINDS) + " |" for m in models
        ),
        code=f"{c['code']:,}",
        manual=f"{c['manual']:,}",
        prose=f"{c['prose']:,}",
        derived=f"{sum(n.values()) - n['dialogue']:,}",
        dialogues=n["dialogue"],
        versions=versions,
        cpu_s=f"{made.cpu_s:.0f}",
    )


def _file_row(m: ModelFacts) -> str:
    return (
        f"| {m.name} | {m.shape} | {m.num_parameters:,} | {m.num_bytes:,} | {m.steps:,} | {m.tokens:,} | `{m.sha256}` |"
    )


TEMPLATE = """\
---
license: apache-2.0
language: en
library_name: transformers
---
# The toy pair

A target and a drafter so small that they ship with the package. They show that the machinery of a measurement works:
a real engine, real speculative decoding, text that differs by kind. They know nothing, and no figure that was measured
with them is a result.

| model | shape | parameters | bytes of weights (float16) | steps | tokens seen | sha256 of model.safetensors |
| --- | --- | --- | --- | --- | --- | --- |
{files}

Llama architecture, 8,192 positions, byte-level BPE of 512 tokens, tied embeddings. The weights are stored as float16
and are to be loaded as float32: every engine then has the same values, and rounding inside it decides only near-ties.

## Made of

- {code} characters of code: the modules of the standard library of the Python that trained it (PSF licence);
- {manual} characters of the manual that `help()` shows (`pydoc_data`, PSF licence);
- {prose} characters of prose and {dialogues} dialogues that were written for this project (`corpus/`, Apache-2.0);
- {derived} short chats made from the first three: a function for its name, a docstring for a question, a paragraph to
  write, to go on with or to shorten.

No text of a benchmark. Every twentieth text and chat was held out; a chat may be made from a text that was trained on,
so its figure below flatters.

## Made by

`python -m bench.toy.train --out DIR`: {versions}; one thread, {cpu_s} s of CPU time. The same versions on the same kind
of processor give the same bytes; other versions have another standard library, and give another pair.

The target is trained by cross-entropy; the drafter by cross-entropy and the divergence from the target, half of the
time on text that the target wrote.

Held-out cross-entropy, nat/token, of the stored values:

| model | code | manual | prose | chat |
| --- | --- | --- | --- | --- |
{losses}

## Not for

Anything but tests and demonstrations. The answers are fluent in places and true by accident.
"""
