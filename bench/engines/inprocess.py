"""Engines in process (`python -m bench.inprocess`): ids in and out, one event a step, stamped by the engine itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from bench.answer import Answer, Chunk, SpecCounters, Usage
from bench.counters import CounterNames
from bench.engines.base import Ask, Gathered, PromptForm, Tells, json_events, stream_error
from bench.sse import Event

_EXTRAS = ("untrimmed_tokens", "wall_ns", "accept_lengths", "new_tokens")


class InProcessGenerate:
    """`/generate`; what each step drafted, matched and took is told with its ids.

    A step is stamped by the clock of the engine's process, which is the client's own (CLOCK_MONOTONIC of one host):
    a method that returns only once it is done tells all its steps then. In `Answer.extras` stand `draft_ns` and
    `verify_ns` of the verify steps that were timed, in order, and what the engine said of the whole.
    """

    name: ClassVar[str] = "inprocess"
    route: ClassVar[str] = "/generate"
    takes: ClassVar[PromptForm] = "ids"
    tells: ClassVar[Tells] = Tells("per_step", chunk_ids=True, event_is_step=False)
    counters: ClassVar[CounterNames | None] = None
    metrics_path: ClassVar[str] = ""
    info_path: ClassVar[str] = "/info"
    reset_path: ClassVar[str] = ""
    ever_run: ClassVar[bool] = True

    def payload(self, ask: Ask) -> dict[str, Any]:
        """Return the body."""
        s = ask.sampling
        return {
            "ids": list(ask.ids or ()),
            "max_tokens": s.max_tokens,
            "temperature": s.temperature,
            "top_p": s.top_p,
            "seed": s.seed,
            "ignore_eos": s.ignore_eos,
            "stream": True,
        }

    def headers(self) -> dict[str, str]:
        """Return no further headers."""
        return {}

    def read(self, events: Iterable[Event]) -> Answer:
        """Return the answer; the last event tells the counts, the text and how it ended.

        Raises
        ------
        ValueError
            If a step is stamped after it arrived: the engine's clock is not the client's.
        """
        parts, steps, draft_length = Gathered(), list[Mapping[str, Any]](), None
        for event, value in json_events(events):
            error = stream_error(event, value)
            if error:
                return Answer(error=error)
            if "finish_reason" in value:
                parts.finish_reason = value["finish_reason"]
                parts.text.append(value.get("text", ""))
                parts.usage = Usage(value["prompt_tokens"], value["completion_tokens"], 0)
                parts.extras |= {key: value[key] for key in _EXTRAS if key in value}
                draft_length = value.get("draft_length")
            else:
                steps.append(value)
                parts.ids += value["ids"]
                parts.chunks.append(Chunk(_stamp(event, value), len(value["ids"]), read=event.read))
        timed = [s for s in steps if s["kind"] == "verify" and "draft_ns" in s and "verify_ns" in s]
        if timed:
            parts.extras |= {key: [step[key] for step in timed] for key in ("draft_ns", "verify_ns")}
        return parts.answer(chunk_ids=bool(parts.ids), spec=_spec_counters(steps, draft_length) if steps else None)


def _stamp(event: Event, value: Mapping[str, Any]) -> int:
    at_ns = int(value.get("at_ns", event.at_ns))
    if at_ns > event.at_ns:
        raise ValueError(f"a step is stamped {at_ns - event.at_ns} ns after it arrived; run the engine on this host")
    return at_ns


def _spec_counters(steps: list[Mapping[str, Any]], draft_length: int | None) -> SpecCounters:
    verified = [step for step in steps if step["kind"] == "verify"]
    drafted = [step.get("drafted") for step in verified]
    nodes = [step["nodes"] for step in verified if "nodes" in step]
    return SpecCounters(
        per_step=tuple((step.get("drafted"), step["matched"]) for step in verified),
        delivered=tuple(len(step["ids"]) for step in verified),
        plain_steps=sum(step["kind"] == "plain" for step in steps),
        steps=len(verified),
        matched=sum(step["matched"] for step in verified),
        drafted=None if None in drafted else sum(count or 0 for count in drafted),
        draft_length=draft_length,
        nodes=sum(nodes) if nodes else None,
    )
