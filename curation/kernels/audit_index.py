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
from curation.kernels.audit_tokens import Batch, Ints, join_texts, tokenize_prepared

SHINGLE = 5
SHORT_SHINGLE = 3
"""Tokens of a shingle; the short one for prompts of 3 and 4 tokens."""

MAX_PROMPTS = 8
"""A shingle found in the prompts of more records than this is template text and carries no weight."""

LONG_PROMPT = 4_096
"""Prompts of more tokens are found by a sample of their shingles, chosen by hash."""
_LONG_SAMPLE = 2_048
_SIX = np.uint64(63)

OK, TOO_SHORT, BOILERPLATE, PLACEHOLDER = range(4)
STATUS = ("auditable", "too_short", "boilerplate", "placeholder")
"""Why a prompt can, or cannot, be looked for; the index is the code."""


@dataclass(frozen=True, slots=True)
class ShingleTable:
    """Sorted shingle hashes and where each stands.

    Attributes
    ----------
    keys
        Ascending, shape ``(k,)``.
    begins
        Postings of key i are ``begins[i]:begins[i + 1]``, shape ``(k + 1,)``.
    prompt, position
        Prompt and first token of each posting.
    seen
        A Bloom filter of words, shape ``(2**w,)``: the leading w bits of a hash choose a word, and three times six
        trailing bits the bits in it that are set if the hash is a key. Most shingles of a corpus fail this one look-up
        in a table that stays in a core's cache.
    buckets
        Shape ``(2**c + 1,)``: the first key at or behind each pattern of c leading bits; about one key a bucket, where
        a binary search would miss the cache at every step.
    """

    keys: NDArray[np.uint64]
    begins: Ints
    prompt: NDArray[np.int32]
    position: NDArray[np.int32]
    seen: NDArray[np.uint64]
    buckets: NDArray[np.int32]

    def look_up(self, hashes: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """Return the positions in `hashes` that are keys, and which key each is."""
        if not len(self.keys) or not len(hashes):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        word = self.seen.take((hashes >> np.uint64(64 - (len(self.seen).bit_length() - 1))).view(np.int64))
        held = word >> (hashes & _SIX)
        held &= word >> ((hashes >> np.uint64(6)) & _SIX)
        held &= word >> ((hashes >> np.uint64(12)) & _SIX)
        held &= np.uint64(1)
        at = np.flatnonzero(held)
        return self.confirm(at, hashes[at])

    def confirm(self, at: Ints, hashes: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """Keep those of some candidate positions whose hash really is a key."""
        bucket = (hashes >> np.uint64(64 - (len(self.buckets).bit_length() - 1))).view(np.int64)
        key, end = self.buckets[bucket].astype(np.int64), self.buckets[bucket + 1]
        found = np.full(len(hashes), -1)
        todo = np.flatnonzero(key < end)
        while len(todo):
            same = self.keys[key[todo]] == hashes[todo]
            found[todo[same]] = key[todo[same]]
            todo = todo[~same]
            key[todo] += 1
            todo = todo[key[todo] < end[todo]]
        hit = np.flatnonzero(found >= 0)
        return at[hit], found[hit]


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
        sizes = zip(self.num_weighted.tolist(), self.units.tolist(), self.num_tokens.tolist(), strict=True)
        return np.array([near_coverage(*size) for size in sizes])

    @cached_property
    def part_length(self) -> Ints:
        """For each prompt, the run of tokens from which a part is told."""
        sizes = zip(self.num_weighted.tolist(), self.units.tolist(), self.num_tokens.tolist(), strict=True)
        return np.array([partial_run(*size) for size in sizes], np.int64)

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


def _table(
    prompts: Sequence[_Prompt | None], group: Ints, size: int, max_prompts: int
) -> tuple[ShingleTable, dict[int, NDArray[np.bool_]]]:
    """Return the table of the distinctive shingles, and which tokens of each prompt they cover."""
    keys, owner, position = _occurrences(prompts, size)
    common = _common(keys, group[owner], max_prompts)
    masks = {}
    for i, prompt in enumerate(prompts):
        if prompt is not None and prompt.stride == 1:
            masks[i] = np.zeros(len(prompt.hashes), np.bool_)
    keep = ~common
    keys, owner, position = keys[keep], owner[keep], position[keep]
    at, ends = 0, np.searchsorted(owner, np.arange(len(prompts)), "right")
    for i, mask in masks.items():
        at = int(ends[i - 1]) if i else 0
        begin = position[at : ends[i]]
        for k in range(size):
            mask[begin + k] = True
    order = np.argsort(keys, kind="stable")
    keys, owner, position = keys[order], owner[order], position[order]
    distinct, begins = np.unique(keys, return_index=True)
    bits = min(max(len(distinct).bit_length(), 6), 24)
    buckets = np.append(
        np.searchsorted(distinct, np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)), len(distinct)
    ).astype(np.int32)
    seen = _filter(distinct, bits - 2)
    begins = np.append(begins, len(keys)).astype(np.int64)
    return ShingleTable(distinct, begins, owner.astype(np.int32), position.astype(np.int32), seen, buckets), masks


def _filter(keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Bloom filter of words: 8 to 16 bits a key, of which three are set."""
    seen = np.zeros(1 << bits, np.uint64)
    one, mask = np.uint64(1), np.zeros(len(keys), np.uint64)
    for shift in (0, 6, 12):
        mask |= one << ((keys >> np.uint64(shift)) & _SIX)
    np.bitwise_or.at(seen, (keys >> np.uint64(64 - bits)).view(np.int64), mask)
    return seen


def _occurrences(prompts: Sequence[_Prompt | None], size: int) -> tuple[NDArray[np.uint64], Ints, Ints]:
    keys, owner, position = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for i, prompt in enumerate(prompts):
        if prompt is None:
            continue
        fives, threes = shingle_hashes(prompt.hashes)
        shingles = fives if size == SHINGLE else threes
        at = np.arange(len(shingles))
        if prompt.stride > 1:
            at = at[(shingles ^ (shingles >> np.uint64(32))) & np.uint64(prompt.stride - 1) == 0]
        keys.append(shingles[at])
        owner.append(np.full(len(at), i, np.int64))
        position.append(at)
    return np.concatenate(keys), np.concatenate(owner), np.concatenate(position)


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
