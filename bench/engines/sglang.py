"""SGLang: `/generate` with ids in and out; incremental or cumulative streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from bench.answer import Answer, SpecCounters, Usage
from bench.counters import CounterNames
from bench.engines.base import Ask, Gathered, PromptForm, Tells, json_events, stream_error
from bench.sse import Event


class SglangGenerate:
    """`/generate`; the counters come with the finish."""

    name: ClassVar[str] = "sglang"
    route: ClassVar[str] = "/generate"
    takes: ClassVar[PromptForm] = "ids"
    tells: ClassVar[Tells] = Tells("histogram", chunk_ids=True, cache_control="reset")
    counters: ClassVar[CounterNames | None] = None
    metrics_path: ClassVar[str] = "/metrics"
    info_path: ClassVar[str] = "/server_info"
    reset_path: ClassVar[str] = "/flush_cache"
    ever_run: ClassVar[bool] = False

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body."""
        s = ask.sampling
        return {
            "input_ids": list(ask.ids or ()),
            "stream": True,
            "sampling_params": {
                "temperature": s.temperature,
                "top_p": s.top_p,
                "max_new_tokens": s.max_tokens,
                "sampling_seed": s.seed,
                "ignore_eos": s.ignore_eos,
            },
        }

    def headers(self) -> dict[str, str]:
        """Return no further headers."""
        return {}

    def read(self, events: Iterable[Event]) -> Answer:
        """Return the answer, whichever way the server streams.

        A cumulative event repeats all before it, so each event's own ids are those beyond what `completion_tokens`
        said before; an incremental one holds only its own.
        """
        parts, seen, text = Gathered(), 0, ""
        meta: Mapping[str, Any] = {}
        for event, value in json_events(events):
            error = stream_error(event, value)
            if error:
                return Answer(error=error)
            meta = value.get("meta_info") or {}
            ids, piece = value.get("output_ids") or [], value.get("text") or ""
            total = meta.get("completion_tokens")
            own = _own_ids(ids, seen, total)
            if len(own) < len(ids) or (len(ids) == total and piece.startswith(text)):
                piece, text = piece[len(text) :], piece
            seen += len(own)
            parts.ids += own
            parts.add(event, piece, len(own) or None)
            finish = meta.get("finish_reason")
            if finish:
                parts.finish_reason = finish["type"] if isinstance(finish, Mapping) else str(finish)
        parts.usage = Usage(meta.get("prompt_tokens"), meta.get("completion_tokens"), meta.get("cached_tokens"))
        parts.extras = {key: meta[key] for key in ("e2e_latency", "spec_accept_length") if key in meta}
        if parts.finish_reason == "abort":
            return Answer(error=f"aborted: {meta.get('finish_reason')}")
        return parts.answer(chunk_ids=bool(parts.ids), spec=_spec_counters(meta))


def _own_ids(ids: Sequence[int], seen: int, total: int | None) -> Sequence[int]:
    """Return the ids that this event adds; an event as long as the running total repeats what was seen."""
    if seen and total is not None and len(ids) == total:
        return ids[seen:]
    return ids


def _spec_counters(meta: Mapping[str, Any]) -> SpecCounters | None:
    steps = meta.get("spec_verify_ct")
    if steps is None:
        return None
    histogram = meta.get("spec_correct_drafts_histogram")
    k = None if histogram is None else len(histogram) - 1
    # Computed by the server as steps x (draft tokens - 1): of a tree these are its nodes, more than the path is deep.
    # (`spec_accept_length` is not used: it counts the prefill's token as well.)
    proposed = meta.get("spec_num_proposed_drafts")
    is_tree = k is not None and proposed is not None and proposed > steps * k
    return SpecCounters(
        histogram=None if histogram is None else tuple(histogram),
        steps=steps,
        matched=meta.get("spec_num_correct_drafts"),
        drafted=None if is_tree else proposed,
        draft_length=k,
        nodes=proposed if is_tree else None,
    )
