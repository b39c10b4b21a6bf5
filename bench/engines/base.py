"""What an engine over HTTP is to the runner: how it is asked, what it can tell, how it is read. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import orjson

from bench.answer import Answer, Chunk, ChunkKind, Usage
from bench.counters import CounterNames
from bench.sse import Event, parse_events
from bench.trace import Reads

JsonObject = Mapping[str, Any]
Messages = Sequence[Mapping[str, str]]
PromptForm = Literal["ids", "messages"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; stated in every request, for engines differ in what they assume."""

    max_tokens: int = 1024
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """One request before it takes an engine's form: token ids, or messages where the engine takes only text."""

    model: str
    sampling: Sampling
    ids: Sequence[int] | None = None
    messages: Messages | None = None
    cache_salt: str = ""
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tells:
    """What an engine can tell. Absent is not zero: what is False or "" here is None in every result.

    Attributes
    ----------
    per_request
        Finest counters of a request: "per_step", "histogram", "totals" or "" for none.
    chunk_ids
        Whether the tokens of a chunk are told by id.
    event_is_step
        Whether a step arrives as one event; else merged reads say nothing and steps are grouped by counters.
    reasoning
        Whether reasoning and answer come apart.
    cached_tokens
        Whether prompt tokens from a prefix cache are told.
    cache_control
        How a prefix cache is kept out: "salt" or "request" in each request, "reset" by a call, "server" by a flag.
    """

    per_request: Literal["per_step", "histogram", "totals", ""]
    chunk_ids: bool
    event_is_step: bool = True
    reasoning: bool = False
    cached_tokens: bool = True
    cache_control: Literal["salt", "request", "reset", "server"] = "server"


class Engine(Protocol):
    """One engine by one route."""

    name: ClassVar[str]
    route: ClassVar[str]
    takes: ClassVar[PromptForm]
    tells: ClassVar[Tells]
    counters: ClassVar[CounterNames | None]
    metrics_path: ClassVar[str]
    info_path: ClassVar[str]
    reset_path: ClassVar[str]
    ever_run: ClassVar[bool]

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the JSON body of a streaming request."""
        ...

    def headers(self) -> dict[str, str]:
        """Return headers besides the content type."""
        ...

    def read(self, events: Iterable[Event]) -> Answer:
        """Return what the events of one stream say."""
        ...


def encode(payload: JsonObject) -> bytes:
    """Return the body of a request."""
    return orjson.dumps(payload)


def parse_answer(engine: Engine, reads: Reads, status: int | None, error: str = "") -> Answer:
    """Return the answer that was read, failures included: a bad status, no stream, an `error` event, no finish.

    Parameters
    ----------
    error
        What the transport reported, "" if nothing.
    """
    if error:
        return Answer(error=error)
    if status != 200:
        return Answer(error=f"HTTP {status}: {_message(reads.body)}")
    events = list(parse_events(reads))
    if not events:
        return Answer(error=f"no events: {_message(reads.body)}" if reads.body else "empty stream")
    try:
        answer = engine.read(events)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as fault:
        return Answer(error=f"unreadable event: {type(fault).__name__}: {fault}")
    if not answer.error and not answer.num_tokens:
        return Answer(error="no tokens", usage=answer.usage, finish_reason=answer.finish_reason)
    if not answer.error and answer.finish_reason is None:
        return Answer(error="no finish reason: the stream was cut", usage=answer.usage)
    return answer


def _message(body: bytes) -> str:
    try:
        value = json.loads(body)
    except ValueError:
        return body[:200].decode("utf-8", "replace").strip()
    return error_text(value) or str(value)[:200]


def error_text(value: object) -> str:
    """Return the error message in a JSON object of an OpenAI-like server, "" if it holds none."""
    if not isinstance(value, Mapping):
        return ""
    error = value.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message") or error)
    return str(error or "")


def json_events(events: Iterable[Event]) -> Iterator[tuple[Event, dict[str, Any]]]:
    """Yield each JSON event, those after `[DONE]` too; the marker itself is skipped.

    Raises
    ------
    ValueError
        If the data of an event is not a JSON object.
    """
    for event in events:
        if event.data == b"[DONE]":
            continue
        value = orjson.loads(event.data)
        if not isinstance(value, dict):
            raise ValueError(f"event is not an object: {event.data[:80]!r}")
        yield event, value


def stream_error(event: Event, value: JsonObject) -> str:
    """Return the message of an error sent inside a stream that began well, "" for any other event."""
    if event.name == "error":
        return error_text(value) or str(value.get("message") or value)[:200]
    return error_text(value)


@dataclass(slots=True)
class Gathered:
    """The parts of an answer while its events are read."""

    chunks: list[Chunk] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    extras: dict[str, Any] = field(default_factory=dict)

    def add(self, event: Event, text: str, count: int | None, kind: ChunkKind = "answer") -> None:
        """Add one piece of content; an event without any (a role, a usage) is no chunk."""
        if not text and not count:
            return
        (self.reasoning if kind == "reasoning" else self.text).append(text)
        self.chunks.append(Chunk(event.at_ns, count, kind, event.read))

    def add_choice(self, event: Event, choice: JsonObject) -> None:
        """Add one choice of a completions event that carries its token ids."""
        ids = choice.get("token_ids") or ()
        self.ids += ids
        self.add(event, choice.get("text") or "", len(ids) if ids else None)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def answer(self, *, chunk_ids: bool, **more: Any) -> Answer:
        """Return the whole."""
        return Answer(
            tuple(self.chunks),
            "".join(self.text),
            "".join(self.reasoning),
            tuple(self.ids) if chunk_ids else None,
            chunk_ids,
            self.usage,
            self.finish_reason,
            extras=self.extras,
            **more,
        )


def read_usage(value: JsonObject | None, default: Usage) -> Usage:
    """Return an OpenAI-style usage object; fields that it lacks keep their default."""
    if not value:
        return default
    details = value.get("prompt_tokens_details") or {}
    return Usage(
        value.get("prompt_tokens", default.prompt_tokens),
        value.get("completion_tokens", default.completion_tokens),
        details.get("cached_tokens", default.cached_tokens),
    )
