"""Cheap measures of how predictable an answer is from its prompt; no model is run."""

from __future__ import annotations

import lzma

import numpy as np
from numpy.typing import NDArray

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 0}]  # a dictionary of 256 KiB: a prompt of 32,000 tokens and its answer


def conditional_bits_per_byte(prompt: str, answer: str) -> float | None:
    """Return the bits a byte of the answer costs a compressor that has seen the prompt.

    Parameters
    ----------
    prompt, answer
        Texts; the measure is of the answer's UTF-8.

    Returns
    -------
    float or None
        >= 0, at most a little over 8; lower is more predictable. None for an empty answer.

    Notes
    -----
    Size of prompt and answer compressed together less the prompt's alone (LZMA2, preset 0), as in the normalised
    compression distance of Cilibrasi and Vitányi (2005).
    """
    if not answer:
        return None
    first = prompt.encode("utf-8", "surrogatepass")
    second = answer.encode("utf-8", "surrogatepass")
    more = _size(first + second) - _size(first)
    return max(0, more) * 8 / len(second)


def _size(data: bytes) -> int:
    return len(lzma.compress(data, format=lzma.FORMAT_RAW, filters=_FILTERS))


def ngram_overlap(answer: NDArray[np.uint64], prompt: NDArray[np.uint64]) -> float | None:
    """Return the share of the answer's distinct n-grams that occur in the prompt.

    Parameters
    ----------
    answer, prompt
        Sorted distinct hashes, as `curation.kernels.prefixes.ngram_hashes` gives them.

    Returns
    -------
    float or None
        In [0, 1]; higher is more predictable. None if the answer has no n-gram.
    """
    if not answer.size:
        return None
    at = np.searchsorted(prompt, answer)
    at[at == prompt.size] = 0
    return float(np.mean(prompt[at] == answer)) if prompt.size else 0.0
