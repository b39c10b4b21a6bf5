"""Tokens of whole documents in machine code (extra `[fast]`): the same as `audit_tokens.tokenize_batch`.

The functions take pointers and allocate nothing, so that numba is needed only to compile them (see `machine_code`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.kernels.audit_fold import FILL, OWN_LEAD, SPECIAL
from curation.kernels.audit_hash import K0, K1, K2, K3
from curation.kernels.pointers import compiled, high_bits, load_word, trailing_zeros, word_bits

READY, NEEDS_PREPARATION, UNKNOWN = range(3)
"""Of a document: its tokens are written; it must be prepared first; it holds a character that `four` does not."""

UNKNOWN_CODE = 0xFFFFFFFF
"""What the table of characters of four bytes holds until one is met."""

_K0, _K1, _K2, _K3 = (np.uint64(k) for k in (K0, K1, K2, K3))
_OWN = np.uint32(OWN_LEAD)
_FILL = np.uint32(FILL)
_SPECIAL = np.uint32(SPECIAL)
_UNKNOWN = np.uint32(UNKNOWN_CODE)
_LOWER = np.uint64(0x2020202020202020)
_FILLED = np.uint32(FILL * 0x010101)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _THREE, _EIGHT, _SIXTEEN = np.uint64(1), np.uint64(3), np.uint64(8), np.uint64(16)

# What a byte begins: a separator, an ASCII letter or digit, a character that is its own token as it stands, the rest.
_SEPARATES, _WORD, _OWN_TOKEN, _OTHER = range(4)


@compiled
def _kind(b: Any) -> Any:
    if b < 0x80:
        if np.uint8((b | np.uint8(0x20)) - np.uint8(97)) < 26 or np.uint8(b - np.uint8(48)) < 10:
            return 1
        return 0
    if (0xE4 <= b < 0xEA) or (0xEB <= b < 0xEE):
        return 2
    return 3


@compiled
def _kept(length: Any) -> Any:
    """Mask of the first `length` bytes of a word, 1 <= length <= 8."""
    return _ALL >> np.uint64(64 - 8 * length)


@compiled
def _safe_word(data: Any, size: Any, i: Any) -> Any:
    """Load eight bytes at `i`, zeros beyond the buffer."""
    if i + 8 <= size:
        return load_word(data, i)
    word = np.uint64(0)
    for j in range(size - i):
        word |= np.uint64(data[i + j]) << np.uint64(8 * j)
    return word


@compiled
def _hash_long(w0: Any, w1: Any, w2: Any, length: Any) -> Any:
    """Hash of a token of more than eight bytes, by its words (see `audit_hash`)."""
    if length <= 16:
        w2 = np.uint64(0)
    x = w0 * _K0 + ((w1 * _K1) ^ (w2 * _K2)) + np.uint64(length) * _K3
    return x ^ (x >> np.uint64(29))


@compiled
def _hash_short(word: Any) -> Any:
    x = word * _K0
    return x ^ (x >> np.uint64(29))


@compiled
def _hash_ascii(data: Any, size: Any, s: Any, length: Any) -> Any:
    """Hash of a token of ASCII letters and digits, which fold by setting one bit."""
    w0 = load_word(data, s) if s + 8 <= size else _safe_word(data, size, s)
    if length <= 8:
        return _hash_short((w0 | _LOWER) & _kept(length))
    w1 = (_safe_word(data, size, s + 8) | _LOWER) & _kept(min(length - 8, 8))
    return _hash_long(w0 | _LOWER, w1, load_word(data, s + length - 8) | _LOWER, length)


@compiled
def _hash_folded(folded: Any, length: Any) -> Any:
    """Hash of a token whose folded bytes are written out, 16 bytes of room behind them."""
    if length <= 8:
        return _hash_short(load_word(folded, 0) & _kept(length))
    return _hash_long(
        load_word(folded, 0), load_word(folded, 8) & _kept(min(length - 8, 8)), load_word(folded, length - 8), length
    )


@compiled
def _is_ascii(data: Any, a: Any, b: Any) -> Any:
    i = a
    while i + 64 <= b:
        if high_bits(data, i) != 0:
            return False
        i += 64
    while i < b:
        if data[i] >= 0x80:
            return False
        i += 1
    return True


@compiled
def _bits_at(data: Any, size: Any, i: Any) -> Any:
    """Return a word with a bit for each of 64 bytes, set for ASCII letters and digits; 0 beyond the buffer."""
    if i + 64 <= size:
        return word_bits(data, i)
    mask = np.uint64(0)
    for j in range(size - i):
        if _kind(data[i + j]) == 1:
            mask |= _ONE << np.uint64(j)
    return mask


@compiled
def _write_edges(data: Any, size: Any, a: Any, b: Any, edges: Any, count: Any) -> Any:
    """Write where the tokens of ASCII text begin and end, behind `count` others; return how many there are then."""
    k = 2 * count
    carry = np.uint64(0)
    i = a
    while i < b:
        mask = _bits_at(data, size, i)
        if b - i < 64:
            mask &= (_ONE << np.uint64(b - i)) - _ONE
        # A bit where a token begins or ends; the two alternate.
        turns = mask ^ ((mask << _ONE) | carry)
        carry = mask >> np.uint64(63)
        while turns != 0:
            edges[k] = np.int32(i + np.int64(trailing_zeros(turns)))
            k += 1
            turns &= turns - _ONE
        i += 64
    if carry != 0:
        edges[k] = np.int32(b)
        k += 1
    return k >> 1


@compiled
def _hash_inner(data: Any, s: Any, e: Any) -> Any:
    """`_hash_ascii` of a token with eight bytes of data before its end and behind its beginning.

    Nothing branches but for tokens of more than 16 bytes: lengths about eight follow no pattern to be foreseen.
    """
    length = np.uint64(e - s)
    first, last = load_word(data, s) | _LOWER, load_word(data, e - 8) | _LOWER
    x = (first & (_ALL >> (np.uint64(64) - (min(length, _EIGHT) << _THREE)))) * _K0
    if length > 16:
        x += ((load_word(data, s + 8) | _LOWER) * _K1) ^ (last * _K2)
        x += length * _K3
    else:
        # Of 9 to 16 bytes, the ninth and those behind it are the highest of the last word.
        second = last >> (((_SIXTEEN - length) << _THREE) & np.uint64(63))
        x += (second * _K1 + length * _K3) & (np.uint64(0) - np.uint64(length > 8))
    return x ^ (x >> np.uint64(29))


@compiled
def _tokenize_ascii(data: Any, size: Any, a: Any, b: Any, hashes: Any, edges: Any, count: Any) -> Any:
    """Write the tokens of ASCII text behind `count` others; return how many there are then."""
    total = _write_edges(data, size, a, b, edges, count)
    low, high = count, total
    while low < high and edges[2 * low + 1] < 8:
        low += 1
    while low < high and edges[2 * high - 2] + 8 > size:
        high -= 1
    for t in range(count, low):
        s = np.int64(edges[2 * t])
        hashes[t] = _hash_ascii(data, size, s, np.int64(edges[2 * t + 1]) - s)
    for t in range(low, high):
        hashes[t] = _hash_inner(data, np.int64(edges[2 * t]), np.int64(edges[2 * t + 1]))
    for t in range(high, total):
        s = np.int64(edges[2 * t])
        hashes[t] = _hash_ascii(data, size, s, np.int64(edges[2 * t + 1]) - s)
    return total


@compiled
def _folded_code(data: Any, n: Any, i: Any, two: Any, three: Any, four: Any) -> Any:
    """Folded code and width of the character beyond ASCII that begins at byte i; width 1 for a stray byte."""
    b = data[i]
    if b < 0xE0:
        if b < 0xC2 or i + 2 > n:
            return np.uint32(b), 1
        return np.uint32(two[np.int64(b) | (np.int64(data[i + 1]) << 8)]), 2
    if b < 0xF0:
        if i + 3 > n:
            return np.uint32(b), 1
        return np.uint32(three[_three_point(data, i)]), 3
    if i + 4 > n:
        return np.uint32(b), 1
    return np.uint32(four[(_three_point(data, i) & 0x7FFF) << 6 | np.int64(data[i + 3] & 63)]), 4


@compiled
def _three_point(data: Any, i: Any) -> Any:
    return (np.int64(data[i] & 15) << 12) | (np.int64(data[i + 1] & 63) << 6) | np.int64(data[i + 2] & 63)


@compiled
def _tokenize(
    data: Any,
    size: Any,
    a: Any,
    n: Any,
    two: Any,
    three: Any,
    four: Any,
    buffer: Any,
    hashes: Any,
    edges: Any,
    count: Any,
) -> Any:
    """Write the tokens of any text behind `count` others; return how many there are then, and what hinders it."""
    i = a
    while i < n:
        kind = _kind(data[i])
        if kind == _SEPARATES:
            i += 1
            continue
        s = i
        if kind == _WORD:
            i += 1
            while i < n and _kind(data[i]) == _WORD:
                i += 1
            if i == n or _kind(data[i]) != _OTHER:
                hashes[count] = _hash_ascii(data, size, s, i - s)
                edges[2 * count] = np.int32(s)
                edges[2 * count + 1] = np.int32(i)
                count += 1
                continue
            i = s
        elif kind == _OWN_TOKEN and i + 3 <= n:
            hashes[count] = _hash_short(_safe_word(data, size, i) & np.uint64(0xFFFFFF))
            edges[2 * count] = np.int32(i)
            i += 3
            edges[2 * count + 1] = np.int32(i)
            count += 1
            continue
        elif data[i] >= 0xE0 and data[i] < 0xF0 and i + 3 <= n:
            code = np.uint32(three[_three_point(data, i)])
            if (code & np.uint32(255)) >= _OWN:
                hashes[count] = _hash_short(np.uint64(code))
                edges[2 * count] = np.int32(i)
                i += 3
                edges[2 * count + 1] = np.int32(i)
                count += 1
                continue
            if code == 0 or code == _FILLED:
                i += 3
                continue
        # A token, or a separator, with characters beyond ASCII: its folded bytes are written out and hashed as words.
        length = 0
        ended = False
        while not ended and i < n:
            b = data[i]
            if b < 0x80:
                if _kind(b) == _SEPARATES:
                    break
                if length == 0:
                    edges[2 * count] = np.int32(i)
                buffer[length] = b | np.uint8(0x20)
                length += 1
                i += 1
                edges[2 * count + 1] = np.int32(i)
                continue
            code, width = _folded_code(data, n, i, two, three, four)
            at = i
            i += width
            c = code & np.uint32(255)
            if width > 1 and c == _SPECIAL:
                return count, NEEDS_PREPARATION
            if code == _UNKNOWN and width == 4:
                return count, UNKNOWN
            if width == 2 and c > _SPECIAL and c < _OWN:
                d = code >> np.uint32(8)
                if d > _FILL and d < _OWN:
                    if length == 0:
                        edges[2 * count] = np.int32(at)
                    buffer[length] = np.uint8(c)
                    buffer[length + 1] = np.uint8(d)
                    length += 2
                    edges[2 * count + 1] = np.int32(i)
                    continue
            left = width
            while left > 0:
                c = code & np.uint32(255)
                code >>= np.uint32(8)
                left -= 1
                if c == _FILL and width > 1:
                    continue
                if c == 0 or c >= _OWN:
                    if length > 0:
                        hashes[count] = _hash_folded(buffer, length)
                        count += 1
                        length = 0
                    ended = True
                    if c >= _OWN:
                        own = np.uint64(c) | (np.uint64(code & np.uint32(0xFFFF)) << np.uint64(8))
                        code >>= np.uint32(16)
                        left -= 2
                        hashes[count] = _hash_short(own)
                        edges[2 * count] = np.int32(at)
                        edges[2 * count + 1] = np.int32(i)
                        count += 1
                    continue
                ended = False
                if length == 0:
                    edges[2 * count] = np.int32(at)
                buffer[length] = np.uint8(c)
                length += 1
                edges[2 * count + 1] = np.int32(i)
        if length > 0:
            hashes[count] = _hash_folded(buffer, length)
            count += 1
    return count, READY


@compiled
def tokenize_document(
    data: Any,
    size: Any,
    a: Any,
    b: Any,
    two: Any,
    three: Any,
    four: Any,
    buffer: Any,
    hashes: Any,
    edges: Any,
    count: Any,
) -> Any:
    """Write the tokens of ``data[a:b]`` behind `count` others.

    Parameters
    ----------
    data, size
        Bytes and how many there are.
    a, b
        Where the document begins and ends.
    two, three, four
        Folded codes of characters of two, three and four bytes.
    buffer
        Working memory, as long as the longest document and 16 bytes more.
    hashes, edges
        Out: hash of each token; where it begins and ends, two entries a token.

    Returns
    -------
    tuple of int
        How many tokens there are then, and one of `READY`, `NEEDS_PREPARATION` and `UNKNOWN`.
    """
    if _is_ascii(data, a, b):
        return _tokenize_ascii(data, size, a, b, hashes, edges, count), READY
    return _tokenize(data, size, a, b, two, three, four, buffer, hashes, edges, count)
