"""How the simulator says one answer in each engine's words. Pure: requests in, event bytes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

import orjson

from bench.acceptance import Step
from bench.simulator.stream import SimRequest, SimStream
from bench.simulator.vocabulary import decode, encode, encode_chat

DONE = b"data: [DONE]\n\n"


class Dialect(Protocol):
    """One engine's words."""

    paths: tuple[str, ...]

    def request(self, path: str, body: Mapping[str, Any]) -> SimRequest:
        """Return what is asked for; a ValueError becomes HTTP 400."""
        ...

    def step(self, stream: SimStream) -> bytes:
        """Return the events of the next chunk."""
        ...

    def closing(self, stream: SimStream) -> bytes:
        """Return the events after the last chunk."""
        ...


def event(value: Mapping[str, Any], name: str = "") -> bytes:
    """Return one event, compact as the engines write it."""
    head = b"event: %s\n" % name.encode() if name else b""
    return b"%sdata: %s\n\n" % (head, orjson.dumps(value))


def _prompt(body: Mapping[str, Any], key: str = "prompt") -> tuple[int, ...]:
    prompt = body.get(key)
    if isinstance(prompt, str):
        return tuple(encode(prompt))
    if not prompt or not all(isinstance(i, int) for i in prompt):
        raise ValueError(f"{key}: need text or a list of token ids")
    return tuple(prompt)


def _usage(stream: SimStream) -> dict[str, Any]:
    prompt = len(stream.request.prompt_ids)
    return {"prompt_tokens": prompt, "total_tokens": prompt + stream.sent, "completion_tokens": stream.sent}


def _histogram(steps: Sequence[Step], k: int) -> list[int]:
    counts = [0] * (k + 1)
    for step in steps:
        counts[step.matched] += 1
    return counts


class VllmDialect:
    """vLLM: completions, chat completions and the token-in route, with counters of every step."""

    paths: tuple[str, ...] = ("/v1/completions", "/v1/chat/completions", "/inference/v1/generate")

    def request(self, path: str, body: Mapping[str, Any]) -> SimRequest:
        """Return the request; absent `max_tokens` means 16, as there."""
        sampling = body.get("sampling_params") or body
        if path.endswith("chat/completions"):
            ids = tuple(encode_chat(body["messages"]))
        else:
            ids = _prompt(body, "token_ids" if path.endswith("generate") else "prompt")
        eos = bool(sampling.get("ignore_eos"))
        running = bool((body.get("stream_options") or {}).get("continuous_usage_stats"))
        return SimRequest(path, ids, int(sampling.get("max_tokens", 16)), eos, "cache_salt" in body, running)

    def step(self, stream: SimStream) -> bytes:
        """Return one chunk of a step's ids; the first says the prompt's too."""
        chat = stream.request.path.endswith("chat/completions")
        first, reasoning = stream.sent == 0, stream.sent < stream.answer.num_reasoning
        ids, last = stream.take()
        piece = {"delta": {"reasoning" if reasoning else "content": decode(ids)}} if chat else {"text": decode(ids)}
        choice: dict[str, Any] = {"index": 0, **piece, "logprobs": None, "finish_reason": None, "stop_reason": None}
        choice["token_ids"] = ids
        if last:
            choice["finish_reason"] = stream.answer.finish_reason
        if first and not chat:
            choice["prompt_token_ids"] = stream.request.prompt_ids
        value = {"id": "sim", "object": "text_completion", "created": 0, "model": "sim", "choices": [choice]}
        if stream.request.running_usage:
            value["usage"] = _usage(stream)
        role: dict[str, Any] = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        return (event({"choices": [role]}) if chat and first else b"") + event(value)

    def closing(self, stream: SimStream) -> bytes:
        """Return the usage event with the counters; they are absent where no step drafted."""
        usage = {**_usage(stream), "prompt_tokens_details": {"cached_tokens": stream.cached}}
        value: dict[str, Any] = {"id": "sim", "object": "text_completion", "choices": [], "usage": usage}
        if stream.draft_length:
            value["metrics"] = {"speculative_decoding": self._counters(stream)}
        return event(value) + DONE

    def _counters(self, stream: SimStream) -> dict[str, Any]:
        steps = stream.answer.verify_steps
        matched, drafted = [s.matched for s in steps], [s.drafted or 0 for s in steps]
        counters: dict[str, Any] = {
            "acceptance_histogram": _histogram(steps, stream.draft_length),
            "num_spec_steps": len(steps),
            "num_accepted_draft_tokens": sum(matched),
            "num_draft_tokens": sum(drafted),
            "num_spec_tokens": stream.draft_length,
        }
        return counters | ({"per_step_accepted": matched, "per_step_drafted": drafted} if steps else {})


class SglangDialect:
    """SGLang's `/generate`; `cumulative` repeats all that was said, as its servers do unless told otherwise."""

    paths: tuple[str, ...] = ("/generate",)

    def __init__(self, *, cumulative: bool = False) -> None:
        self._cumulative = cumulative

    def request(self, path: str, body: Mapping[str, Any]) -> SimRequest:
        """Return the request."""
        sampling = body.get("sampling_params") or {}
        eos = bool(sampling.get("ignore_eos"))
        return SimRequest(path, _prompt(body, "input_ids"), int(sampling.get("max_new_tokens", 128)), eos, salted=False)

    def step(self, stream: SimStream) -> bytes:
        """Return one chunk; the finish carries the counters."""
        ids, last = stream.take()
        said = list(stream.answer.ids[: stream.sent]) if self._cumulative else ids
        meta: dict[str, Any] = {
            "id": "sim",
            "prompt_tokens": len(stream.request.prompt_ids),
            "completion_tokens": stream.sent,
            "cached_tokens": stream.cached,
            "finish_reason": {"type": stream.answer.finish_reason} if last else None,
        }
        if last and stream.draft_length:
            meta |= self._counters(stream)
        return event({"text": decode(said), "output_ids": said, "meta_info": meta})

    def _counters(self, stream: SimStream) -> dict[str, Any]:
        steps, k = stream.answer.verify_steps, stream.draft_length
        matched = sum(s.matched for s in steps)
        return {
            "spec_verify_ct": len(steps),
            "spec_num_correct_drafts": matched,
            "spec_num_proposed_drafts": len(steps) * k,
            "spec_accept_length": stream.sent / len(steps) if steps else None,
            "spec_correct_drafts_histogram": _histogram(steps, k),
        }

    def closing(self, stream: SimStream) -> bytes:
        """Return the end mark."""
        return DONE


class TrtllmDialect:
    """TensorRT-LLM: refuses fields that it does not know, and sends its metrics after `[DONE]`."""

    paths: tuple[str, ...] = ("/v1/completions",)
    fields = frozenset(
        [
            "model",
            "prompt",
            "max_tokens",
            "temperature",
            "top_p",
            "seed",
            "ignore_eos",
            "detokenize",
            "stream",
            "stream_options",
        ]
    )

    def request(self, path: str, body: Mapping[str, Any]) -> SimRequest:
        """Return the request."""
        unknown = sorted(set(body) - self.fields)
        if unknown:
            raise ValueError(f"extra inputs are not permitted: {', '.join(unknown)}")
        return SimRequest(path, _prompt(body), int(body.get("max_tokens", 16)), bool(body.get("ignore_eos")), False)

    def step(self, stream: SimStream) -> bytes:
        """Return one chunk of ids without text."""
        ids, last = stream.take()
        finish = stream.answer.finish_reason if last else None
        choice = {"index": 0, "text": "", "token_ids": ids, "finish_reason": finish}
        return event({"choices": [choice], "usage": _usage(stream)})

    def closing(self, stream: SimStream) -> bytes:
        """Return usage, the end mark and the metrics behind it."""
        return event({"choices": [], "usage": _usage(stream)}) + DONE + event({"sim": True}, "trtllm.perf_metrics")


class LlamaCppDialect:
    """llama.cpp's `/completion`: an event a token, running counters, no draft beyond the budget."""

    paths: tuple[str, ...] = ("/completion",)

    def request(self, path: str, body: Mapping[str, Any]) -> SimRequest:
        """Return the request."""
        eos = bool(body.get("ignore_eos"))
        return SimRequest(path, _prompt(body), int(body.get("n_predict", 128)), eos, not body.get("cache_prompt", True))

    def step(self, stream: SimStream) -> bytes:
        """Return an event for each token of the chunk."""
        start = stream.sent
        ids, _ = stream.take()
        parts = []
        for n, token in enumerate(ids, start):
            timings = self._timings(stream, n + 1)
            parts.append({"index": 0, "content": decode([token]), "tokens": [token], "stop": False, "timings": timings})
        return b"".join(event(part) for part in parts)

    def closing(self, stream: SimStream) -> bytes:
        """Return the event that stops."""
        stop = "eos" if stream.answer.finish_reason == "stop" else "limit"
        value = {"index": 0, "content": "", "tokens": [], "stop": True, "stop_type": stop}
        value |= {"tokens_predicted": stream.sent, "tokens_evaluated": len(stream.request.prompt_ids)}
        return event(value | {"timings": self._timings(stream, stream.sent)})

    def _timings(self, stream: SimStream, sent: int) -> dict[str, Any]:
        timings = {"cache_n": stream.cached, "prompt_n": len(stream.request.prompt_ids), "predicted_n": sent}
        by_budget = stream.answer.finish_reason == "length"
        ends = [1 + end for end in accumulate(step.delivered for step in stream.answer.steps)]
        begun = [
            (_shortened(s) if by_budget else s)
            for s, end in zip(stream.answer.steps, ends, strict=True)
            if end - s.delivered < sent
        ]
        drafted = sum(s.drafted or 0 for s in begun)
        return timings | ({"draft_n": drafted, "draft_n_accepted": sum(s.matched for s in begun)} if drafted else {})


def _shortened(step: Step) -> Step:
    """Return a step cut by the budget as a server takes it that drafts no more than it may still deliver."""
    if step.matched + 1 <= step.delivered:
        return step
    return Step(step.delivered - 1, step.delivered - 1, step.delivered)


class InProcessDialect:
    """An engine in process: an event a step, whose counts come with its ids, unless steps were merged."""

    paths: tuple[str, ...] = ("/generate",)

    def request(self, path: str, body: Mapping[str, Any]) -> SimRequest:
        """Return the request."""
        eos = bool(body.get("ignore_eos"))
        return SimRequest(path, _prompt(body, "ids"), int(body.get("max_tokens", 128)), eos, salted=True)

    def step(self, stream: SimStream) -> bytes:
        """Return the events of the steps in a chunk; the first token is the prefill's."""
        start = stream.sent
        ids, _ = stream.take()
        if not start:
            return event({"ids": ids, "kind": "prefill"})
        ends = accumulate((step.delivered for step in stream.answer.steps), initial=1)
        begun = [(at, s) for at, s in zip(ends, stream.answer.steps, strict=False) if start <= at < stream.sent]
        return b"".join(event(self._step(s, ids[at - start : at - start + s.delivered])) for at, s in begun)

    def _step(self, step: Step, ids: list[int]) -> dict[str, Any]:
        kind = "verify" if step.drafted else "plain"
        return {"ids": ids, "kind": kind, "drafted": step.drafted, "matched": step.matched}

    def closing(self, stream: SimStream) -> bytes:
        """Return how it ended, and the end mark."""
        prompt, said = len(stream.request.prompt_ids), list(stream.answer.ids[: stream.sent])
        value: dict[str, Any] = {"finish_reason": stream.answer.finish_reason, "prompt_tokens": prompt}
        value |= {"completion_tokens": stream.sent, "draft_length": stream.draft_length, "text": decode(said)}
        return event(value) + DONE


class OpenAIDialect:
    """Chat completions with text and a last usage; nothing else."""

    paths: tuple[str, ...] = ("/v1/chat/completions",)

    def request(self, path: str, body: Mapping[str, Any]) -> SimRequest:
        """Return the request."""
        ids = tuple(encode_chat(body["messages"]))
        return SimRequest(path, ids, int(body.get("max_tokens", 256)), ignore_eos=False, salted=False)

    def step(self, stream: SimStream) -> bytes:
        """Return one chunk of text."""
        ids, last = stream.take()
        finish = stream.answer.finish_reason if last else None
        return event({"choices": [{"index": 0, "delta": {"content": decode(ids)}, "finish_reason": finish}]})

    def closing(self, stream: SimStream) -> bytes:
        """Return usage and the end mark."""
        return event({"choices": [], "usage": _usage(stream)}) + DONE


DIALECTS: dict[str, Dialect] = {
    "vllm": VllmDialect(),
    "sglang": SglangDialect(),
    "sglang-cumulative": SglangDialect(cumulative=True),
    "trtllm": TrtllmDialect(),
    "llamacpp": LlamaCppDialect(),
    "inprocess": InProcessDialect(),
    "openai": OpenAIDialect(),
}
"""Dialect by name."""
