"""From what an engine said of one request to the normal form of its acceptance. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.acceptance import Acceptance, Step, from_steps
from bench.answer import Answer, SpecCounters


def clipped_steps(
    per_step: Sequence[tuple[int | None, int]], decoded: int, num_chunks: int | None
) -> tuple[list[Step], int] | None:
    """Return the verify steps clipped to the delivered tokens, and the number of steps without a draft.

    Parameters
    ----------
    per_step
        ``(drafted, matched)`` of the steps that had a draft, in order.
    decoded
        Delivered tokens after the prefill's one.
    num_chunks
        Chunks of the stream that held tokens, the prefill's among them; None if they were not told by id.

    Returns
    -------
    tuple or None
        None where steps without a draft hide by how much the last one overshot.

    Notes
    -----
    An engine may verify past the end of text or the budget, in the last step only. Each chunk but the first is one
    step (fewer chunks where reads were merged), so the last step overshot by
    ``sum(matched) + num_chunks - 1 - decoded``, at least by what the steps hold too much, at most by its drafts.
    """
    full = sum(matched + 1 for _, matched in per_step)
    if num_chunks is None and full < decoded:
        return None
    last = per_step[-1][1] if per_step else 0
    least = max(full - decoded, 0)
    seen = 0 if num_chunks is None else full - len(per_step) + num_chunks - 1 - decoded
    overshoot = max(min(seen, last), least)
    plain = decoded - full + overshoot
    steps, left = list[Step](), decoded - plain
    for drafted, matched in per_step:
        delivered = min(matched + 1, left)
        left -= delivered
        steps.append(Step(drafted, matched, delivered))
    return steps, plain


def normal_form(answer: Answer, *, draft_length: int | None = None) -> Acceptance | None:
    """Return the acceptance of one answer from the best evidence that it holds; None if it holds none.

    Parameters
    ----------
    draft_length
        k as the server was started, to which the histogram is dense; 0 if it does not speculate, which chunk lengths
        alone do not show; None if it is not known.
    """
    tokens, k = answer.num_tokens, draft_length or 0
    if draft_length == 0 or answer.error or tokens is None or tokens < 2:
        return None
    if answer.spec is not None:
        exact = _from_counters(answer.spec, tokens - 1, _chunk_lengths(answer), k)
        if exact is not None:
            return exact
    return _from_chunks(answer, k)


def _chunk_lengths(answer: Answer) -> list[int] | None:
    """Tokens by id of each chunk that holds any; None if the engine sends no ids."""
    return [chunk.num_tokens for chunk in answer.chunks if chunk.num_tokens] if answer.chunk_ids else None


def _from_counters(spec: SpecCounters, decoded: int, lengths: list[int] | None, k: int) -> Acceptance | None:
    k = max(k, spec.draft_length or 0)
    if spec.steps == 0:  # a drafter that never proposed anything: every step was a plain one
        return Acceptance("per_step", 0, 0, (0,) * (k + 1), 0, 0, (0,) * k, plain_steps=decoded)
    if spec.per_step is not None and spec.delivered is not None:
        steps = [Step(d, m, c) for (d, m), c in zip(spec.per_step, spec.delivered, strict=True)]
        return from_steps(steps, "per_step", plain_steps=spec.plain_steps, k=k)
    if spec.per_step is not None:
        clipped = clipped_steps(spec.per_step, decoded, None if lengths is None else len(lengths))
        return None if clipped is None else from_steps(clipped[0], "per_step", plain_steps=clipped[1], k=k)
    if spec.histogram is not None:
        return _from_histogram(spec, spec.histogram, decoded, lengths)
    if spec.steps and spec.matched is not None:
        return _from_totals(spec, spec.steps, spec.matched, decoded, None)
    return None


def _from_totals(
    spec: SpecCounters, steps: int, matched: int, decoded: int, histogram: tuple[int, ...] | None
) -> Acceptance | None:
    overshoot = steps + matched - decoded
    if overshoot < 0:
        return None  # steps without a draft took part, and hide whether the last step was cut
    # Where the last step was cut, all that it delivered were drafts; no token of the target's own came with it.
    accepted = decoded - steps + (1 if overshoot else 0)
    return Acceptance(
        "totals", steps, decoded, histogram, spec.drafted, accepted, None, plain_steps=0, nodes=spec.nodes
    )


def _from_histogram(
    spec: SpecCounters, histogram: tuple[int, ...], decoded: int, lengths: list[int] | None
) -> Acceptance | None:
    """Move the last step to what it delivered: the last chunk's length plus the overshoot is what it matched."""
    steps, matched = sum(histogram), sum(i * count for i, count in enumerate(histogram))
    overshoot = steps + matched - decoded
    counts = list(histogram)
    if overshoot > 0:
        last = lengths[-1] if lengths else 0
        full = last - 1 + overshoot
        if not (last and full < len(counts) and counts[full]):
            return None
        counts[full] -= 1
        counts[last - 1] += 1
    return _from_totals(spec, steps, matched, decoded, tuple(counts)) if steps else None


def _from_chunks(answer: Answer, k: int) -> Acceptance | None:
    lengths = _chunk_lengths(answer)
    if not lengths:
        return None
    # The first token is the prefill's; what came with it was a step merged into its chunk.
    delivered = [lengths[0] - 1, *lengths[1:]]
    steps = [Step(None, n - 1, n) for n in delivered if n]
    k = max(k, (answer.spec.draft_length if answer.spec else None) or 0)
    return from_steps(steps, "chunks", plain_steps=None, k=k) if steps else None


@dataclass(frozen=True, slots=True)
class EngineTotals:
    """What the engine itself counted of a request, unclipped: steps and matched drafts."""

    steps: int
    matched: int
    drafted: int | None


def engine_totals(answer: Answer) -> EngineTotals | None:
    """Return the engine's own totals of one answer; None if it gave none."""
    spec = answer.spec
    if spec is None:
        return None
    if spec.per_step is not None:
        steps, matched = len(spec.per_step), sum(m for _, m in spec.per_step)
    elif spec.histogram is not None:
        steps, matched = sum(spec.histogram), sum(i * count for i, count in enumerate(spec.histogram))
    elif spec.steps is not None and spec.matched is not None:
        steps, matched = spec.steps, spec.matched
    else:
        return None
    return EngineTotals(steps, matched, spec.drafted) if steps else None
