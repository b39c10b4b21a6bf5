"""vLLM: completions and the token-in route, with counters of every verify step where the server is asked for them.

Start the server with `--per-request-spec-decode-metrics detailed`, and `--no-enable-prefix-caching` for a cold run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from bench.answer import Answer, SpecCounters
from bench.counters import CounterNames
from bench.engines.base import Ask, Gathered, PromptForm, Tells, json_events, read_usage, stream_error
from bench.engines.openai import chat_payload, read_chat
from bench.sse import Event

COUNTERS = CounterNames(
    drafts="vllm:spec_decode_num_drafts_total",
    draft_tokens="vllm:spec_decode_num_draft_tokens_total",
    accepted="vllm:spec_decode_num_accepted_tokens_total",
    accepted_at="vllm:spec_decode_num_accepted_tokens_per_pos_total",
    cache_hits="vllm:prefix_cache_hits_total",
)

# Unless told otherwise the server takes these from the model's generation_config.json, the penalty when greedy too.
_NEUTRAL = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


def spec_counters(metrics: Mapping[str, Any] | None) -> SpecCounters | None:
    """Return the counters under `metrics.speculative_decoding`; None where the server was not asked for them."""
    spec = (metrics or {}).get("speculative_decoding")
    if not spec:
        return None
    matched, drafted = spec.get("per_step_accepted"), spec.get("per_step_drafted")
    per_step = None
    if matched is not None:
        per_step = tuple(zip(drafted or [None] * len(matched), matched, strict=True))
    histogram = spec.get("acceptance_histogram")
    return SpecCounters(
        per_step=per_step,
        histogram=None if histogram is None else tuple(histogram),
        steps=spec.get("num_spec_steps"),
        matched=spec.get("num_accepted_draft_tokens"),
        drafted=spec.get("num_draft_tokens"),
        draft_length=spec.get("num_spec_tokens"),
    )


class VllmCompletions:
    """`/v1/completions` with token ids in and out."""

    name: ClassVar[str] = "vllm"
    route: ClassVar[str] = "/v1/completions"
    takes: ClassVar[PromptForm] = "ids"
    tells: ClassVar[Tells] = Tells("per_step", chunk_ids=True, cache_control="salt")
    counters: ClassVar[CounterNames | None] = COUNTERS
    metrics_path: ClassVar[str] = "/metrics"
    info_path: ClassVar[str] = "/version"
    reset_path: ClassVar[str] = "/reset_prefix_cache"
    ever_run: ClassVar[bool] = True

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body; ids need neither template nor BOS."""
        payload = {
            "model": ask.model,
            "prompt": list(ask.ids or ()),
            **_sampling(ask),
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_token_ids": True,
        }
        return _salted(payload, ask)

    def headers(self) -> dict[str, str]:
        """Return no further headers."""
        return {}

    def read(self, events: Iterable[Event]) -> Answer:
        """Return the answer; the counters ride on the last usage event, which has no choice."""
        parts, spec = Gathered(), None
        for event, value in json_events(events):
            error = stream_error(event, value)
            if error:
                return Answer(error=error)
            parts.usage = read_usage(value.get("usage"), parts.usage)
            for choice in value.get("choices") or ():
                parts.add_choice(event, choice)
            spec = spec_counters(value.get("metrics")) or spec
            parts.extras.update(value.get("metrics") or {})
        return parts.answer(chunk_ids=bool(parts.ids), spec=spec)


class VllmGenerate(VllmCompletions):
    """`/inference/v1/generate`: ids in, ids out, no detokenizer in between."""

    route: ClassVar[str] = "/inference/v1/generate"
    ever_run: ClassVar[bool] = False

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body of the token-in route."""
        payload = {
            "model": ask.model,
            "token_ids": list(ask.ids or ()),
            "sampling_params": _sampling(ask),
            "stream": True,
            "stream_options": {"include_usage": True},
            "output_mode": "tokens",
        }
        return _salted(payload, ask)


class VllmChat(VllmCompletions):
    """`/v1/chat/completions`: messages in; the one route that tells reasoning from answer."""

    route: ClassVar[str] = "/v1/chat/completions"
    takes: ClassVar[PromptForm] = "messages"
    ever_run: ClassVar[bool] = False
    tells: ClassVar[Tells] = Tells("per_step", chunk_ids=True, reasoning=True, cache_control="salt")

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body; the server's chat template is used."""
        own = {"return_token_ids": True, "ignore_eos": ask.sampling.ignore_eos, **_NEUTRAL}
        payload = {**chat_payload(ask), **own}
        return _salted(payload, ask)

    def read(self, events: Iterable[Event]) -> Answer:
        """Return the answer with reasoning apart."""
        answer = read_chat(events, chunk_ids=True)
        return replace(answer, spec=spec_counters(answer.extras.get("metrics")))


def _sampling(ask: Ask) -> dict[str, Any]:
    s = ask.sampling
    return {
        "max_tokens": s.max_tokens,
        "temperature": s.temperature,
        "top_p": s.top_p,
        "seed": s.seed,
        "ignore_eos": s.ignore_eos,
        **_NEUTRAL,
    }


def _salted(payload: dict[str, Any], ask: Ask) -> dict[str, Any]:
    return {**payload, "cache_salt": ask.cache_salt} if ask.cache_salt else payload
