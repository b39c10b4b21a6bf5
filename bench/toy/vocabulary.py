"""The tokenizer of the toy pair: byte-level BPE of 512 tokens, and a chat template of four special tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SIZE = 512
POSITIONS = 8192
BOS, EOS, USER, ASSISTANT = "<s>", "</s>", "<|user|>", "<|assistant|>"
SPECIALS = (BOS, EOS, USER, ASSISTANT)
"""Their ids are 0, 1, 2, 3."""
BOS_ID, EOS_ID, USER_ID, ASSISTANT_ID = range(4)

# A system message is read as one of the user's; only the answers end with the end of text.
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}{{ '<|assistant|>' + message['content'] + eos_token }}"
    "{%- else -%}{{ '<|user|>' + message['content'] }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)


def train_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Return the byte-level BPE of the texts; any text can be encoded, since all 256 bytes are tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the files that both models share."""
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": EOS,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": POSITIONS,
        "chat_template": CHAT_TEMPLATE,
    }
    ids = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "pad_token_id": EOS_ID}
    for name, value in (("tokenizer_config.json", settings), ("generation_config.json", ids)):
        (folder / name).write_text(json.dumps(value, indent=2) + "\n", "utf-8")
