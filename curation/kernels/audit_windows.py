"""Windows of a text for an encoder, and cosine thresholds from text known to be clean."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

WINDOW_CHARACTERS = (500, 2_000)
"""Windows of about 128 and 512 tokens; each overlaps the one before by half."""

QUANTILE = 0.9999
"""Of a prompt's similarities to clean text, the share that must lie below its threshold."""

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")


def windows(text: str, size: int) -> list[tuple[int, int]]:
    """Cut a text into spans of whole sentences.

    Parameters
    ----------
    text
        Any text; blank text has no window.
    size
        Characters of a window at most, except where one sentence is cut because it is longer.

    Returns
    -------
    list of tuple of int
        Half-open character spans, ascending; neighbours overlap by about half.
    """
    cuts = sorted({0, len(text), *(m.end() for m in _SENTENCE.finditer(text))})
    edges = [cuts[0]]
    for cut in cuts[1:]:
        edges.extend(range(edges[-1] + size // 2, cut - size // 4, size // 2))
        edges.append(cut)
    spans: list[tuple[int, int]] = []
    begin = 0
    while begin < len(edges) - 1:
        end = begin + 1
        while end + 1 < len(edges) and edges[end + 1] - edges[begin] <= size:
            end += 1
        if text[edges[begin] : edges[end]].strip():
            spans.append((edges[begin], edges[end]))
        if end == len(edges) - 1:
            break
        half = (edges[begin] + edges[end]) / 2
        begin = max(begin + 1, next(i for i in range(begin, end + 1) if edges[i] >= half))
    return spans


def clean_thresholds(prompts: NDArray[np.float32], clean: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return, for each prompt, the similarity that hardly any clean window reaches.

    Parameters
    ----------
    prompts
        Shape ``(p, d)``, rows of unit L2 norm.
    clean
        Shape ``(n, d)``, n >= 1, likewise.

    Returns
    -------
    ndarray of float64
        Shape ``(p,)``, in [-1, 1]: the `QUANTILE` of the prompt's similarities, with n < 10,000 their maximum.

    Raises
    ------
    ValueError
        If there is no clean window.
    """
    if not len(clean):
        raise ValueError("clean must hold at least one window, got none")
    keep = max(1, round((1 - QUANTILE) * len(clean)))
    top = np.full((len(prompts), keep), -1.0)
    for begin in range(0, len(clean), 2048):
        block = prompts @ clean[begin : begin + 2048].T
        both = np.concatenate([top, block], axis=1)
        top = -np.partition(-both, keep - 1, axis=1)[:, :keep]
    thresholds: NDArray[np.float64] = top.min(axis=1)
    return thresholds
