"""Whether sampled outputs have the same distribution with and without speculation, prompt by prompt. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from bench.lossless.two_sample import POWER, Counts, TwoSample, compare_samples
from bench.lossless.verdict import Json, Verdict, speculation_of
from bench.measured import Measured

MIN_TOLD = 0.9
"""Share of the answers of each run whose second token must be known."""
MOST_TV = 0.2
"""Distance that a test of sampled outputs must be able to find, for its silence to be worth a word."""
ALPHA = 0.001
"""False alarm rate of the test: the share of lossless engines that it would call different."""
POSITION = 1
"""The sampled token that is compared, from 0: the first one of a decode step; the prefill gives token 0."""
ENDED = -1
"""Stands for the second token of an answer that had one only."""


def compare_sampled(
    plain: Sequence[Measured], speculative: Sequence[Measured], *, alpha: float = ALPHA, seed: int = 0
) -> Json:
    """Return the comparison of the second token's distribution at a temperature above 0, prompt by prompt.

    The prefill draws token 0 in both runs alike; token 1 is the first that a verify step gives, kept draft or
    correction. Its distribution is compared as it is over all draws of token 0 (marginalised, not conditioned): equal
    engines agree in it, and every sample counts. Samples of one prompt are its repeats and its copies under other ids.

    Parameters
    ----------
    alpha
        False alarm rate, in (0, 1).
    """
    samples = [_second_tokens(requests) for requests in (plain, speculative)]
    prompts = sorted(samples[0].keys() & samples[1].keys())
    cells = [sorted({*samples[0][p], *samples[1][p]}) for p in prompts]
    strata = [(_counts(samples[0][p], c), _counts(samples[1][p], c)) for p, c in zip(prompts, cells, strict=True)]
    found = compare_samples(strata, alpha=alpha, seed=seed)
    speculation = speculation_of(speculative)
    reason = _why_failed(plain, speculative) or _why_untestable(plain, speculative, samples, speculation)
    verdict: Verdict = "not shown"
    if not reason and found is None:
        reason = "too few samples: no prompt gave two tokens often enough"
    if not reason and found is not None:
        verdict, reason = _verdict(found, _share_drafted(speculation, speculative), alpha)
    return {
        "verdict": verdict,
        "reason": reason,
        "position": POSITION,
        "alpha": alpha,
        "power": POWER,
        **({} if found is None else asdict(found)),
        "largest": [] if found is None else _largest(cells, strata, prompts),
        "left_out": sum(len(requests) for requests in (plain, speculative)) - (0 if found is None else sum(found.n)),
        "speculation": speculation,
    }


def _second_tokens(requests: Sequence[Measured]) -> dict[str, Counter[int]]:
    """Return how often each second token was drawn, by prompt; first turns whose ids are known."""
    counts = dict[str, Counter[int]]()
    for m in requests:
        ids = m.answer.token_ids
        if m.ok and ids is not None and m.trace.turn == 0:
            counts.setdefault(m.trace.prompt_sha256, Counter())[ids[POSITION] if len(ids) > POSITION else ENDED] += 1
    return counts


def _counts(drawn: Counter[int], cells: Sequence[int]) -> Counts:
    return np.array([drawn[cell] for cell in cells], np.int64)


def _why_failed(plain: Sequence[Measured], speculative: Sequence[Measured]) -> str:
    for name, requests in (("plain", plain), ("speculative", speculative)):
        if not any(m.ok for m in requests):
            return f"{name} run: {requests[0].answer.error if requests else 'nothing was sent'}"
    return ""


def _why_untestable(
    plain: Sequence[Measured],
    speculative: Sequence[Measured],
    samples: Sequence[dict[str, Counter[int]]],
    speculation: Json | None,
) -> str:
    if not samples[0] or not samples[1]:
        return "the engine tells no token ids"
    for name, told, requests in zip(("plain", "speculative"), samples, (plain, speculative), strict=True):
        first, known = sum(m.trace.turn == 0 for m in requests), sum(counts.total() for counts in told.values())
        if known < MIN_TOLD * first:
            return f"{name} run: {known} of {first} answers are there with their token ids"
    if speculation is not None and not speculation["verify_steps"]:
        return "no step of the speculative run had a draft"
    answers = dict[str, list[tuple[int, ...]]]()
    for m in plain:
        if m.ok and m.answer.token_ids is not None and m.trace.turn == 0:
            answers.setdefault(m.trace.prompt_sha256, []).append(m.answer.token_ids)
    repeated = [drawn for drawn in answers.values() if len(drawn) > 1]
    if not repeated:
        return "each prompt was sampled once; set load.repeats"
    if all(len(set(drawn)) == 1 for drawn in repeated):
        return "all samples of a prompt are the same in the plain run: the engine draws with one seed"
    return ""


def _share_drafted(speculation: Json | None, requests: Sequence[Measured]) -> float:
    """Return the share of the requests that had a step with a draft, 1 where it is not told."""
    return 1.0 if speculation is None else float(speculation["requests"] / sum(m.ok for m in requests))


def _verdict(found: TwoSample, drafted: float, alpha: float) -> tuple[Verdict, str]:
    if found.p_value <= alpha:
        return "differs", f"p = {found.p_value:.2g} <= {alpha:g}"
    # Tokens of steps without a draft hide a fault of the others: what they differ by shows in their share only.
    least = found.smallest_tv_found / drafted
    if least > MOST_TV:
        some = f" (only {drafted:.0%} of the requests had a step with a draft)" if drafted < 1 else ""
        return "not shown", f"too few samples: a distance below {min(least, 1):.2f} would not have been found{some}"
    return "equal", f"p = {found.p_value:.2g} > {alpha:g}; a distance from {least:.3f} on would have been found"


def _largest(
    cells: Sequence[Sequence[int]], strata: Sequence[tuple[Counts, Counts]], prompts: Sequence[str], most: int = 5
) -> list[Json]:
    """Return the tokens whose shares differ most."""
    rows = list[Json]()
    for prompt, tokens, (a, b) in zip(prompts, cells, strata, strict=True):
        for token, plain, speculative in zip(tokens, a / a.sum(), b / b.sum(), strict=True):
            rows.append(
                {"prompt_sha256": prompt, "token": token, "plain": float(plain), "speculative": float(speculative)}
            )
    return sorted(rows, key=lambda row: -abs(row["plain"] - row["speculative"]))[:most]
