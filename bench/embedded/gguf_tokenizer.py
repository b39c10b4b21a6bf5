"""The tokenizer and chat template inside a GGUF, as the folder that `engine.tokenizer` names.

A GGUF holds vocabulary, merges and template, and only the name of the rule that splits a text ahead of the merges. Each
rule is written out here, and is known to be right: tests hold the toy pair's own `tokenizer.json` against it, and
docs/demo.md says how SmolLM2's was held against llama.cpp's `/tokenize`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.errors import EngineError

_CONTROL = 3
"""Type of a token that no text may spell, as GGUF numbers them."""

RULES = ("gpt-2", "smollm")
"""Splitting rules that are written out here."""


def tokenizer_files(model: Path) -> dict[str, str]:
    """Return the text of `tokenizer.json` and `tokenizer_config.json` of a GGUF.

    Raises
    ------
    EngineError
        If `gguf` is not installed, the file is no GGUF, or its tokenizer is of a kind that is not known here.
    """
    values = _metadata(model)
    kind, rule = values["tokenizer.ggml.model"], values.get("tokenizer.ggml.pre")
    if kind != "gpt2" or rule not in RULES:
        raise EngineError(f"{model}: its tokenizer ({kind}, {rule}) is none of gpt2 with {' or '.join(RULES)}")
    tokens, types = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    controls = [token for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL]
    config = {"chat_template": values.get("tokenizer.chat_template", "")}
    for name, key in (("bos_token", "bos_token_id"), ("eos_token", "eos_token_id")):
        number = values.get(f"tokenizer.ggml.{key}")
        if number is not None:
            config[name] = tokens[number]
    return {
        "tokenizer.json": _tokenizer_json(tokens, values["tokenizer.ggml.merges"], controls, rule),
        "tokenizer_config.json": json.dumps(config, ensure_ascii=False, indent=1) + "\n",
    }


def _metadata(model: Path) -> dict[str, Any]:
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError:
        raise EngineError("gguf is not installed; install speedbench[llamacpp]") from None
    try:
        fields = GGUFReader(model).fields
    except (OSError, ValueError) as error:
        raise EngineError(f"{model}: not a GGUF: {error}") from None
    return {name: field.contents() for name, field in fields.items() if name.startswith("tokenizer.")}


def _tokenizer_json(tokens: list[str], merges: list[str], controls: list[str], rule: str) -> str:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {token: number for number, token in enumerate(tokens)}
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False)
    one_digit = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([one_digit, by_bytes]) if rule == "smollm" else by_bytes
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in controls])
    return str(tokenizer.to_str(pretty=True))
