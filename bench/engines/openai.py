"""Any OpenAI-compatible server: text in and out, tokens by usage, no counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from bench.answer import Answer, ChunkKind
from bench.counters import CounterNames
from bench.engines.base import Ask, Gathered, PromptForm, Tells, json_events, read_usage, stream_error
from bench.sse import Event


class OpenAIChat:
    """`/v1/chat/completions` with nothing beyond the public interface."""

    name: ClassVar[str] = "openai"
    route: ClassVar[str] = "/v1/chat/completions"
    takes: ClassVar[PromptForm] = "messages"
    tells: ClassVar[Tells] = Tells("", chunk_ids=False, reasoning=True)
    counters: ClassVar[CounterNames | None] = None
    metrics_path: ClassVar[str] = ""
    info_path: ClassVar[str] = "/v1/models"
    reset_path: ClassVar[str] = ""
    ever_run: ClassVar[bool] = True

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body; `ignore_eos` is no field of this interface and must be False."""
        if ask.sampling.ignore_eos:
            raise ValueError("ignore_eos is not a field of the OpenAI interface, got True")
        return chat_payload(ask)

    def headers(self) -> dict[str, str]:
        """Return no further headers."""
        return {}

    def read(self, events: Iterable[Event]) -> Answer:
        """Return the answer; tokens of a chunk come from running usage where the server sends it."""
        return read_chat(events, chunk_ids=False)


def chat_payload(ask: Ask) -> dict[str, Any]:
    """Return the fields that every server of chat completions takes."""
    sampling = ask.sampling
    payload: dict[str, Any] = {
        "model": ask.model,
        "messages": [dict(message) for message in ask.messages or ()],
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if ask.chat_template_kwargs:
        payload["chat_template_kwargs"] = dict(ask.chat_template_kwargs)
    return payload


def read_chat(events: Iterable[Event], *, chunk_ids: bool) -> Answer:
    """Read a stream of chat completions; reasoning comes as `reasoning` or `reasoning_content`."""
    parts = Gathered()
    for event, value in json_events(events):
        error = stream_error(event, value)
        if error:
            return Answer(error=error)
        before = parts.usage.completion_tokens or 0
        parts.usage = read_usage(value.get("usage"), parts.usage)
        running = (value.get("usage") or {}).get("completion_tokens")
        for choice in value.get("choices") or ():
            delta = choice.get("delta") or {}
            reasoning = delta.get("reasoning") or delta.get("reasoning_content") or ""
            kind: ChunkKind = "reasoning" if reasoning else "answer"
            ids = choice.get("token_ids")
            count = running - before if running is not None else None
            if chunk_ids:
                parts.ids += ids or ()
                count = len(ids or ())
            parts.add(event, reasoning or delta.get("content") or "", count, kind)
            parts.finish_reason = choice.get("finish_reason") or parts.finish_reason
        _keep_extras(parts, value)
    return parts.answer(chunk_ids=chunk_ids and bool(parts.ids))


def _keep_extras(parts: Gathered, value: dict[str, Any]) -> None:
    for key in ("metrics", "timings", "sglext"):
        if value.get(key):
            parts.extras[key] = value[key]
