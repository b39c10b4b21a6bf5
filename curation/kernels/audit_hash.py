"""One hash of tokens and shingles, for numpy, numba and plain Python alike.

All arithmetic is modulo 2**64. A token of bytes t and length n has the words w0 = t[:8], w1 = t[8:16] (0 if n <= 8) and
w2 = t[-8:] (0 if n <= 16), little-endian and padded with zeros::

    x = w0 * K0;  if n > 8:  x += (w1 * K1) ^ (w2 * K2) + n * K3
    token hash = x ^ (x >> 29)

A shingle of n tokens is the polynomial h[0] * C**(n-1) + ... + h[n-1]. Bytes 16 to n - 8 of a token longer than 24
bytes do not count: whatever is reported was compared as text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

VERSION = 1
K0 = 0x9E3779B97F4A7C15
K1 = 0xC2B2AE3D27D4EB4F
K2 = 0x165667B19E3779F9
K3 = 0xD6E8FEB86659FD93
C = 0xBF58476D1CE4E5B9
MASK = (1 << 64) - 1

_K = [np.uint64(k) for k in (K0, K1, K2, K3)]
_C1 = np.uint64(C)
_C2 = np.uint64(C * C & MASK)
_KEEP = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)


def token_hash(token: bytes) -> int:
    """Return the hash of one folded token: the definition."""
    n = len(token)
    x = int.from_bytes(token[:8], "little") * K0
    if n > 8:
        w1 = int.from_bytes(token[8:16], "little")
        w2 = int.from_bytes(token[-8:], "little") if n > 16 else 0
        x += ((w1 * K1 & MASK) ^ (w2 * K2 & MASK)) + n * K3
    x &= MASK
    return x ^ (x >> 29)


def shingle_hash(tokens: Sequence[bytes]) -> int:
    """Return the hash of a run of tokens: the definition."""
    s = 0
    for token in tokens:
        s = (s * C + token_hash(token)) & MASK
    return s


def token_hashes(buffer: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash the tokens ``buffer[start[i]:end[i]]``.

    Parameters
    ----------
    buffer
        Folded bytes, with at least 16 bytes behind the last token.
    start, end
        Half-open spans, shape ``(t,)``.

    Returns
    -------
    ndarray of uint64
        Shape ``(t,)``.
    """
    # A view of overlapping words: one gather loads a token's first eight bytes, aligned or not.
    words = np.ndarray((len(buffer) - 7,), "<u8", buffer, 0, (1,))
    length = end - start
    x: NDArray[np.uint64] = words[start]
    x &= _KEEP.take(length, mode="clip")
    x *= _K[0]
    long = np.flatnonzero(length > 8)
    if len(long):
        n = length[long]
        w1 = words[start[long] + 8] & _KEEP.take(n - 8, mode="clip")
        w2 = words[end[long] - 8] * (n > 16)
        x[long] += ((w1 * _K[1]) ^ (w2 * _K[2])) + n.astype(np.uint64) * _K[3]
    x ^= x >> np.uint64(29)
    return x


def shingle_hashes(h: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hash every run of 5 and of 3 tokens.

    Parameters
    ----------
    h
        Token hashes, shape ``(t,)``.

    Returns
    -------
    tuple of ndarray of uint64
        Shapes ``(max(t - 4, 0),)`` and ``(max(t - 2, 0),)``; entry i is the run that begins at token i.
    """
    pairs = h[:-1] * _C1
    pairs += h[1:]
    threes = pairs[:-1] * _C1
    threes += h[2:]
    fives = pairs[:-3] * _C2
    fives += pairs[2:-1]
    fives *= _C1
    fives += h[4:]
    return fives, threes
