"""TensorRT-LLM (trtllm-serve): completions with ids; no field that it does not know, for it refuses those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from bench.answer import Answer, SpecCounters
from bench.counters import CounterNames
from bench.engines.base import Ask, Gathered, PromptForm, Tells, json_events, read_usage, stream_error
from bench.sse import Event


class TrtllmCompletions:
    """`/v1/completions` without detokenizing; the metrics event follows `[DONE]`."""

    name: ClassVar[str] = "trtllm"
    route: ClassVar[str] = "/v1/completions"
    takes: ClassVar[PromptForm] = "ids"
    tells: ClassVar[Tells] = Tells("", chunk_ids=True)
    counters: ClassVar[CounterNames | None] = CounterNames(
        drafts="",
        draft_tokens="trtllm_spec_decode_num_draft_tokens_total",
        accepted="trtllm_spec_decode_num_accepted_tokens_total",
        accepted_at="trtllm_spec_decode_accepted_tokens_total",
        drafted_at="trtllm_spec_decode_drafted_tokens_total",
        position_label="token_position",
        draft_share="trtllm_spec_decode_draft_overhead",
    )
    metrics_path: ClassVar[str] = "/prometheus/metrics"
    info_path: ClassVar[str] = "/version"
    reset_path: ClassVar[str] = ""
    ever_run: ClassVar[bool] = False

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body."""
        s = ask.sampling
        return {
            "model": ask.model,
            "prompt": list(ask.ids or ()),
            "max_tokens": s.max_tokens,
            "temperature": s.temperature,
            "top_p": s.top_p,
            "seed": s.seed,
            "ignore_eos": s.ignore_eos,
            "detokenize": False,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }

    def headers(self) -> dict[str, str]:
        """Return the header that asks for metrics."""
        return {"X-TRTLLM-return-metrics": "1"}

    def read(self, events: Iterable[Event]) -> Answer:
        """Return the answer; totals of drafts come in the metrics event, without the number of steps."""
        parts, spec = Gathered(), None
        for event, value in json_events(events):
            if event.name == "trtllm.perf_metrics":
                parts.extras["perf_metrics"] = value
                spec = _spec_counters(value) or spec
                continue
            error = stream_error(event, value)
            if error:
                return Answer(error=error)
            parts.usage = read_usage(value.get("usage"), parts.usage)
            for choice in value.get("choices") or ():
                parts.add_choice(event, choice)
                spec = _spec_counters(choice) or spec
        return parts.answer(chunk_ids=bool(parts.ids), spec=spec)


def _spec_counters(value: Mapping[str, Any]) -> SpecCounters | None:
    spec = value.get("speculative_decoding")
    if not spec:
        return None
    histogram = spec.get("acceptance_histogram")
    return SpecCounters(
        histogram=None if histogram is None else tuple(histogram),
        steps=spec.get("num_spec_steps"),
        matched=spec.get("total_accepted_draft_tokens"),
        drafted=spec.get("total_draft_tokens"),
        draft_length=spec.get("num_spec_tokens"),
    )
