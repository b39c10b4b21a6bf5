"""The engines, written out: one line a route."""

from __future__ import annotations

from bench.engines.base import Engine
from bench.engines.inprocess import InProcessGenerate
from bench.engines.llamacpp import LlamaCppCompletion
from bench.engines.openai import OpenAIChat
from bench.engines.sglang import SglangGenerate
from bench.engines.trtllm import TrtllmCompletions
from bench.engines.vllm import VllmChat, VllmCompletions, VllmGenerate
from bench.errors import ConfigError

ENGINES: dict[str, Engine] = {
    "vllm": VllmCompletions(),
    "vllm-generate": VllmGenerate(),
    "vllm-chat": VllmChat(),
    "sglang": SglangGenerate(),
    "trtllm": TrtllmCompletions(),
    "llamacpp": LlamaCppCompletion(),
    "inprocess": InProcessGenerate(),
    "openai": OpenAIChat(),
}
"""Engine and route by the name that a configuration gives."""


def find_engine(dialect: str) -> Engine:
    """Return an engine by the name that a configuration gives.

    Raises
    ------
    ConfigError
        If there is none of this name.
    """
    engine = ENGINES.get(dialect)
    if engine is None:
        raise ConfigError(f"engine.dialect: no {dialect!r}; known are {', '.join(ENGINES)}")
    return engine
