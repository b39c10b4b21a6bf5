"""Tokens and shingles: every script, code, numbers and short texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels import shingles as module
from curation.kernels.shingles import shingle_sets
from curation.kernels.text import normalize_text
from curation.kernels.tokens import fold, token_hashes, tokenize

scripts = st.sampled_from(
    "aZ09_ .,;:!?-+<>=*/()\n\t'\"éßÅ你世界カなひ한국ไทยกิ้ကခកខक्षिعمر٣５Ａ①½€😀👍🏽\u200b\u00ad\u0301\u20e3\ufe0f〇々"
)
texts = st.text(st.one_of(scripts, st.characters(exclude_categories=["Cs"])), max_size=80).map(normalize_text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("   \n", []),
        ("！！！", []),
        ("Define torque.", ["define", "torque"]),
        ("x << 2", ["x", "<", "<", "2"]),
        ("my_var+=3.14*1,000.", ["my_var", "+", "=", "3.14", "*", "1,000"]),
        ("4812 * 377 - 96", ["4812", "*", "377", "-", "96"]),
        ("a.b, c.", ["a", "b", "c"]),
        ("河面上的雾气", ["河", "面", "上", "的", "雾", "气"]),
        ("カタカナ ひら", ["カ", "タ", "カ", "ナ", "ひ", "ら"]),
        ("한국어", ["한", "국", "어"]),
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("กินน้ำ", ["กิ", "น", "น้ํ", "า"]),  # NFKC writes the last vowel as two characters, one of them a mark
        ("မြန်", ["မြ", "န်"]),
        ("Ａｂ１２", ["ab12"]),
        ("a\u200bb co\u00adop", ["ab", "coop"]),
        ("GPT4说hello世界", ["gpt4", "说", "hello", "世", "界"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    ],
)
def test_tokens_worked_by_hand(text, tokens):
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    "other",
    [
        "WIE VIELE ÄPFEL ROTE BLEIBEN",
        "Wie viele A\u0308pfel — „rote“ — bleiben?",
        "Wie\u00a0viele\nÄpfel «rote» bleiben",
        "Ｗｉｅ ｖｉｅｌｅ Äpfel (rote) bleiben",
    ],
)
def test_case_punctuation_width_and_normal_form_make_no_difference(other):
    assert tokenize(other) == tokenize('Wie viele Äpfel "rote" bleiben?')


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("def f(x): return x<<2", "def f(x): return x>>2"),
        ("Compute 4812 * 377 - 96.", "Compute 4812 - 377 * 96."),
        ("A crate holds 14 jars and a van carries 36", "A crate holds 92 jars and a van carries 71"),
        ("1.5", "15"),
        ("说明原因", "说明结果"),
        ("fig", "oar"),
    ],
)
def test_operators_and_numbers_are_meaning(a, b):
    sets = shingle_sets([a, b], 5)
    assert tokenize(a) != tokenize(b)
    assert sets.jaccard(0, sets, 1) < 0.7


def test_two_thai_sentences_without_spaces_are_not_one_token():
    sets = shingle_sets(["แมวสีดำกำลังนอนหลับอยู่บนหลังคาบ้าน", "เรือลำเล็กแล่นออกจากท่าเรือตอนเช้าตรู่"], 5)
    assert (sets.sizes > 10).all()
    assert sets.jaccard(0, sets, 1) < 0.1


def slow_shingles(text, n):
    tokens = tokenize(text)
    if len(tokens) < n:
        return {tuple(tokens)} if tokens else set()
    return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}


@given(st.lists(texts, max_size=8), st.integers(1, 6))
def test_arrays_hold_the_sets_of_the_definition(many, n):
    sets = shingle_sets(many, n)
    expected = [slow_shingles(text, n) for text in many]
    assert sets.sizes.tolist() == [len(e) for e in expected]
    # Equal hashes if and only if equal shingles, over all the texts.
    all_shingles = set().union(*expected)
    assert len(np.unique(sets.values)) == len(all_shingles)
    for i, a in enumerate(expected):
        for j, b in enumerate(expected):
            truth = len(a & b) / len(a | b) if a and b else 0.0
            assert sets.jaccard(i, sets, j) == truth


@given(st.lists(texts, max_size=8))
def test_token_counts_and_sequence_hashes_follow_the_definition(many):
    _, counts = token_hashes([fold(text) for text in many])
    tokens = [tokenize(text) for text in many]
    assert counts.tolist() == [len(t) for t in tokens]
    sequences = shingle_sets(many, 5).sequences.tolist()
    for i, a in enumerate(tokens):
        assert (sequences[i] == 0) == (not a)
        for j, b in enumerate(tokens):
            assert (sequences[i] == sequences[j]) == (a == b)


@given(st.lists(texts, max_size=8), st.integers(1, 40))
def test_batches_do_not_show_in_the_result(many, batch_chars):
    whole = shingle_sets(many, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH_CHARS", batch_chars)
        cut = shingle_sets(many, 3)
    assert np.array_equal(whole.values, cut.values)
    assert np.array_equal(whole.offsets, cut.offsets)
    assert np.array_equal(whole.sequences, cut.sequences)


def test_a_text_without_tokens_equals_nothing_not_even_itself():
    sets = shingle_sets(["", "   ", "！！！"], 5)
    assert len(sets) == 3
    assert sets.values.size == 0
    assert [sets.jaccard(i, sets, j) for i in range(3) for j in range(3)] == [0.0] * 9


def test_a_short_text_equals_only_the_same_short_text():
    sets = shingle_sets(["one two three", "one two three four", "one two three four five six", "One two, three!"], 5)
    assert sets.sizes.tolist() == [1, 1, 2, 1]
    assert [sets.jaccard(0, sets, i) for i in range(4)] == [1.0, 0.0, 0.0, 1.0]


PINNED = ["268d135d671a27d0", "84edc358ec127b7f", "bb44824cd9ba103b", "818a73a7b283478d"]


def test_pinned_bits_of_the_hashes():
    """A change here changes the candidates of every published split."""
    sets = shingle_sets(["The pump runs dry at low tide.", "你好"], 5)
    assert [f"{v:016x}" for v in sets.values.tolist()] == PINNED
    assert sets.offsets.tolist() == [0, 3, 4]


def test_an_ngram_of_no_token_is_refused():
    with pytest.raises(ValueError, match="ngram_size must be at least 1, got 0"):
        shingle_sets(["a"], 0)
