"""Prompts as an engine takes them: templated and tokenised once, later turns from the exact answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import jinja2
import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bench.answer import Answer
from bench.engines.base import Ask, Engine, Sampling, encode
from bench.errors import BenchError
from bench.split import Conversation
from bench.tokenizer_folder import tokenizer_folder

_PLACE = "\N{OBJECT REPLACEMENT CHARACTER}answer\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for an answer while its surroundings are templated."""

Message = Mapping[str, str]


class Tokenizer(Protocol):
    """What is used of a tokenizer: exact ids of a text without specials of its own."""

    def encode(self, text: str) -> list[int]:
        """Return the ids; special tokens that the text spells are single tokens, none is added."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text, special tokens left out."""
        ...


class JsonTokenizer:
    """A `tokenizer.json`, read by the tokenizers library."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer as Loaded

        self._loaded = Loaded.from_file(str(path))

    def encode(self, text: str) -> list[int]:
        """Return the ids."""
        ids: list[int] = self._loaded.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text."""
        return str(self._loaded.decode(list(ids), skip_special_tokens=True))


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """A model's own tokenizer and chat template.

    Attributes
    ----------
    sha256
        Digest of both, for provenance and for the comparison of runs.
    """

    tokenizer: Tokenizer
    template: str
    specials: Mapping[str, str] = field(default_factory=dict)
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    def render(self, messages: Sequence[Message]) -> str:
        """Return the text of a chat that asks for an answer."""
        template = _environment().from_string(self.template)
        values = {**self.specials, **self.kwargs}
        return template.render(messages=list(messages), add_generation_prompt=True, **values)

    def first_ids(self, turn: str) -> list[int]:
        """Return the ids of the first request of a conversation."""
        return _checked(self.tokenizer.encode(self.render([_user(turn)])))

    def next_ids(
        self, last_ids: Sequence[int], messages: Sequence[Message], answer_ids: Sequence[int], turn: str
    ) -> list[int]:
        """Return the ids of a later request, with the ids that were sent and answered in their places.

        Parameters
        ----------
        last_ids, messages
            The request before, as ids and as a chat that ends with a user turn.
        answer_ids
            What was answered to it, without the token that ended it.

        Notes
        -----
        The chat is templated around a mark and cut there, so that only what follows the answer is encoded anew: the
        answer keeps the tokens that the model chose, whatever the tokenizer would make of its text. A template that
        writes the past differently once it is past has that part encoded from its text.
        """
        text = self.render([*messages, {"role": "assistant", "content": _PLACE}, _user(turn)])
        before, mark, after = text.partition(_PLACE)
        if not mark or _PLACE in after:
            raise BenchError("the chat template does not show an assistant's turn as it is; use a chat route")
        past = last_ids if before == self.render(messages) else self.tokenizer.encode(before)
        return _checked([*past, *answer_ids, *self.tokenizer.encode(after)])


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _checked(ids: list[int]) -> list[int]:
    if len(ids) > 1 and ids[0] == ids[1] and ids[0] > 0:
        raise BenchError(f"the prompt begins with token {ids[0]} twice: template and tokenizer both add a BOS")
    return ids


def _environment() -> ImmutableSandboxedEnvironment:
    """Return the environment in which models' chat templates are written to run."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = _refuse
    # A template may write today's date; a fixed one keeps the prompts of two days the same.
    environment.globals["strftime_now"] = lambda layout: datetime(2025, 1, 1).strftime(layout)
    return environment


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def load_chat_format(folder: str | Path, kwargs: Mapping[str, Any]) -> ChatFormat:
    """Return tokenizer and template of a model: its folder, or its id on the Hub.

    Raises
    ------
    BenchError
        If the folder lacks `tokenizer.json` or a chat template.
    """
    root = tokenizer_folder(str(folder))
    tokenizer, config = root / "tokenizer.json", root / "tokenizer_config.json"
    if not tokenizer.is_file():
        raise BenchError(f"{root}: no tokenizer.json; engine.tokenizer must name the folder of the served model")
    values: dict[str, Any] = json.loads(config.read_text("utf-8")) if config.is_file() else {}
    separate = root / "chat_template.jinja"
    template = separate.read_text("utf-8") if separate.is_file() else values.get("chat_template")
    if isinstance(template, list):
        template = next((t["template"] for t in template if t["name"] == "default"), None)
    if not template:
        raise BenchError(f"{root}: no chat template in chat_template.jinja or tokenizer_config.json")
    specials = {key: _token_text(values[key]) for key in ("bos_token", "eos_token", "pad_token") if values.get(key)}
    digest = hashlib.sha256(tokenizer.read_bytes() + str(template).encode()).hexdigest()
    return ChatFormat(JsonTokenizer(tokenizer), str(template), specials, kwargs, digest)


def _token_text(token: str | Mapping[str, Any]) -> str:
    return token if isinstance(token, str) else str(token["content"])


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request of a conversation, before it is encoded: ids, or messages where the engine takes text."""

    messages: tuple[Message, ...]
    ids: tuple[int, ...] | None

    @property
    def sha256(self) -> str:
        """Digest of the ids, else of the messages."""
        if self.ids is not None:
            return hashlib.sha256(np.asarray(self.ids, np.uint32).tobytes()).hexdigest()
        return hashlib.sha256(json.dumps([dict(m) for m in self.messages], ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Composer:
    """Writes the requests of a run for one engine.

    Attributes
    ----------
    salt
        Keeps the prefix cache of this run apart from any other's.
    draws
        Goes into the seed of every sampled request, so that two runs that differ in it draw independently.
    """

    engine: Engine
    model: str
    sampling: Sampling
    chat: ChatFormat | None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    salt: str = ""
    draws: str = ""

    def first(self, conversation: Conversation) -> Prompt:
        """Return the first prompt."""
        messages = (_user(conversation.turns[0]),)
        if self.engine.takes == "messages":
            if conversation.random_ids:
                text = conversation.turns[0] or bytes(conversation.random_ids).decode()
                return Prompt((_user(text),), None)
            return Prompt(messages, None)
        if conversation.random_ids:
            return Prompt(messages, conversation.random_ids)
        return Prompt(messages, tuple(self._chat().first_ids(conversation.turns[0])))

    def following(self, conversation: Conversation, turn: int, last: Prompt, answer: Answer) -> Prompt:
        """Return the prompt of a later turn, from exactly what was answered."""
        assistant = {"role": "assistant", "content": self.answer_text(answer)}
        messages = (*last.messages, assistant, _user(conversation.turns[turn]))
        if self.engine.takes == "messages":
            return Prompt(messages, None)
        chat = self._chat()
        if answer.token_ids is None or last.ids is None:
            return Prompt(messages, tuple(_checked(chat.tokenizer.encode(chat.render(messages)))))
        ids = chat.next_ids(last.ids, last.messages, self._without_end(answer), conversation.turns[turn])
        return Prompt(messages, tuple(ids))

    def answer_text(self, answer: Answer) -> str:
        """Return the text that was answered; from the ids where the engine sends no text."""
        if answer.text or answer.token_ids is None or self.chat is None:
            return answer.text
        return self.chat.tokenizer.decode(self._without_end(answer))

    def body(self, prompt: Prompt, key: str) -> bytes:
        """Return the encoded request; `key` keeps the cache of one conversation apart from any other's."""
        sampling, salt = self._sampling(prompt, key), self._cache_salt(key)
        ask = Ask(self.model, sampling, prompt.ids, prompt.messages, salt, self.kwargs)
        try:
            return encode(self.engine.payload(ask))
        except ValueError as error:
            raise BenchError(f"{self.engine.name}: {error}") from None

    def _cache_salt(self, key: str) -> str:
        """Return a digest: vLLM takes no salt of more than 128 characters, or with an @ or a slash in it."""
        if not self.salt or self.engine.tells.cache_control != "salt":
            return ""
        return hashlib.sha256(f"{self.salt}-{key}".encode()).hexdigest()[:32]

    def _sampling(self, prompt: Prompt, key: str) -> Sampling:
        """Return how one request is sampled: greedy ones all alike, others each with a seed of its own.

        With one seed for all, repeats of a conversation would be copies of one another, and no sample.
        """
        if not self.sampling.temperature:
            return self.sampling
        text = "\x1f".join((str(self.sampling.seed), self.draws, key, prompt.sha256))
        # 31 bits: engines read a seed as a signed or an unsigned integer of 32 bits or more.
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
        return replace(self.sampling, seed=seed)

    def _without_end(self, answer: Answer) -> Sequence[int]:
        """Return the ids without the token that stopped the answer: the template writes its own end of turn."""
        ids = answer.token_ids or ()
        stopped = answer.finish_reason == "stop" and ids and not self._chat().tokenizer.decode(ids[-1:])
        return ids[:-1] if stopped else ids

    def _chat(self) -> ChatFormat:
        if self.chat is None:
            raise BenchError(f"{self.engine.name} takes token ids: set engine.tokenizer to the served model's folder")
        return self.chat


def write_prompts(folder: Path, prompts: Sequence[Prompt]) -> str:
    """Write the first prompts of a run as one file of uint32 ids and one of offsets, and return their SHA-256."""
    offsets = np.zeros(len(prompts) + 1, np.int64)
    offsets[1:] = np.cumsum([len(prompt.ids or ()) for prompt in prompts])
    digest = hashlib.sha256()
    with (folder / "prompts.u32").open("wb") as stream:
        for prompt in prompts:
            ids = np.asarray(prompt.ids or (), np.uint32).tobytes()
            digest.update(ids if prompt.ids is not None else prompt.sha256.encode())
            stream.write(ids)
    np.save(folder / "prompts.offsets.npy", offsets)
    return digest.hexdigest()


def write_bodies(folder: Path, bodies: Sequence[bytes]) -> tuple[Path, Path]:
    """Write encoded requests for the workers to map; return the paths of the bytes and of their offsets."""
    offsets = np.zeros(len(bodies) + 1, np.int64)
    offsets[1:] = np.cumsum([len(body) for body in bodies])
    with (folder / "bodies.bin").open("wb") as stream:
        stream.writelines(bodies)
    np.save(folder / "bodies.offsets.npy", offsets)
    return folder / "bodies.bin", folder / "bodies.offsets.npy"
