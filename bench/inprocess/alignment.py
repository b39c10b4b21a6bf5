"""From what a Spec-Bench method returns to verify steps: accept lengths, forwards of the target, tokens. Pure.

Methods count in three ways, told apart by how many forwards there were and what the lengths sum to:

merged
    As many forwards as lengths: the forward that reads the prompt checks drafts too (SpS, PLD, Lookahead, the
    baseline). A step delivers its matched drafts and the token that the target adds.
token first
    One forward more, and the lengths sum to all tokens: the prefill's token is delivered with the drafts of the first
    step, and each step leaves the token that its own forward added to the next one (Medusa, EAGLE, Hydra, REST).
    A step's forward therefore brought the tokens that lie one place later.
token apart
    One forward more, and the lengths sum to all tokens but the first (SAM decoding).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Literal

from bench.inprocess.device import Forward
from bench.inprocess.protocol import RequestError, Step

Counting = Literal["merged", "token first", "token apart"]


def counting_of(num_tokens: int, lengths: Sequence[int], num_forwards: int) -> Counting:
    """Return how a method counts.

    Raises
    ------
    RequestError
        If its numbers fit none of the ways: names them and the remedy.
    """
    total, steps = sum(lengths), len(lengths)
    if num_forwards == steps and total == num_tokens:
        return "merged"
    if num_forwards == steps + 1 and total == num_tokens:
        return "token first"
    if num_forwards == steps + 1 and total == num_tokens - 1:
        return "token apart"
    raise RequestError(
        f"the method returned {num_tokens} tokens and {steps} accept lengths that sum to {total}, and the target's "
        f"forward ran {num_forwards} times: steps and forwards do not match; name the target's module with --target"
    )


def align(
    tokens: Sequence[int],
    lengths: Sequence[int],
    forwards: Sequence[Forward],
    *,
    prompt_tokens: int,
    start_ns: int,
    is_chain: bool,
) -> list[Step]:
    """Return the steps of one generation, before any cut.

    Parameters
    ----------
    tokens
        All tokens after the prompt, as returned.
    lengths
        Accept lengths, as returned.
    forwards
        Forwards of the target, in order.
    start_ns
        When the method was called, for the first draft of a merged prefill.
    is_chain
        Whether all drafts of a step are one path, so that what the target was fed tells how many were drafted; of a
        tree only its nodes are known.

    Notes
    -----
    A step's time to draft is what lies between the end of the forward before it and its own forward.
    """
    counting = counting_of(len(tokens), lengths, len(forwards))
    apart = counting != "merged"
    # Where each step's tokens end: the prefill's token is the first, and what follows it belongs to the steps in turn.
    ends = list(accumulate(lengths, initial=0))
    if apart:
        ends = [0, *(end + 1 for end in ends)]
    steps, before_ns = list[Step](), start_ns
    for n, forward in enumerate(forwards):
        ids = tuple(tokens[ends[n] : ends[n + 1]])
        nodes = max(forward.fed - (prompt_tokens if n == 0 else 1), 0)
        length = 0 if apart and n == 0 else lengths[n - 1 if apart else n]
        steps.append(_step(ids, forward, nodes, length, forward.start_ns - before_ns, first=n == 0, is_chain=is_chain))
        before_ns = forward.end_ns
    return steps


def _step(
    ids: tuple[int, ...], forward: Forward, nodes: int, length: int, draft_ns: int, *, first: bool, is_chain: bool
) -> Step:
    verify_ns = forward.end_ns - forward.start_ns
    if not nodes:
        if first:
            return Step(ids, "prefill", forward.end_ns, verify_ns=verify_ns)
        return Step(ids, "plain", forward.end_ns, 0, 0, draft_ns, verify_ns)
    drafted, tree = (nodes, None) if is_chain else (None, nodes)
    matched = length - 1
    return Step(ids, "verify", forward.end_ns, drafted, matched, draft_ns, verify_ns, tree)


def trimmed(steps: Sequence[Step], ends: Sequence[int], budget: int) -> tuple[list[Step], Literal["stop", "length"]]:
    """Return the steps cut after the first token that ends the text, or at the budget, and which of both it was.

    A step that delivers nothing is left out.
    """
    kept, left = list[Step](), budget
    for step in steps:
        ids = list(step.ids[:left])
        at = next((n for n, token in enumerate(ids) if token in ends), None)
        if at is not None:
            ids = ids[: at + 1]
        left -= len(ids)
        if ids:
            kept.append(replace(step, ids=tuple(ids)))
        if at is not None:
            return kept, "stop"
        if not left:
            break
    return kept, "length"
