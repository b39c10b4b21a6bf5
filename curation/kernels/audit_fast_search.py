"""`audit_postings.find_postings` in machine code (extra `[fast]`): the same matches, less those that lead nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.kernels.audit_fast_filter import CHUNK, shingle_at
from curation.kernels.audit_shingles import AROUND
from curation.kernels.pointers import compiled, prefetch

_LOW7, _HIGH, _ONES = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080), np.uint64(0x0101010101010101)
_MOST = np.uint64(2 * AROUND)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_FAR = 1 << 62
_LINE = 8  # words of a cache line
_REACH = 3  # the farthest of `audit_candidates._SHIFTS`
_GOOD, _BAD = np.int32(-2), np.int32(-3)


@compiled
def _bytes_at(hashes: Any, first: Any, low: Any, high: Any) -> Any:
    """Last byte of `AROUND` token hashes, the first lowest; 0 beyond the document."""
    word = np.uint64(0)
    if first >= low and first + AROUND <= high:
        for j in range(AROUND):
            word = (word >> np.uint64(8)) | (hashes[first + j] << np.uint64(56))
        return word
    for j in range(first, first + AROUND):
        byte = hashes[j] << np.uint64(56) if low <= j < high else np.uint64(0)
        word = (word >> np.uint64(8)) | byte
    return word


@compiled
def _num_different(a: Any, b: Any) -> Any:
    differ = a ^ b
    high = (((differ & _LOW7) + _LOW7) | differ) & _HIGH
    return ((high >> np.uint64(7)) * _ONES) >> np.uint64(56)


@compiled
def _find_rows(
    hashes: Any,
    size: Any,
    places: Any,
    begin: Any,
    limit: Any,
    begins: Any,
    shift: Any,
    rows: Any,
    row: Any,
    end: Any,
    shingles: Any,
) -> Any:
    """Write place, hash and rows at which to look of those flagged shingles that have any; return how many.

    They are written from entry 0 on, over places that were read. Every loop asks for what the next one looks at.
    """
    for i in range(begin, limit):
        shingle = shingle_at(hashes, np.int64(places[i]), size)
        shingles[i - begin] = shingle
        prefetch(begins, np.int64(shingle >> shift))
    flagged = limit - begin
    for i in range(flagged):
        bucket = np.int64(shingles[i] >> shift)
        row[i] = begins[bucket]
        end[i] = begins[bucket + 1]
        prefetch(rows, 4 * np.int64(row[i]))
        prefetch(rows, 4 * np.int64(row[i]) + _LINE)
    count: Any = 0
    for i in range(flagged):
        same = rows[4 * np.int64(row[i])] == shingles[i]
        places[count] = places[begin + i]
        shingles[count] = shingles[i]
        row[count] = row[i]
        end[count] = end[i]
        count += np.int64((same & (end[i] > row[i])) | (end[i] > row[i] + 1))
    return count


@compiled
def _is_alike(
    hashes: Any, low: Any, high: Any, at: Any, size: Any, prompt: Any, position: Any, prompts: Any, share: Any
) -> Any:
    """Tell whether enough tokens around a match are the same."""
    prompt_hashes, first, num_tokens, _weighted, _num_weighted, _may_miss, _min_run, stride = prompts
    if stride[prompt] > 1:
        return True
    shift = at - position
    a = max(0, position - AROUND)
    b = min(num_tokens[prompt], position + size + AROUND)
    same: Any = 0
    own = first[prompt]
    for j in range(max(a, low - shift), min(b, high - shift)):
        same += np.int64(hashes[shift + j] == prompt_hashes[own + j])
    return same >= share * (b - a)


@compiled
def _may_be_alike(
    hashes: Any, low: Any, high: Any, size: Any, prompt: Any, begin: Any, out: Any, following: Any, prompts: Any
) -> Any:
    """Tell whether all weighted tokens of a prompt, but for some, stand near where some match says.

    `audit_candidates` asks for as many, of fewer places: along one match, and off it only two in a row.
    """
    prompt_hashes, first, num_tokens, weighted, _num_weighted, may_miss, _min_run, _stride = prompts
    own = first[prompt]
    n = num_tokens[prompt]
    missing = may_miss[prompt]
    for j in range(n):
        if weighted[own + j] == 0:
            continue
        i: Any = begin
        there: Any = False
        last: Any = -_FAR
        while i >= 0 and not there:
            position = out[4 * i + 3]
            diagonal = out[4 * i + 2] - position
            there = position <= j < position + size
            if diagonal != last:  # most matches go on where the one before ended
                last = diagonal
                at = diagonal + j
                for place in range(max(at - _REACH, low), min(at + _REACH + 1, high)):
                    there |= hashes[place] == prompt_hashes[own + j]
            i = np.int64(following[i])
        if not there:
            missing -= 1
            if missing < 0:
                return False
    return True


@compiled
def _drop_hopeless(
    hashes: Any,
    low: Any,
    high: Any,
    size: Any,
    prompts: Any,
    heads: Any,
    following: Any,
    out: Any,
    begin: Any,
    count: Any,
) -> Any:
    """Drop, in place, the matches of one document with prompts that no class can hold; return how many stay."""
    _hashes, _first, _num_tokens, _weighted, num_weighted, _may_miss, min_run, stride = prompts
    for i in range(count - 1, begin - 1, -1):
        prompt = out[4 * i + 1]
        following[i] = heads[prompt]
        heads[prompt] = np.int32(i)
    for i in range(begin, count):
        prompt = out[4 * i + 1]
        if heads[prompt] != i:
            continue
        n = 0
        k: Any = i
        while k >= 0:
            n += 1
            k = np.int64(following[k])
        good = stride[prompt] > 1 or n + size - 1 >= min_run[prompt]
        if not good and 4 * n * size >= max(num_weighted[prompt], 1):
            good = _may_be_alike(hashes, low, high, size, prompt, i, out, following, prompts)
        heads[prompt] = _GOOD if good else _BAD
    kept: Any = begin
    for i in range(begin, count):
        following[i] = heads[out[4 * i + 1]]
    for i in range(begin, count):
        heads[out[4 * i + 1]] = np.int32(-1)
    for i in range(begin, count):
        if following[i] == _GOOD:
            for j in range(4):
                out[4 * kept + j] = out[4 * i + j]
            kept += 1
    return kept


@compiled
def search_document(
    hashes: Any,
    low: Any,
    high: Any,
    size: Any,
    places: Any,
    n: Any,
    table: Any,
    prompts: Any,
    share: Any,
    work: Any,
    document: Any,
    out: Any,
    count: Any,
    capacity: Any,
) -> Any:
    """Write document, prompt, place and position of the matches of one document behind `count` others.

    Parameters
    ----------
    hashes, low, high
        Tokens ``low`` to ``high - 1`` are the document's.
    size, places, n
        Tokens of a shingle, and the n tokens at which those begin that the filter let through; written over.
    table
        Where to look: first row of each bucket, how far to shift a hash for its bucket, and the rows.
    prompts, share
        Arrays of `OverlapIndex` and of `audit_candidates`: hashes, first, num_tokens, weighted, num_weighted, what may
        be missing, the run that is told, and stride; and the share of tokens that must be the same around a match.
    work
        Working memory: row and end (`CHUNK` entries), heads (one a prompt, -1 before and after), following
        (`capacity` entries) and shingles (`CHUNK` entries).
    document, out, count, capacity
        What is written, and the room for it in entries of four numbers.

    Returns
    -------
    int
        How many there are then, or -1 if there is no room.
    """
    begins, shift, rows = table
    row, end, heads, following, shingles = work
    opened = count
    for begin in range(0, n, CHUNK):
        limit = min(begin + CHUNK, n)
        found = _find_rows(hashes, size, places, begin, limit, begins, shift, rows, row, end, shingles)
        for i in range(found):
            at = np.int64(places[i])
            shingle = shingles[i]
            r = np.int64(row[i])
            last = np.int64(end[i])
            while r < last and rows[4 * r] != shingle:
                r += 1
            if r == last:
                continue
            before = _bytes_at(hashes, at - AROUND, low, high)
            behind = _bytes_at(hashes, at + size, low, high)
            while r < last and rows[4 * r] == shingle:
                place = rows[4 * r + 3]
                alike = _MOST - _num_different(before, rows[4 * r + 1]) - _num_different(behind, rows[4 * r + 2])
                if alike >= (place & np.uint64(31)):
                    prompt = np.int64(place >> np.uint64(32))
                    position = np.int64((place & _LOW_HALF) >> np.uint64(5))
                    if _is_alike(hashes, low, high, at, size, prompt, position, prompts, share):
                        if count == capacity:
                            return -1
                        out[4 * count] = document
                        out[4 * count + 1] = prompt
                        out[4 * count + 2] = at
                        out[4 * count + 3] = position
                        count += 1
                r += 1
    return _drop_hopeless(hashes, low, high, size, prompts, heads, following, out, opened, count)
