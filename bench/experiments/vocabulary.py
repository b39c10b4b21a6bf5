"""What a pruned vocabulary would cost the drafter, from the token ids of a run. Pure.

A drafter that knows only the K most frequent tokens of its training text cannot propose any other. SPEED-Bench (Sec.
8.2, Table 14) reports the share of output tokens inside the top K, and the acceptance that is lost, by category.

Notes
-----
The loss here is a what-if and an upper bound: every accepted draft outside the top K is taken as rejected. The target
then gives that very token itself and the step ends there, so each such draft adds one step, and nothing else changes:
``AL_pruned = delivered / (steps + cut)``. A drafter trained with the pruned vocabulary, or a later step that drafts on
past where the old one ended, loses less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bench.acceptance import Acceptance
from bench.evidence import clipped_steps
from bench.measured import Measured
from bench.slices import sliced
from bench.statistics import Interval, ratio_interval


@dataclass(frozen=True, slots=True)
class PrunedCategory:
    """A category under a vocabulary of the K most frequent tokens.

    Attributes
    ----------
    tokens
        Output tokens.
    outside
        Share of them outside the top K, in [0, 1], with its interval over conversations.
    acceptance_length, pruned_length
        Pooled over the verify steps whose tokens are known, tokens/step; None where no step is.
    steps, untold
        Those steps; and requests whose steps cannot be told from their chunks.
    """

    category: str
    top_k: int
    tokens: int
    outside: Interval
    acceptance_length: float | None
    pruned_length: float | None
    steps: int
    untold: int

    @property
    def cost(self) -> float | None:
        """Share of the acceptance length that would be lost at most, in [0, 1)."""
        if self.acceptance_length is None or self.pruned_length is None:
            return None
        return 1.0 - self.pruned_length / self.acceptance_length


def top_tokens(counts: Mapping[int, int], k: int) -> frozenset[int]:
    """Return the k most frequent ids that occur at all; of ids alike in count, the lower.

    Raises
    ------
    ValueError
        If k < 1.
    """
    if k < 1:
        raise ValueError(f"k must be >= 1, got {k}")
    there = [token for token, count in counts.items() if count > 0]
    return frozenset(sorted(there, key=lambda token: (-counts[token], token))[:k])


def counted(ids: Iterable[int]) -> dict[int, int]:
    """Return how often each id occurs."""
    values, counts = np.unique(np.fromiter(ids, np.int64), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def verified_tokens(request: Measured) -> list[tuple[int, ...]] | None:
    """Return the ids that each decode step delivered, in order; None where steps and ids cannot be brought together.

    Notes
    -----
    Each chunk after the first is a step, if they are as many and as long as the engine counted. Where chunks were
    merged on the way, the engine's own steps are taken, as long as none of them lacked a draft, for these are not told
    in order. A step of one token may be either: it holds no accepted draft, and costs nothing.
    """
    ids, form = request.answer.token_ids, request.acceptance
    if not request.ok or not ids or form is None:
        return None
    chunks = [chunk.num_tokens or 0 for chunk in request.answer.chunks]
    for sizes in (chunks[1:], _counted_sizes(request, len(ids) - 1)):
        if sum(sizes) == len(ids) - 1 and _tells_steps(sizes, form):
            edges = [1, *(1 + np.cumsum(sizes)).tolist()]
            return [tuple(ids[start:end]) for start, end in pairwise(edges)]
    return None


def _counted_sizes(request: Measured, decoded: int) -> list[int]:
    spec = request.answer.spec
    if spec is None or spec.per_step is None:
        return []
    if spec.delivered is not None:
        return list(spec.delivered)
    clipped = clipped_steps(spec.per_step, decoded, None)
    return [] if clipped is None else [step.delivered for step in clipped[0] if step.delivered]


def _tells_steps(sizes: Sequence[int], form: Acceptance) -> bool:
    """Tell whether steps of these sizes are those of the normal form and the plain ones beside them."""
    if form.histogram is None or 0 in sizes:
        return False
    own = Counter({i + 1: count for i, count in enumerate(form.histogram) if count})
    own[1] += form.plain_steps or 0
    return Counter(sizes) == own


def pruned(
    requests: Sequence[Measured], kept: Collection[int], top_k: int, by: str = "category"
) -> list[PrunedCategory]:
    """Return what each category would lose if only `kept` ids could be drafted."""
    return [_pruned(name, group, kept, top_k) for name, group in sliced(requests, by).items() if _ids(group)]


def _ids(requests: Sequence[Measured]) -> int:
    return sum(len(m.answer.token_ids or ()) for m in requests if m.ok)


def _pruned(name: str, requests: Sequence[Measured], kept: Collection[int], top_k: int) -> PrunedCategory:
    delivered = steps = cut = untold = 0
    for request in requests:
        told = verified_tokens(request)
        if told is None:
            untold += request.ok
            continue
        plain = (request.acceptance.plain_steps or 0) if request.acceptance else 0
        delivered += sum(map(len, told)) - plain
        steps += len(told) - plain
        # The last token of a step is the target's own, or the last of the answer: no step follows from it.
        cut += sum(token not in kept for step in told for token in step[:-1])
    length = delivered / steps if steps else None
    shorter = delivered / (steps + cut) if steps else None
    return PrunedCategory(name, top_k, _ids(requests), _outside(requests, kept), length, shorter, steps, untold)


def _outside(requests: Sequence[Measured], kept: Collection[int]) -> Interval:
    sums = dict[str, tuple[int, int]]()
    for request in requests:
        ids = request.answer.token_ids or () if request.ok else ()
        beyond, there = sums.get(request.trace.conversation_id, (0, 0))
        sums[request.trace.conversation_id] = beyond + sum(token not in kept for token in ids), there + len(ids)
    rows = np.array([sums[name] for name in sorted(sums)], np.float64)
    outside, tokens = rows[rows[:, 1] > 0].T
    return ratio_interval(outside, tokens)
