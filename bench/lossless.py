"""Whether speculative decoding changed the outputs: token by token when greedy, in distribution when sampled. Pure.

Both sides are the requests of finished runs over the same prompts on the same engine, one without speculation. A
verdict is "equal", "differs", or "not shown" where something that it needs is absent; "equal" is said of what was
compared only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np

from bench.measured import Measured, by_conversation, is_complete
from bench.two_sample import POWER, Counts, compare_samples

Gaps = Mapping[tuple[str, int], float | None]
"""Log-probability of the plain token less that of the other one, nats, by conversation and repeat; None if untold."""
Verdict = Literal["equal", "differs", "not shown"]
Json = dict[str, Any]

MIN_COMPARED = 0.9
"""Share of the conversations that must have been compared for equality to be said of a run."""
NEAR_TIE_NATS = 0.1
"""Gap of two log-probabilities that arithmetic of 16 bits can turn: a rounding of 2^-9 at logits of about 25, twice."""
MOST_TV = 0.2
"""Distance that a test of sampled outputs must be able to find, for its silence to be worth a word."""
ALPHA = 0.001
"""False alarm rate of the test: the share of lossless engines that it would call different."""
POSITION = 1
"""The sampled token that is compared, from 0: the first one of a decode step; the prefill gives token 0."""
ENDED = -1
"""Stands for the second token of an answer that had one only."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the greedy outputs of a conversation part.

    Attributes
    ----------
    position
        From 0 within the turn's answer: tokens, or characters where the engine tells no ids.
    plain, speculative
        What stands there: token id or character; None where that answer had ended.
    """

    conversation_id: str
    repeat: int
    category: str
    turn: int
    position: int
    plain: int | str | None
    speculative: int | str | None


def first_difference(plain: Sequence[Hashable], speculative: Sequence[Hashable]) -> int | None:
    """Return the first place where two sequences differ, the end of the shorter one counted; None if they are equal."""
    missing = object()
    for position, (a, b) in enumerate(zip_longest(plain, speculative, fillvalue=missing)):
        if a != b:
            return position
    return None


def compare_greedy(plain: Sequence[Measured], speculative: Sequence[Measured], *, gaps: Gaps | None = None) -> Json:
    """Return the comparison of outputs at temperature 0, conversation by conversation.

    A repeat of the speculative run is held against the same repeat of the plain one, or against its first. Turns after
    the first difference of a conversation were prompted otherwise, and are not compared.

    Parameters
    ----------
    gaps
        Where known: how close the two tokens were; one within `NEAR_TIE_NATS` is no fault of the speculation.
    """
    before, after = by_conversation(plain), by_conversation(speculative)
    by_ids = all(m.answer.token_ids is not None for m in (*plain, *speculative) if m.ok)
    pairs = [(key, _partner(before, key), turns) for key, turns in after.items()]
    sent = {conversation_id for conversation_id, _ in after}
    reasons = {key: _why_not(base, turns) for key, base, turns in pairs}
    reasons |= {key: "not in the speculative run" for key in before if key[0] not in sent}
    compared = [(base, turns) for key, base, turns in pairs if base and not reasons[key]]
    found = [_differs(base, turns, by_ids=by_ids) for base, turns in compared]
    differences = [difference for difference in found if difference is not None]
    absent = [{"conversation_id": key[0], "repeat": key[1], "reason": why} for key, why in reasons.items() if why]
    speculation = _speculation(speculative)
    told = gaps or {}
    rows = [asdict(d) | {"logprob_gap": told.get((d.conversation_id, d.repeat))} for d in differences]
    near = sum(row["logprob_gap"] is not None and abs(row["logprob_gap"]) <= NEAR_TIE_NATS for row in rows)
    verdict, reason = _greedy_verdict(len(compared), len(differences), near, len(absent), speculation)
    return {
        "verdict": verdict,
        "reason": reason,
        "by": "token_ids" if by_ids else "text",
        "conversations": len(compared),
        "equal": len(compared) - len(differences),
        "share_equal": 1 - len(differences) / len(compared) if compared else None,
        "output_tokens": sum(turn.answer.num_tokens or 0 for _, turns in compared for turn in turns),
        "near_ties": near if any(row["logprob_gap"] is not None for row in rows) else None,
        "differences": rows,
        "not_compared": absent,
        "speculation": speculation,
        "plain_repeats": _self_agreement(before, by_ids=by_ids),
    }


def _partner(runs: dict[tuple[str, int], list[Measured]], key: tuple[str, int]) -> list[Measured] | None:
    """Return the plain turns of a conversation: of the same repeat, else of its first."""
    first = next((other for other in runs if other[0] == key[0]), key)
    return runs.get(key) or runs.get(first)


def _why_not(plain: list[Measured] | None, speculative: list[Measured]) -> str:
    if plain is None:
        return "not in the plain run"
    for name, turns in (("plain", plain), ("speculative", speculative)):
        if not is_complete(turns):
            failed = next((turn.answer.error for turn in turns if not turn.ok), "a turn was not sent")
            return f"{name} run: {failed}"
    if plain[0].trace.prompt_sha256 != speculative[0].trace.prompt_sha256:
        return "the two runs sent different prompts"
    return ""


def _differs(plain: list[Measured], speculative: list[Measured], *, by_ids: bool) -> Difference | None:
    for a, b in zip(plain, speculative, strict=True):
        left, right = _output(a, by_ids=by_ids), _output(b, by_ids=by_ids)
        position = first_difference(left, right)
        if position is not None:
            there = [values[position] if position < len(values) else None for values in (left, right)]
            trace = b.trace
            category = trace.slices.get("category", "")
            return Difference(trace.conversation_id, trace.repeat, category, trace.turn, position, there[0], there[1])
    return None


def _output(request: Measured, *, by_ids: bool) -> Sequence[int] | str:
    answer = request.answer
    return (answer.token_ids or ()) if by_ids else answer.reasoning_text + answer.text


def _speculation(requests: Sequence[Measured]) -> Json | None:
    """Return verify steps and the requests that had one; None where the engine does not tell."""
    told = [m.acceptance for m in requests if m.acceptance is not None]
    if not told:
        return None
    return {"verify_steps": sum(a.steps for a in told), "requests": sum(a.steps > 0 for a in told)}


def _greedy_verdict(
    compared: int, differ: int, near: int, absent: int, speculation: Json | None
) -> tuple[Verdict, str]:
    if differ > near:
        also = f", {near} of them at a near-tie" if near else ""
        return "differs", f"{differ} of {compared} conversations{also}"
    if not compared:
        return "not shown", "no conversation is complete in both runs"
    if compared < MIN_COMPARED * (compared + absent):
        return "not shown", f"only {compared} of {compared + absent} conversations are complete in both runs"
    if speculation is not None and not speculation["verify_steps"]:
        return "not shown", "no step of the speculative run had a draft"
    ties = f"; {near} part at a near-tie (within {NEAR_TIE_NATS:g} nats)" if near else ""
    return "equal", f"{compared - near} of {compared} conversations{ties}"


def _self_agreement(runs: dict[tuple[str, int], list[Measured]], *, by_ids: bool) -> Json | None:
    """Return how many conversations the plain run answers alike in all repeats; None if it has one repeat."""
    outputs = dict[str, list[list[Sequence[int] | str]]]()
    for (conversation_id, _), turns in runs.items():
        if is_complete(turns):
            outputs.setdefault(conversation_id, []).append([_output(turn, by_ids=by_ids) for turn in turns])
    repeated = [answers for answers in outputs.values() if len(answers) > 1]
    if not repeated:
        return None
    return {"conversations": len(repeated), "equal": sum(all(a == r[0] for a in r[1:]) for r in repeated)}


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
    speculation = _speculation(speculative)
    reason = _why_failed(plain, speculative) or _why_untestable(plain, samples, speculation)
    verdict: Verdict = "not shown"
    if not reason and found is None:
        reason = "too few samples: no prompt gave two tokens often enough"
    if not reason and found is not None:
        verdict, reason = _sampled_verdict(found.p_value, found.smallest_tv_found, alpha)
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
    plain: Sequence[Measured], samples: Sequence[dict[str, Counter[int]]], speculation: Json | None
) -> str:
    if not samples[0] or not samples[1]:
        return "the engine tells no token ids"
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


def _sampled_verdict(p_value: float, smallest_tv: float, alpha: float) -> tuple[Verdict, str]:
    if p_value <= alpha:
        return "differs", f"p = {p_value:.2g} <= {alpha:g}"
    if smallest_tv > MOST_TV:
        return "not shown", f"too few samples: a distance below {smallest_tv:.2f} would not have been found"
    return "equal", f"p = {p_value:.2g} > {alpha:g}; a distance from {smallest_tv:.3f} on would have been found"


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


def overall_verdict(t0: Json, t1: Json) -> Verdict:
    """Return the verdict of both parts: one that differs decides, else one that is shown."""
    verdicts = {t0["verdict"], t1["verdict"]}
    if "differs" in verdicts:
        return "differs"
    return "equal" if "equal" in verdicts else "not shown"


def not_shown(reason: str) -> Json:
    """Return the part of a verdict for which there is no run."""
    return {"verdict": "not shown", "reason": reason}
