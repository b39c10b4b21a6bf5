"""One request ahead of a run: what this server tells. Absent is not zero."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.answer import Answer
from bench.config import BenchConfig
from bench.engines.base import Engine, parse_answer
from bench.engines.registry import find_engine
from bench.errors import ConfigError, EngineError
from bench.evidence import engine_totals, normal_form
from bench.prompts import Composer, load_chat_format
from bench.server import read_counters, read_info, route_url, running_server
from bench.split import Conversation
from bench.transport.base import Target, unframe
from bench.transport.registry import make_transport

PROBE_TEXT = "Count from one to twenty in words, and then say which of them has the most letters."


def make_target(config: BenchConfig, engine: Engine) -> Target:
    """Return where the requests of a run go.

    Raises
    ------
    ConfigError
        If the environment lacks the key that `engine.api_key_env` names.
    """
    pairs = {**engine.headers(), **config.engine.headers, **_key_header(config)}
    return Target(route_url(config.engine.url, engine.route), tuple(pairs.items()), config.client.request_timeout_s)


def _key_header(config: BenchConfig) -> dict[str, str]:
    name = config.engine.api_key_env
    if not name:
        return {}
    if name not in os.environ:
        raise ConfigError(f"engine.api_key_env: the environment has no {name}")
    return {"Authorization": f"Bearer {os.environ[name]}"}


def make_composer(config: BenchConfig, engine: Engine, salt: str) -> Composer:
    """Return what writes the requests of a run."""
    kwargs = config.engine.chat_template_kwargs
    chat = load_chat_format(config.engine.tokenizer, kwargs) if config.engine.tokenizer else None
    sampling, draws = config.sampling.sampling(), str(config.engine.draft_length)
    return Composer(engine, config.engine.model, sampling, chat, kwargs, salt, draws)


def probe_server(config: BenchConfig) -> dict[str, Any]:
    """Return what the server of a configuration tells; it is started for it where `engine.serve` says how.

    Raises
    ------
    EngineError
        If the server does not start, or the request failed.
    """
    engine = find_engine(config.engine.dialect)
    composer, target = make_composer(config, engine, "probe"), make_target(config, engine)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(config.engine.serve, config.engine.url, Path(folder) / "server.log"),
    ):
        return probe(config, engine, composer, target)


def probe(config: BenchConfig, engine: Engine, composer: Composer, target: Target) -> dict[str, Any]:
    """Send one request and return what the server told of it.

    Raises
    ------
    EngineError
        If it failed: with what the server said.
    """
    prompt = composer.first(Conversation("probe", (PROBE_TEXT,)))
    answer = asyncio.run(_ask(config, engine, composer.body(prompt, "probe"), target))
    if answer.error:
        raise EngineError(f"{target.url}: the probe failed: {answer.error}")
    form = normal_form(answer, draft_length=config.engine.draft_length)
    return {
        "told": {
            "token_ids": answer.token_ids is not None,
            "usage": answer.usage.completion_tokens is not None,
            "cached_tokens": answer.usage.cached_tokens is not None,
            "request_counters": engine_totals(answer) is not None,
            "acceptance_source": form.source if form else None,
            "server_counters": read_counters(config.engine.url, engine.metrics_path) is not None,
        },
        "usage": asdict(answer.usage),
        "finish_reason": answer.finish_reason,
        "text": answer.text[:200],
        "server": read_info(config.engine.url, engine.info_path),
    }


async def _ask(config: BenchConfig, engine: Engine, body: bytes, target: Target) -> Answer:
    try:
        transport = make_transport(config.client.transport, target)
    except ValueError as error:
        raise ConfigError(f"client.transport: {error}") from None
    try:
        reading = await transport.send(body)
    finally:
        await transport.close()
    try:
        status, reads = unframe(reading)
    except ValueError as error:
        return Answer(error=str(error))
    return parse_answer(engine, reads, status, reading.error)
