"""Cells filled with rows: which record is tried for which length, and when a cell is full.

Records are tried in an order that a seeded digest of their ids gives, the sources of a tier taking turns, so neither
the order of files nor the number of processes can change a row.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from curation.throughput.composition import Target
from curation.throughput.rows import Built, Refused

Attempt = Callable[[Sequence[tuple[Target, int]]], Iterable[Built | Refused]]
"""Builds rows of targets at lengths, and returns the outcomes in the same order."""

BATCH_ROWS = 16
"""Fewest rows tried at once where a cell lacks less: one at a time would leave processes idle."""


def in_turns(targets_by_source: Sequence[Iterable[Target]], *key: str) -> list[Target]:
    """Return the targets of several sources, preferred ones first, the sources taking turns.

    Parameters
    ----------
    targets_by_source
        The targets of each source of a tier.
    key
        What the order of a source's targets depends on beside their ids: the recipe's seed and the config.
    """
    by_source = [sorted(targets, key=lambda t: _digest(*key, t.record_id)) for targets in targets_by_source]
    ordered: list[Target] = []
    for preferred in (True, False):
        turns = zip_longest(*([t for t in targets if t.preferred is preferred] for targets in by_source))
        ordered += [target for turn in turns for target in turn if target is not None]
    return ordered


def _digest(*key: str) -> bytes:
    return hashlib.sha256("\x1f".join(key).encode("utf-8", "surrogatepass")).digest()


@dataclass(slots=True)
class ConfigState:
    """What the rows of one config have used up: identities of targets, and prefixes with the row that has them."""

    identities: set[str] = field(default_factory=set)
    prefixes: dict[tuple[int, ...], str] = field(default_factory=dict)


def fill(
    lengths: Sequence[int], targets: Sequence[Target], state: ConfigState, attempt: Attempt
) -> tuple[list[Built], list[Refused]]:
    """Return the rows of one cell, at most one a length, and the targets that were tried and refused.

    Parameters
    ----------
    lengths
        Tokens of each row that is wanted.
    targets
        In the order in which they are tried; one of an identity that the config has already is passed over.
    state
        Of the config; what this cell uses is added.
    attempt
        Builds the rows.
    """
    rows: list[Built] = []
    refused: list[Refused] = []
    wanted = list(lengths)
    waiting = deque(targets)
    while wanted:
        batch = _batch(waiting, wanted, state)
        if not batch:
            break
        filled: set[int] = set()
        spare: list[Target] = []
        for i, ((target, _), outcome) in enumerate(zip(batch, attempt(batch), strict=True)):
            slot = i % len(wanted)
            if slot in filled:  # tried in case; it may stand for another length yet
                spare.append(target)
            elif target.identity not in state.identities:
                refusal = _refusal(target, outcome, state)
                if refusal is not None:
                    refused.append(refusal)
                elif isinstance(outcome, Built):
                    filled.add(slot)
                    rows.append(outcome)
                    state.identities.add(target.identity)
                    state.prefixes[outcome.prefix] = outcome.row["question_id"]
        waiting.extendleft(reversed(spare))
        wanted = [n for slot, n in enumerate(wanted) if slot not in filled]
    return rows, refused


def _batch(waiting: deque[Target], wanted: Sequence[int], state: ConfigState) -> list[tuple[Target, int]]:
    """Take targets for the lengths, and some more where few lengths are left."""
    batch: list[tuple[Target, int]] = []
    while waiting and len(batch) < max(BATCH_ROWS, len(wanted)):
        target = waiting.popleft()
        if target.identity not in state.identities:
            batch.append((target, wanted[len(batch) % len(wanted)]))
    return batch


def _refusal(target: Target, outcome: Built | Refused, state: ConfigState) -> Refused | None:
    if isinstance(outcome, Refused):
        return outcome
    other = state.prefixes.get(outcome.prefix)
    if other is None:
        return None
    return Refused(target.record_id, "its first tokens are those of another row", len(outcome.prefix), other)
