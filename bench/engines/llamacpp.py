"""llama.cpp's server: `/completion` with ids in and out; one event a token, steps told by running counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bench.answer import Answer, Chunk, SpecCounters, Usage
from bench.counters import CounterNames
from bench.engines.base import Ask, Gathered, PromptForm, Tells, json_events, stream_error
from bench.sse import Event

_FINISH = {"eos": "stop", "word": "stop", "limit": "length"}


@dataclass(slots=True)
class _Group:
    """Consecutive tokens under the same running counters: one drafted step, and plain steps that follow it."""

    drafted: int
    matched: int
    chunks: list[Chunk]


class LlamaCppCompletion:
    """`/completion` with `timings_per_token`, which tells the step of every token."""

    name: ClassVar[str] = "llamacpp"
    route: ClassVar[str] = "/completion"
    takes: ClassVar[PromptForm] = "ids"
    tells: ClassVar[Tells] = Tells("per_step", chunk_ids=True, event_is_step=False, cache_control="request")
    counters: ClassVar[CounterNames | None] = CounterNames(
        drafts="llamacpp:spec_decode_num_drafts_total",
        draft_tokens="llamacpp:spec_decode_num_draft_tokens_total",
        accepted="llamacpp:spec_decode_num_accepted_tokens_total",
        accepted_at="llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
        cache_hits="llamacpp:prompt_tokens_cached_total",
    )
    metrics_path: ClassVar[str] = "/metrics"
    info_path: ClassVar[str] = "/props"
    reset_path: ClassVar[str] = ""
    ever_run: ClassVar[bool] = True

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body; the prompt cache is off."""
        s = ask.sampling
        return {
            "prompt": list(ask.ids or ()),
            "n_predict": s.max_tokens,
            "temperature": s.temperature,
            "top_p": s.top_p,
            # Unless told otherwise the server cuts the distribution by these.
            "top_k": 0,
            "min_p": 0.0,
            "seed": s.seed,
            "ignore_eos": s.ignore_eos,
            "stream": True,
            "return_tokens": True,
            "timings_per_token": True,
            "cache_prompt": False,
        }

    def headers(self) -> dict[str, str]:
        """Return no further headers."""
        return {}

    def read(self, events: Iterable[Event]) -> Answer:
        """Return the answer with the tokens of each step joined to one chunk, stamped when the last of them came.

        The server tells no token whose bytes end inside a character: it waits for the rest, and then tells the last one
        only. An answer with such tokens has their number, but neither its ids nor its steps.
        """
        parts, groups, seen = Gathered(), list[_Group](), 0
        timings: Mapping[str, Any] = {}
        for event, value in json_events(events):
            error = stream_error(event, value)
            if error:
                return Answer(error=error)
            timings = value.get("timings") or timings
            ids = value.get("tokens") or ()
            parts.ids += ids
            parts.text.append(value.get("content") or "")
            if value.get("stop"):
                parts.finish_reason = _FINISH.get(str(value.get("stop_type")))
                parts.usage = _usage(value, timings)
            if ids:
                before, seen = seen, timings.get("predicted_n", seen + len(ids))
                _append(groups, timings, Chunk(event.at_ns, seen - before, read=event.read))
        parts.extras = dict(timings)
        if len(parts.ids) < (parts.usage.completion_tokens or 0):
            parts.chunks = [chunk for group in groups for chunk in group.chunks]
            return parts.answer(chunk_ids=False)
        spec, parts.chunks = _steps(groups, timings)
        return parts.answer(chunk_ids=bool(parts.ids), spec=spec)


def _usage(value: Mapping[str, Any], timings: Mapping[str, Any]) -> Usage:
    return Usage(
        value.get("tokens_evaluated", timings.get("prompt_n")),
        value.get("tokens_predicted", timings.get("predicted_n")),
        timings.get("cache_n"),
    )


def _append(groups: list[_Group], timings: Mapping[str, Any], chunk: Chunk) -> None:
    drafted, matched = timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
    if groups and (groups[-1].drafted, groups[-1].matched) == (drafted, matched):
        groups[-1].chunks.append(chunk)
    else:
        groups.append(_Group(drafted, matched, [chunk]))


def _steps(groups: list[_Group], timings: Mapping[str, Any]) -> tuple[SpecCounters | None, list[Chunk]]:
    """Split the groups into steps: ``matched + 1`` tokens of a drafted step, then plain steps of one token each."""
    chunks, per_step, delivered, plain = list[Chunk](), list[tuple[int | None, int]](), list[int](), 0
    drafted = matched = 0
    for group in groups:
        own = group.matched - matched
        size = min(own + 1, len(group.chunks)) if group.drafted > drafted else 0
        if size:
            per_step.append((group.drafted - drafted, own))
            delivered.append(size)
            chunks.append(_joined(group.chunks[:size]))
        chunks += group.chunks[size:]
        plain += len(group.chunks) - size
        drafted, matched = group.drafted, group.matched
    if not timings:
        return None, chunks
    # The prefill's token is a chunk of its own, but no step.
    plain -= 1
    if "draft_n" not in timings:  # the server leaves them out of a request for which nothing was drafted
        return SpecCounters(plain_steps=plain, steps=0, drafted=0), chunks
    return SpecCounters(tuple(per_step), tuple(delivered), plain, drafted=timings.get("draft_n")), chunks


def _joined(chunks: list[Chunk]) -> Chunk:
    last = chunks[-1]
    return Chunk(last.at_ns, sum(chunk.num_tokens or 0 for chunk in chunks), last.kind, last.read)
