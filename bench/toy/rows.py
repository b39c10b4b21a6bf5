"""Rows of token ids to train on, drawn with a seed: windows of text, short chats one after another, and long chats."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.toy.corpus import Chat, Corpus
from bench.toy.vocabulary import ASSISTANT_ID, BOS_ID, EOS_ID, USER_ID

if TYPE_CHECKING:
    from tokenizers import Tokenizer

HELD_OUT = 20
"""Every twentieth file, chapter, text and chat is not trained on."""
LONG = 1024
"""Rows from this length on are long chats, half the time."""

Ids = list[int]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Mixture:
    """How often each kind is drawn, in parts; `chats` are shares within the chats."""

    code: float
    manual: float
    prose: float
    chat: float
    chats: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Texts as one stream of ids a kind, and chats as lists of ids a kind."""

    streams: Mapping[str, NDArray[np.int64]]
    chats: Mapping[str, Sequence[Ids]]


def encode_corpus(corpus: Corpus, tokenizer: Tokenizer, *, held_out: bool) -> Encoded:
    """Return the ids of what is trained on, or of what is held out."""
    texts = {"code": corpus.code, "manual": corpus.manual, "prose": corpus.prose}
    streams = {kind: _stream(_part(documents, held_out), tokenizer) for kind, documents in texts.items()}
    kinds: dict[str, list[Ids]] = {}
    for chat in _part(corpus.chats, held_out):
        kinds.setdefault(chat.kind, []).append(chat_ids(chat, tokenizer))
    return Encoded(streams, kinds)


def _part(items: Sequence[_T], held_out: bool) -> list[_T]:
    return [item for n, item in enumerate(items) if (n % HELD_OUT == HELD_OUT - 1) == held_out]


def _stream(documents: Sequence[str], tokenizer: Tokenizer) -> NDArray[np.int64]:
    encoded = tokenizer.encode_batch(list(documents), add_special_tokens=False)
    return np.asarray([i for one in encoded for i in (BOS_ID, *one.ids, EOS_ID)], np.int64)


def chat_ids(chat: Chat, tokenizer: Tokenizer) -> Ids:
    """Return the ids of a chat as the chat template writes it."""
    ids = [BOS_ID]
    for n, turn in enumerate(chat.turns):
        encoded = tokenizer.encode(turn, add_special_tokens=False).ids
        ids += [ASSISTANT_ID, *encoded, EOS_ID] if n % 2 else [USER_ID, *encoded]
    return ids


class Drawer:
    """Draws rows of one length after another from encoded texts."""

    def __init__(self, encoded: Encoded, mixture: Mixture, seed: int) -> None:
        self._encoded = encoded
        self._mixture = mixture
        self._rng = random.Random(seed)

    def rows(self, count: int, length: int) -> NDArray[np.int64]:
        """Return `count` rows, shape (count, length + 1): inputs and, shifted by one, targets."""
        return np.stack([self._row(length + 1) for _ in range(count)])

    def _row(self, length: int) -> NDArray[np.int64]:
        mix = self._mixture
        if length > LONG and self._rng.random() < 0.5:
            return self._chats(self._long_chat(length), length)
        kinds = {"code": mix.code, "manual": mix.manual, "prose": mix.prose, "chat": mix.chat}
        kind = self._pick(kinds)
        return self._chats([], length) if kind == "chat" else self._window(kind, length)

    def _pick(self, parts: Mapping[str, float]) -> str:
        return self._rng.choices(list(parts), list(parts.values()))[0]

    def _window(self, kind: str, length: int) -> NDArray[np.int64]:
        stream = self._encoded.streams[kind]
        if len(stream) <= length:
            stream = np.tile(stream, length // max(1, len(stream)) + 2)
        at = self._rng.randrange(len(stream) - length)
        return stream[at : at + length]

    def _chats(self, ids: Ids, length: int) -> NDArray[np.int64]:
        """Return chats one after another, each from its own beginning of text."""
        while len(ids) < length:
            chats = self._encoded.chats[self._pick(self._mixture.chats)]
            ids = ids + self._rng.choice(chats)
        return np.asarray(ids[:length], np.int64)

    def _long_chat(self, length: int) -> Ids:
        """Return a chat whose user shows a long text before the question."""
        kind = self._pick({"code": self._mixture.code, "manual": self._mixture.manual})
        shown = self._window(kind, self._rng.randrange(length // 4, length - 300)).tolist()
        asked = self._rng.choice(self._encoded.chats[self._pick(self._mixture.chats)])
        return [BOS_ID, USER_ID, *(i for i in shown if i > ASSISTANT_ID), *asked[2:]]
