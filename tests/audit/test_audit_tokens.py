"""Folding, tokens and hashes: the batch kernels against the definition, one character at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels.audit_fast import FastTokenizer
from curation.kernels.audit_fold import fold_character, needs_preparation, prepare, tokenize
from curation.kernels.audit_hash import shingle_hash, shingle_hashes, token_hash
from curation.kernels.audit_tokens import Batch, Tokenizer, join_texts, tokenize_batch, tokenize_prepared

KERNELS = [pytest.param(tokenize_batch, id="numpy"), pytest.param(FastTokenizer(), id="numba")]
_SIGNS = "aZ09 \n-_.,éÄßŉ½中文字かがカ가나각ไทยกำก่абвЙё﷽ﬁ①㈱㎏１Ａ“”…𝒳😀𠀀ＡعربيǄⅧ₂İςꦄꀀ㍍"
ALPHABET = st.sampled_from([*_SIGNS, *"\u200b\u0301\u00ad\u1100\u1161\u11a8"])
TEXTS = st.lists(st.one_of(st.text(ALPHABET, max_size=14), st.text(max_size=8)), min_size=1, max_size=6)


def words(text: str) -> list[bytes]:
    return tokenize(text)[0]


@pytest.mark.parametrize("kernel", KERNELS)
@given(texts=TEXTS)
def test_a_batch_has_the_tokens_hashes_and_spans_of_the_definition(kernel: Tokenizer, texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    batch = tokenize_prepared(*join_texts(texts), kernel)
    tokens = batch.tokens
    expected = [tokenize(text) for text in texts]
    assert tokens.hashes.tolist() == [token_hash(t) for found, _ in expected for t in found]
    assert np.diff(tokens.first).tolist() == [len(found) for found, _ in expected]
    for document, (_, spans) in enumerate(expected):
        first = int(tokens.first[document])
        got = [batch.character_span(document, first + i, first + i + 1) for i in range(len(spans))]
        assert got == spans


@given(text=st.text(ALPHABET, max_size=40))
def test_shingle_hashes_are_those_of_the_definition(text: str) -> None:
    tokens = words(text)
    fives, threes = shingle_hashes(np.array([token_hash(t) for t in tokens], np.uint64))
    assert fives.tolist() == [shingle_hash(tokens[i : i + 5]) for i in range(max(len(tokens) - 4, 0))]
    assert threes.tolist() == [shingle_hash(tokens[i : i + 3]) for i in range(max(len(tokens) - 2, 0))]


@given(text=st.text())
def test_folding_is_idempotent_and_prepared_text_needs_no_preparation(text: str) -> None:
    for character in text:
        folded = fold_character(character)
        assert "".join(map(fold_character, folded)) == folded
    prepared, origin = prepare(text)
    assert not needs_preparation(prepared)
    assert len(origin) == len(prepared) + 1
    assert origin == sorted(origin)


def test_hash_values_are_pinned() -> None:
    """A change here makes every cached index and every published figure another one."""
    assert token_hash(b"lantern") == 0xD493640665ED6DDA
    assert token_hash(b"internationalisation") == 0x49CC44D9810C2A5A
    assert shingle_hash([b"a", b"b", b"c", b"d", b"e"]) == 0xEA7F2556252587D2


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("don't re-wrap 3.14", 6),
        ("snake_case x2", 3),
        ("河面上的雾", 5),
        ("ひらがなとカタカナ", 9),
        ("แม่น้ำ", 4),
        ("각국", 2),
        ("", 0),
        ("！！！", 0),
        ("\u200b\u0301", 0),
    ],
)
def test_tokens_follow_the_script(text: str, count: int) -> None:
    assert len(words(text)) == count


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Äpfel", "A\u0308PFEL"),
        ("ＡＢＣ１２", "abc12"),
        ("ﬁnal", "FINAL"),
        ("STRASSE", "straße"),
        ("각국", "\u1100\u1161\u11a8\u1100\u116e\u11a8"),
        ("co\u00adoperate", "cooperate"),
        ("x\u200by", "xy"),
    ],
)
def test_width_case_and_normal_form_do_not_change_tokens(text: str, same: str) -> None:
    assert words(text) == words(same)


def test_numbers_stay_what_they_are() -> None:
    assert words("14 jars") != words("92 jars")


def test_two_different_thai_sentences_are_different() -> None:
    """An unsplit script must not make everything a duplicate (facts 5, row 2)."""
    a, b = words("ชาวประมงซ่อมอวนอยู่ริมฝั่งทะเลทุกเช้า"), words("แม่ค้าขายผลไม้บนเรือในตลาดน้ำยามเย็น")
    assert len(a) > 12
    assert not {tuple(a[i : i + 5]) for i in range(len(a))} & {tuple(b[i : i + 5]) for i in range(len(b))}


@pytest.mark.parametrize("kernel", KERNELS)
def test_bytes_that_are_not_utf8_do_no_harm(kernel: Tokenizer) -> None:
    raw = np.frombuffer(b"one \xff\xfe two \xe4\xb8", np.uint8)
    assert len(kernel(raw, np.array([0, len(raw) + 1])).hashes) >= 2


def test_a_span_holds_whole_characters() -> None:
    raw, offsets = join_texts(["é à"])
    batch = Batch(raw, offsets, tokenize_batch(raw, offsets), {})
    assert [batch.text(i, i + 1) for i in range(2)] == ["é", "à"]
