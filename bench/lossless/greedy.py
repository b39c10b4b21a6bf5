"""Whether greedy outputs are the same with and without speculation, conversation by conversation. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest

from bench.lossless.verdict import Json, Verdict, speculation_of
from bench.measured import Measured, by_conversation, is_complete

Gaps = Mapping[tuple[str, int], float | None]
"""Log-probability of the plain token less that of the other one, nats, by conversation and repeat; None if untold."""
Conversations = Mapping[tuple[str, int], list[Measured]]
"""Turns by conversation and repeat."""

MIN_COMPARED = 0.9
"""Share of the conversations that must have been compared for equality to be said of a run."""
NEAR_TIE_NATS = 0.1
"""Gap of two log-probabilities that arithmetic of 16 bits can turn: a rounding of 2^-9 at logits of about 25, twice."""


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
    pairs = _paired(before, after)
    reasons = {key: _why_not(base, turns) for key, (base, turns) in pairs.items()}
    compared = [(base, turns) for key, (base, turns) in pairs.items() if base and turns and not reasons[key]]
    found = [_differs(base, turns) for base, turns in compared]
    by_text = sum(not all(map(_by_ids, base, turns)) for base, turns in compared)
    rows = _rows([difference for difference in found if difference is not None], gaps or {})
    absent = [{"conversation_id": key[0], "repeat": key[1], "reason": why} for key, why in reasons.items() if why]
    near = sum(_is_near(row["logprob_gap"]) for row in rows)
    speculation = speculation_of(speculative)
    verdict, reason = _verdict(len(compared), len(rows), near, len(absent), speculation)
    return {
        "verdict": verdict,
        "reason": reason,
        "by": "token_ids" if by_text < max(len(compared), 1) else "text",
        "conversations": len(compared),
        "by_text": by_text,
        "equal": len(compared) - len(rows),
        "share_equal": 1 - len(rows) / len(compared) if compared else None,
        "output_tokens": sum(turn.answer.num_tokens or 0 for _, turns in compared for turn in turns),
        "near_ties": near if any(row["logprob_gap"] is not None for row in rows) else None,
        "differences": rows,
        "not_compared": absent,
        "speculation": speculation,
        "plain_repeats": _self_agreement(before),
    }


def _paired(
    before: Conversations, after: Conversations
) -> dict[tuple[str, int], tuple[list[Measured] | None, list[Measured] | None]]:
    """Return plain and speculative turns of each conversation; None for the side that lacks it."""
    firsts = dict[str, list[Measured]]()
    for (conversation_id, _), turns in before.items():
        firsts.setdefault(conversation_id, turns)
    sent = {conversation_id for conversation_id, _ in after}
    pairs = {key: (before.get(key) or firsts.get(key[0]), turns) for key, turns in after.items()}
    return {**pairs, **{key: (turns, None) for key, turns in before.items() if key[0] not in sent}}


def _rows(differences: Sequence[Difference], gaps: Gaps) -> list[Json]:
    return [asdict(d) | {"logprob_gap": gaps.get((d.conversation_id, d.repeat))} for d in differences]


def _is_near(gap: float | None) -> bool:
    return gap is not None and abs(gap) <= NEAR_TIE_NATS


def _why_not(plain: list[Measured] | None, speculative: list[Measured] | None) -> str:
    if plain is None:
        return "not in the plain run"
    if speculative is None:
        return "not in the speculative run"
    for name, turns in (("plain", plain), ("speculative", speculative)):
        if not is_complete(turns):
            failed = next((turn.answer.error for turn in turns if not turn.ok), "a turn was not sent")
            return f"{name} run: {failed}"
    if plain[0].trace.prompt_sha256 != speculative[0].trace.prompt_sha256:
        return "the two runs sent different prompts"
    return ""


def _differs(plain: list[Measured], speculative: list[Measured]) -> Difference | None:
    for a, b in zip(plain, speculative, strict=True):
        by_ids = _by_ids(a, b)
        left, right = _output(a, by_ids=by_ids), _output(b, by_ids=by_ids)
        position = first_difference(left, right)
        if position is not None:
            there = [values[position] if position < len(values) else None for values in (left, right)]
            trace = b.trace
            category = trace.slices.get("category", "")
            return Difference(trace.conversation_id, trace.repeat, category, trace.turn, position, there[0], there[1])
    return None


def _by_ids(a: Measured, b: Measured) -> bool:
    return a.answer.token_ids is not None and b.answer.token_ids is not None


def _output(request: Measured, *, by_ids: bool) -> Sequence[int] | str:
    answer = request.answer
    return (answer.token_ids or ()) if by_ids else answer.reasoning_text + answer.text


def _verdict(compared: int, differ: int, near: int, absent: int, speculation: Json | None) -> tuple[Verdict, str]:
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


def _self_agreement(runs: Conversations) -> Json | None:
    """Return how many conversations the plain run answers alike in all repeats; None if it has one repeat."""
    repeats = dict[str, list[list[Measured]]]()
    for (conversation_id, _), turns in runs.items():
        if is_complete(turns):
            repeats.setdefault(conversation_id, []).append(turns)
    repeated = [answers for answers in repeats.values() if len(answers) > 1]
    if not repeated:
        return None
    alike = sum(all(_differs(first, other) is None for other in rest) for first, *rest in repeated)
    return {"conversations": len(repeated), "equal": alike}
