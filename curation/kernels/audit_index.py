"""The index of the prompts: which shingle stands where in which prompt, and which of them say anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_fold import OWN_LEAD, fold_character
from curation.kernels.audit_hash import shingle_hashes
from curation.kernels.audit_rules import near_coverage, partial_run
from curation.kernels.audit_shingles import AROUND, Occurrences, ShingleTable, make_table, surroundings
from curation.kernels.audit_tokens import Batch, Ints, join_texts, tokenize_prepared

SHINGLE = 5
SHORT_SHINGLE = 3
"""Tokens of a shingle; the short one for prompts of 3 and 4 tokens."""

MAX_PROMPTS = 8
"""A shingle found in the prompts of more records than this is template text and carries no weight."""

LONG_PROMPT = 4_096
"""Prompts of more tokens are found by a sample of their shingles, chosen by hash."""
_LONG_SAMPLE = 2_048

OK, TOO_SHORT, BOILERPLATE, PLACEHOLDER = range(4)
STATUS = ("auditable", "too_short", "boilerplate", "placeholder")
"""Why a prompt can, or cannot, be looked for; the index is the code."""


@dataclass(frozen=True)
class OverlapIndex:
    """All prompts, ready to be looked for.

    Attributes
    ----------
    texts
        The prompts; "" for a placeholder.
    five, three
        Shingles of prompts of 5 tokens or more, and of 3 and 4 tokens.
    hashes, weighted, digits, first
        Tokens of prompt p are ``first[p]:first[p + 1]``; a weighted token lies in a shingle that few prompts share, a
        digits token is a number. Empty for prompts beyond `LONG_PROMPT` tokens.
    num_tokens, num_weighted
        Tokens of each prompt, and how many carry weight.
    units
        Length of each prompt in words, where a token of a script without spaces counts one half.
    stride
        One in so many shingles of the prompt is indexed.
    status
        Index into `STATUS`.
    max_prompts
        The limit beyond which a shingle carries no weight.
    """

    texts: Sequence[str]
    five: ShingleTable
    three: ShingleTable
    hashes: NDArray[np.uint64]
    weighted: NDArray[np.bool_]
    digits: NDArray[np.bool_]
    first: Ints
    num_tokens: Ints
    num_weighted: Ints
    units: NDArray[np.float64]
    stride: Ints
    status: NDArray[np.int8]
    max_prompts: int = MAX_PROMPTS

    @property
    def min_run(self) -> int:
        """The shortest run of tokens that any rule over this index can ask for."""
        return 8 if self.max_prompts > MAX_PROMPTS else 13

    @cached_property
    def near_share(self) -> NDArray[np.float64]:
        """For each prompt, the coverage from which an edited copy is near."""
        return near_coverage(self.num_weighted, self.units, self.num_tokens)

    @cached_property
    def part_length(self) -> Ints:
        """For each prompt, the run of tokens from which a part is told."""
        return partial_run(self.num_weighted, self.units, self.num_tokens)

    @cached_property
    def has_numbers(self) -> NDArray[np.bool_]:
        """Tell of each prompt whether a token of it is a number."""
        before = np.concatenate([[0], np.cumsum(self.digits)])
        return (before[self.first[1:]] > before[self.first[:-1]]) | (self.stride > 1)

    def tokens(self, prompt: int) -> NDArray[np.uint64]:
        """Token hashes of one prompt."""
        if self.stride[prompt] > 1:
            return hash_text(self.texts[prompt])
        return self.hashes[self.first[prompt] : self.first[prompt + 1]]

    def weights(self, prompt: int) -> NDArray[np.bool_]:
        """Which tokens of one prompt carry weight."""
        if self.stride[prompt] > 1:
            return np.ones(int(self.num_tokens[prompt]), np.bool_)
        return self.weighted[self.first[prompt] : self.first[prompt + 1]]

    def numeric(self, prompt: int) -> NDArray[np.bool_]:
        """Which tokens of one prompt are numbers."""
        if self.stride[prompt] > 1:
            return _Prompt.read(self.texts[prompt]).digits
        return self.digits[self.first[prompt] : self.first[prompt + 1]]


def hash_text(text: str) -> NDArray[np.uint64]:
    """Return the token hashes of one text."""
    return tokenize_prepared(*join_texts([text])).tokens.hashes


def build_index(
    texts: Sequence[str],
    groups: Sequence[int],
    *,
    placeholders: Sequence[bool] = (),
    max_prompts: int = MAX_PROMPTS,
) -> OverlapIndex:
    """Index prompts.

    Parameters
    ----------
    texts
        The prompts.
    groups
        Record of each prompt: a shingle shared by the prompts of one record only is not template text.
    placeholders
        True for a prompt whose text is not there.
    max_prompts
        Shingles of more records than this carry no weight.
    """
    hidden = list(placeholders) or [False] * len(texts)
    parts = [_Prompt.read("" if gone else text) for text, gone in zip(texts, hidden, strict=True)]
    group = np.asarray(groups, np.int64)
    long = [p if len(p.hashes) >= SHINGLE else None for p in parts]
    short = [p if SHORT_SHINGLE <= len(p.hashes) < SHINGLE else None for p in parts]
    five, masks = _table(long, group, SHINGLE, max_prompts)
    three, short_masks = _table(short, group, SHORT_SHINGLE, max_prompts)
    masks.update(short_masks)
    kept = [p.hashes if p.stride == 1 else p.hashes[:0] for p in parts]
    weights = [masks.get(i, np.zeros(len(k), np.bool_)) for i, k in enumerate(kept)]
    counts = np.array([len(p.hashes) for p in parts], np.int64)
    stride = np.array([p.stride for p in parts], np.int64)
    num_weighted = np.array([w.sum() for w in weights], np.int64)
    num_weighted[stride > 1] = counts[stride > 1]
    status = np.where(num_weighted > 0, OK, np.where(counts < SHORT_SHINGLE, TOO_SHORT, BOILERPLATE)).astype(np.int8)
    status[np.asarray(hidden, np.bool_)] = PLACEHOLDER
    return OverlapIndex(
        texts=["" if gone else text for text, gone in zip(texts, hidden, strict=True)],
        five=five,
        three=three,
        hashes=np.concatenate([*kept, np.zeros(0, np.uint64)]),
        weighted=np.concatenate([*weights, np.zeros(0, np.bool_)]),
        digits=np.concatenate([*(p.digits[: len(k)] for p, k in zip(parts, kept, strict=True)), np.zeros(0, np.bool_)]),
        first=np.concatenate([[0], np.cumsum([len(k) for k in kept])]).astype(np.int64),
        num_tokens=counts,
        num_weighted=num_weighted,
        units=np.array([p.units for p in parts], np.float64),
        stride=stride,
        status=status,
        max_prompts=max_prompts,
    )


@dataclass(frozen=True, slots=True)
class _Prompt:
    hashes: NDArray[np.uint64]
    digits: NDArray[np.bool_]
    units: float
    stride: int

    @classmethod
    def read(cls, text: str) -> _Prompt:
        batch = tokenize_prepared(*join_texts([text]))
        hashes = batch.tokens.hashes
        stride = 1
        while len(hashes) > LONG_PROMPT and len(hashes) // stride > _LONG_SAMPLE:
            stride *= 2
        own = int((batch.tokens.lead >= OWN_LEAD).sum())
        return cls(hashes, _digits(batch), len(hashes) - 0.5 * own, stride)


def _digits(batch: Batch) -> NDArray[np.bool_]:
    digits = (batch.tokens.lead - np.uint8(48)) < 10
    at = np.flatnonzero(digits)
    begin, end = batch.tokens.spans(at)
    for i, a, b in zip(at, begin, end, strict=True):
        token = batch.raw[a:b].tobytes().decode("utf-8", "ignore")
        digits[i] = "".join(map(fold_character, token)).isdigit()
    return digits


def min_around(max_prompts: int) -> float:
    """Return the share of the tokens about a match that must be the same in document and prompt."""
    return 0.35 if max_prompts > MAX_PROMPTS else 0.45


def _table(
    prompts: Sequence[_Prompt | None], group: Ints, size: int, max_prompts: int
) -> tuple[ShingleTable, dict[int, NDArray[np.bool_]]]:
    """Return the table of the distinctive shingles, and which tokens of each prompt they cover."""
    found = _occurrences(prompts, size, min_around(max_prompts))
    found = found.take(~_common(found.keys, group[found.prompt], max_prompts))
    masks = {}
    at, ends = 0, np.searchsorted(found.prompt, np.arange(len(prompts)), "right")
    for i, prompt in enumerate(prompts):
        if prompt is None or prompt.stride > 1:
            continue
        masks[i] = np.zeros(len(prompt.hashes), np.bool_)
        at = int(ends[i - 1]) if i else 0
        begin = found.position[at : ends[i]]
        for k in range(size):
            masks[i][begin + k] = True
    return make_table(found), masks


def _occurrences(prompts: Sequence[_Prompt | None], size: int, share: float) -> Occurrences:
    none = np.zeros(0, np.uint64)
    parts = [Occurrences(none, none.astype(np.int64), none.astype(np.int64), none, none, none.astype(np.uint8))]
    for i, prompt in enumerate(prompts):
        if prompt is None:
            continue
        n = len(prompt.hashes)
        fives, threes = shingle_hashes(prompt.hashes)
        shingles = fives if size == SHINGLE else threes
        at = np.arange(len(shingles))
        there = np.minimum(at, AROUND) + size + np.minimum(n - size - at, AROUND)
        need = np.ceil(share * there) - size
        if prompt.stride > 1:
            # The tokens of a sampled prompt are not kept, so there is nothing to confirm a match by.
            at = at[(shingles ^ (shingles >> np.uint64(32))) & np.uint64(prompt.stride - 1) == 0]
            need[:] = 0
        before, behind = surroundings(prompt.hashes, size)
        owner = np.full(len(shingles), i, np.int64)
        whole = Occurrences(
            shingles, owner, np.arange(n - size + 1), before, behind, np.maximum(need, 0).astype(np.uint8)
        )
        parts.append(whole.take(at))
    return Occurrences(*(np.concatenate([getattr(p, name) for p in parts]) for name in Occurrences.__slots__))


def _common(keys: NDArray[np.uint64], group: Ints, max_prompts: int) -> NDArray[np.bool_]:
    """Tell which occurrences are of a shingle that more than `max_prompts` groups hold."""
    if not len(keys):
        return np.zeros(0, np.bool_)
    order = np.lexsort((group, keys))
    k, g = keys[order], group[order]
    new_key = np.append(True, k[1:] != k[:-1])
    new_pair = new_key | np.append(True, g[1:] != g[:-1])
    which = np.cumsum(new_key) - 1
    num_groups = np.bincount(which, weights=new_pair)
    common = np.zeros(len(keys), np.bool_)
    common[order] = num_groups[which] > max_prompts
    return common
