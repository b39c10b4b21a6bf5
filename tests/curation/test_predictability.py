from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels.predictability import conditional_bits_per_byte, ngram_overlap
from curation.kernels.prefixes import ngram_hashes


def noise(seed: int, chars: int) -> str:
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=chars))


def test_a_copy_costs_almost_nothing_and_noise_its_own_entropy() -> None:
    prompt, other = noise(1, 4_000), noise(2, 1_000)
    copied = conditional_bits_per_byte(prompt, prompt[1_000:2_000])
    fresh = conditional_bits_per_byte(prompt, other)
    assert copied is not None
    assert fresh is not None
    assert copied < 0.2
    assert 5.0 < fresh < 6.5  # log2(36) = 5.17


def test_what_stands_far_back_in_a_prompt_still_counts() -> None:
    """32,000 tokens are some 130 kB: the answer is seen wherever it stands."""
    prompt = noise(1, 1_000) + noise(3, 150_000)
    copied = conditional_bits_per_byte(prompt, prompt[:1_000])
    assert copied is not None
    assert copied < 0.2


@given(st.text(max_size=200), st.text(max_size=50))
def test_bits_are_none_for_no_answer_and_never_negative(prompt: str, answer: str) -> None:
    bits = conditional_bits_per_byte(prompt, answer)
    assert (bits is None) == (answer == "")
    assert bits is None or bits >= 0


def test_overlap_by_hand() -> None:
    prompt = ngram_hashes([1, 2, 3, 4], 2)
    assert ngram_overlap(ngram_hashes([2, 3, 9], 2), prompt) == 0.5
    assert ngram_overlap(ngram_hashes([2, 3, 4], 2), prompt) == 1.0
    assert ngram_overlap(ngram_hashes([9, 9], 2), np.empty(0, np.uint64)) == 0.0
    assert ngram_overlap(np.empty(0, np.uint64), prompt) is None
