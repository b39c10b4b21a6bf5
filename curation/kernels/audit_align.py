"""Longest common subsequence of two token sequences, with the places that take part."""

from __future__ import annotations

from collections.abc import Sequence


def common_subsequence(a: Sequence[int], b: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the places in `a` and in `b` of one longest common subsequence.

    Bit-parallel (Hyyrö 2004): one row of the dynamic programme is one integer of ``len(a)`` bits, so the cost is
    ``len(b)`` operations on such integers.

    Parameters
    ----------
    a, b
        Tokens, as anything that can be compared and hashed.

    Returns
    -------
    tuple of list of int
        Ascending places, equally many in both.
    """
    masks: dict[int, int] = {}
    for i, token in enumerate(a):
        masks[token] = masks.get(token, 0) | (1 << i)
    full = (1 << len(a)) - 1
    # A zero bit at i: the subsequence grows by one there.
    rows = [full]
    row = full
    for token in b:
        hit = row & masks.get(token, 0)
        row = ((row + hit) | (row - hit)) & full
        rows.append(row)
    return _trace(a, b, rows)


def _trace(a: Sequence[int], b: Sequence[int], rows: Sequence[int]) -> tuple[list[int], list[int]]:
    in_a: list[int] = []
    in_b: list[int] = []
    i, j = len(a) - 1, len(b)
    while i >= 0 and j > 0:
        if rows[j] >> i & 1:
            i -= 1  # a[i] adds nothing to the first j tokens of b
        elif not rows[j - 1] >> i & 1:
            j -= 1  # nor does b[j - 1]: the same growth was there without it
        else:
            in_a.append(i)
            in_b.append(j - 1)
            i -= 1
            j -= 1
    return in_a[::-1], in_b[::-1]
