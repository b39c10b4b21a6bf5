"""The simulator's tokenizer: a token a byte, and four marks of a chat. Text and ids are two writings of one thing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

MARKS = ("<|bos|>", "<|end|>", "<|user|>", "<|assistant|>")
BOS, END, USER, ASSISTANT = range(256, 256 + len(MARKS))
VOCAB_SIZE = 256 + len(MARKS)

CHAT_TEMPLATE = (
    "<|bos|>{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

_MARK = re.compile("|".join(re.escape(mark) for mark in MARKS))


def encode(text: str) -> list[int]:
    """Return the ids of a text; the marks are single tokens."""
    ids, start = list[int](), 0
    for match in _MARK.finditer(text):
        ids += text[start : match.start()].encode()
        ids.append(256 + MARKS.index(match.group()))
        start = match.end()
    return ids + list(text[start:].encode())


def decode(ids: Sequence[int]) -> str:
    """Return the text of ids; marks have none."""
    return bytes(i for i in ids if i < 256).decode("utf-8", "replace")


def encode_chat(messages: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the ids of a chat as `CHAT_TEMPLATE` writes it, with the mark that asks for an answer."""
    roles = {"user": "<|user|>", "assistant": "<|assistant|>"}
    turns = "".join(f"{roles[m['role']]}{m['content']}<|end|>" for m in messages)
    return encode(f"<|bos|>{turns}<|assistant|>")


def write_tokenizer(folder: Path) -> Path:
    """Write `tokenizer.json` and `tokenizer_config.json` of this vocabulary, and return the folder."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocab = {symbol: byte for byte, symbol in enumerate(_byte_symbols())}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"chat_template": CHAT_TEMPLATE, "bos_token": "<|bos|>", "eos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return folder


def _byte_symbols() -> list[str]:
    """Return the printable symbol of each byte, as byte-level tokenizers write them (GPT-2)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    symbols, spare = list[str](), 256
    for byte in range(256):
        if byte in printable:
            symbols.append(chr(byte))
        else:
            symbols.append(chr(spare))
            spare += 1
    return symbols
