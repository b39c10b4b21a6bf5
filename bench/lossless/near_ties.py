"""How close two tokens were where greedy outputs part: the engine without speculation is asked for both.

Batched arithmetic may turn a near-tie either way, with or without speculation. A difference at a near-tie is none of
the speculation's making; one between tokens far apart is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.config import BenchConfig
from bench.engines.registry import find_engine
from bench.lossless.greedy import Gaps
from bench.measured import Measured
from bench.probe import make_target
from bench.server import route_url
from bench.transport.base import Target, unframe
from bench.transport.registry import make_transport

Json = Mapping[str, Any]

TOP = 5
"""Likeliest tokens that are asked for; a token beyond them is no near-tie."""


@dataclass(frozen=True, slots=True)
class LogprobRoute:
    """How an engine is asked for the log-probabilities of the next token."""

    route: str
    payload: Callable[[str, Sequence[int]], Json]
    read: Callable[[Json], dict[int, float]]


def _vllm_payload(model: str, ids: Sequence[int]) -> Json:
    fields = {"max_tokens": 1, "temperature": 0.0, "logprobs": TOP, "return_tokens_as_token_ids": True}
    return {"model": model, "prompt": list(ids), **fields}


def _vllm_read(value: Json) -> dict[int, float]:
    top = value["choices"][0]["logprobs"]["top_logprobs"][0]
    return {int(name.removeprefix("token_id:")): float(logprob) for name, logprob in top.items()}


def _llamacpp_payload(model: str, ids: Sequence[int]) -> Json:
    # The server does not check the model's name.
    return {
        "model": model,
        "prompt": list(ids),
        "n_predict": 1,
        "temperature": 0.0,
        "n_probs": TOP,
        "cache_prompt": False,
    }


def _llamacpp_read(value: Json) -> dict[int, float]:
    return {int(row["id"]): float(row["logprob"]) for row in value["completion_probabilities"][0]["top_logprobs"]}


ROUTES = {
    "vllm": LogprobRoute("/v1/completions", _vllm_payload, _vllm_read),
    "llamacpp": LogprobRoute("/completion", _llamacpp_payload, _llamacpp_read),
}
"""By dialect; of any other engine the gap is not known."""


def ask_gaps(
    config: BenchConfig,
    differences: Sequence[Json],
    plain: Sequence[Measured],
    prompts: Mapping[str, Sequence[int]],
) -> Gaps:
    """Return the gap of the two tokens at each first difference, nats; None where the engine does not tell.

    Parameters
    ----------
    config
        Of the plain server, which must be running.
    differences
        Rows of `compare_greedy`.
    plain
        Requests of the plain run, for what was answered before the difference.
    prompts
        Ids of the first prompts by their SHA-256; a difference in a later turn is not asked about.
    """
    route = ROUTES.get(config.engine.dialect)
    answered = {(m.trace.conversation_id, m.trace.turn): m for m in plain}
    contexts = dict[tuple[str, int], tuple[Json, list[int]]]()
    for row in differences:
        request = answered.get((row["conversation_id"], row["turn"]))
        ids = prompts.get(request.trace.prompt_sha256) if request is not None else None
        if request is not None and ids is not None and request.answer.token_ids is not None:
            before = [*ids, *request.answer.token_ids[: row["position"]]]
            contexts[row["conversation_id"], row["repeat"]] = (row, before)
    if route is None or not contexts:
        return {}
    told = asyncio.run(_ask_all(config, route, [ids for _, ids in contexts.values()]))
    return {key: _gap(row, top) for (key, (row, _)), top in zip(contexts.items(), told, strict=True)}


def _gap(row: Json, top: Mapping[int, float]) -> float | None:
    a, b = top.get(row["plain"]), top.get(row["speculative"])
    return None if a is None or b is None else a - b


async def _ask_all(
    config: BenchConfig, route: LogprobRoute, contexts: Sequence[Sequence[int]]
) -> list[dict[int, float]]:
    target = make_target(config, find_engine(config.engine.dialect))
    target = Target(route_url(config.engine.url, route.route), target.headers, target.timeout_s)
    transport = make_transport(config.client.transport, target)
    try:
        return [await _ask(transport, route, config.engine.model, ids) for ids in contexts]
    finally:
        await transport.close()


async def _ask(transport: Any, route: LogprobRoute, model: str, ids: Sequence[int]) -> dict[int, float]:
    """Return the log-probabilities of the likeliest next tokens; none where the engine does not give them."""
    reading = await transport.send(json.dumps(route.payload(model, ids)).encode())
    try:
        _, reads = unframe(reading)
        return route.read(json.loads(reads.body))
    except (ValueError, KeyError, TypeError, IndexError):
        return {}
