"""`audit_candidates.find_postings` compiled by numba (extra `[fast]`): the same matches in one pass over the tokens."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from curation.kernels.audit_candidates import AROUND, Postings, min_around
from curation.kernels.audit_hash import C
from curation.kernels.audit_index import SHINGLE, SHORT_SHINGLE, OverlapIndex, ShingleTable
from curation.kernels.audit_tokens import Tokens

_SIX = np.uint64(63)
_C1 = np.uint64(C)
_C2 = np.uint64(C * C % 2**64)


def find_postings(tokens: Tokens, index: OverlapIndex) -> tuple[Postings, Postings]:
    """Look up the shingles of a batch: see `audit_candidates.find_postings`."""
    return _search(tokens, index, index.five, SHINGLE), _search(tokens, index, index.three, SHORT_SHINGLE)


def _search(tokens: Tokens, index: OverlapIndex, table: ShingleTable, size: int) -> Postings:
    capacity = max(64, len(tokens.hashes) // 16)
    while True:
        out = np.empty((4, capacity), np.int64)
        count = 0
        if len(table.keys):
            count = _scan(
                tokens.hashes,
                tokens.first,
                size,
                *(table.keys, table.begins, table.prompt, table.position, table.seen, table.buckets),
                *(index.hashes, index.first, index.num_tokens, index.stride),
                min_around(index),
                out,
            )
        if count <= capacity:
            document, prompt, at, position = (row[:count].copy() for row in out)
            return Postings(document, prompt, at, position, size)
        capacity = count


@numba.njit(nogil=True, cache=True)
def _scan(
    hashes: Any,
    first: Any,
    size: Any,
    keys: Any,
    begins: Any,
    prompt: Any,
    position: Any,
    seen: Any,
    buckets: Any,
    prompt_hashes: Any,
    prompt_first: Any,
    num_tokens: Any,
    stride: Any,
    share: Any,
    out: Any,
) -> Any:
    """Write document, prompt, place and position of each match; return how many there are, written or not."""
    count: Any = 0
    lead_shift, bucket_shift = np.uint64(64), np.uint64(64)
    while np.uint64(1) << (np.uint64(64) - lead_shift) < np.uint64(len(seen)):
        lead_shift -= np.uint64(1)
    while np.uint64(1) << (np.uint64(64) - bucket_shift) < np.uint64(len(buckets) - 1):
        bucket_shift -= np.uint64(1)
    # Hashes first, the few that pass after them: in one loop every miss of the cache would wait for the one before.
    shingles = np.empty(len(hashes) + 1, np.uint64)
    passed = np.empty(len(hashes) + 1, np.int64)
    num_passed: Any = 0
    for at in range(len(hashes) - size + 1):
        shingle = hashes[at] * _C2 + hashes[at + 1] * _C1 + hashes[at + 2]
        if size == SHINGLE:
            shingle = shingle * _C2 + hashes[at + 3] * _C1 + hashes[at + 4]
        word = seen[shingle >> lead_shift]
        held = word >> (shingle & _SIX)
        held &= word >> ((shingle >> np.uint64(6)) & _SIX)
        held &= word >> ((shingle >> np.uint64(12)) & _SIX)
        shingles[num_passed] = shingle
        passed[num_passed] = at
        num_passed += np.int64(held & np.uint64(1))
    document: Any = 0
    for i in range(num_passed):
        shingle = shingles[i]
        key: Any = buckets[shingle >> bucket_shift]
        end = buckets[(shingle >> bucket_shift) + np.uint64(1)]
        while key < end and keys[key] != shingle:
            key += 1
        if key == end:
            continue
        at = passed[i]
        while first[document + 1] <= at:
            document += 1
        low, high = first[document], first[document + 1]
        if at + size > high:
            continue
        for posting in range(begins[key], begins[key + 1]):
            p = prompt[posting]
            if stride[p] == 1:
                shift = at - position[posting]
                a = max(0, position[posting] - AROUND)
                b = min(num_tokens[p], position[posting] + size + AROUND)
                same = 0
                for j in range(max(a, low - shift), min(b, high - shift)):
                    same += hashes[shift + j] == prompt_hashes[prompt_first[p] + j]
                if same < share * (b - a):
                    continue
            if count < out.shape[1]:
                out[0, count] = document
                out[1, count] = p
                out[2, count] = at
                out[3, count] = position[posting]
            count += 1
    return count
