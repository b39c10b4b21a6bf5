"""The gates: what keeps the figures of a run from being published. Each has a name and says what it saw. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from bench.config import BenchConfig
from bench.counters import CounterDelta
from bench.measured import Measured
from bench.self_audit import SelfAudit
from bench.split import Split

MIN_LOOP = 64
"""Tokens that a repetition must cover to be one."""
MAX_PERIOD = 64
MAX_ONE_TOKEN_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate that is shut: its name, and what it saw."""

    name: str
    detail: str


def loops(tokens: Sequence[Hashable], *, min_loop: int = MIN_LOOP, max_period: int = MAX_PERIOD) -> bool:
    """Tell whether an answer ends by repeating itself: a period <= `max_period` over >= half of it and `min_loop`."""
    n = len(tokens)
    needed = max(min_loop, n // 2)
    for period in range(1, min(max_period, n // 2) + 1):
        covered = period
        while covered < n and tokens[n - 1 - covered] == tokens[n - 1 - covered + period]:
            covered += 1
        if covered >= needed and covered >= 3 * period:
            return True
    return False


def shut_gates(
    requests: Sequence[Measured],
    config: BenchConfig,
    split: Split,
    audit: SelfAudit,
    counters: CounterDelta | None,
    stopped: str,
) -> list[Gate]:
    """Return the gates that are shut, worst first; none if the figures may be published."""
    found = [
        _stopped(stopped),
        _failures(requests, config.limits.max_failed_share),
        _placeholders(split, config),
        _synthetic(config),
        _cut_prompts(requests),
        _one_token(requests, config),
        _looping(requests, config),
        _warm_cache(requests, config, counters),
        _restart(counters),
        None if audit.valid else Gate("client", "; ".join(audit.reasons)),
    ]
    return [gate for gate in found if gate is not None]


def _stopped(stopped: str) -> Gate | None:
    return Gate("stopped", stopped) if stopped else None


def _failures(requests: Sequence[Measured], most: float) -> Gate | None:
    failed = [m for m in requests if not m.ok]
    if requests and len(failed) <= most * len(requests):
        return None
    reasons = Counter(m.answer.error for m in failed).most_common(3)
    shown = "; ".join(f"{count} x {reason}" for reason, count in reasons) or "nothing was sent"
    return Gate("failures", f"{len(failed)} of {len(requests)} requests failed (allowed {most:.0%}): {shown}")


def _placeholders(split: Split, config: BenchConfig) -> Gate | None:
    if not split.placeholders or config.data.allow_partial:
        return None
    return Gate("placeholders", f"{len(split.placeholders)} rows have no text")


def _synthetic(config: BenchConfig) -> Gate | None:
    if not config.engine.synthetic_acceptance:
        return None
    return Gate("synthetic_acceptance", "the server makes acceptance up (engine.synthetic_acceptance)")


def _cut_prompts(requests: Sequence[Measured]) -> Gate | None:
    cut = [
        m
        for m in requests
        if m.ok
        and m.trace.prompt_tokens is not None
        and m.answer.usage.prompt_tokens is not None
        and m.answer.usage.prompt_tokens < m.trace.prompt_tokens
    ]
    if not cut:
        return None
    m = cut[0]
    seen = f"{m.answer.usage.prompt_tokens} of {m.trace.prompt_tokens} tokens of {m.trace.conversation_id}"
    return Gate("cut_prompts", f"the server saw less of {len(cut)} prompts than was sent; first {seen}")


def _one_token(requests: Sequence[Measured], config: BenchConfig) -> Gate | None:
    ok = [m for m in requests if m.ok]
    short = sum(1 for m in ok if (m.answer.num_tokens or 0) <= 1)
    if not ok or config.sampling.max_tokens <= 1 or short <= MAX_ONE_TOKEN_SHARE * len(ok):
        return None
    return Gate("one_token", f"{short} of {len(ok)} answers are one token long")


def _looping(requests: Sequence[Measured], config: BenchConfig) -> Gate | None:
    ok = [m for m in requests if m.ok]
    looping = [m for m in ok if loops(m.answer.token_ids if m.answer.token_ids is not None else m.answer.text)]
    if not ok or len(looping) <= config.limits.max_looping_share * len(ok):
        return None
    first = looping[0].trace.conversation_id
    return Gate("looping", f"{len(looping)} of {len(ok)} answers repeat themselves to the end; first {first}")


def _warm_cache(requests: Sequence[Measured], config: BenchConfig, counters: CounterDelta | None) -> Gate | None:
    if config.load.cache == "warm":
        return None
    first_turns = [m for m in requests if m.ok and m.trace.turn == 0]
    hit = [m for m in first_turns if m.answer.usage.cached_tokens]
    if hit:
        tokens = sum(m.answer.usage.cached_tokens or 0 for m in hit)
        return Gate("warm_cache", f"{len(hit)} first turns of a cold run hit the prefix cache ({tokens} tokens)")
    told = any(m.answer.usage.cached_tokens is not None for m in first_turns)
    single = all(m.trace.num_turns == 1 for m in requests)
    if not told and single and counters is not None and counters.cache_hits:
        return Gate("warm_cache", f"the server counted {counters.cache_hits:.0f} prefix-cache hits in a cold run")
    return None


def _restart(counters: CounterDelta | None) -> Gate | None:
    if counters is None or not counters.restarted:
        return None
    return Gate("restart", f"a rank restarted during the run: {counters.restarted} fell")
