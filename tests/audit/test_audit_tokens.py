"""Folding, tokens and hashes: the batch kernels against the definition, one character at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.audit.fast_kernel import FastKernel
from curation.kernels.audit_fold import (
    SPECIAL,
    encode_folded,
    fold_character,
    needs_preparation,
    prepare,
    three_byte_table,
    tokenize,
)
from curation.kernels.audit_hash import shingle_hash, shingle_hashes, token_hash
from curation.kernels.audit_index import build_index
from curation.kernels.audit_postings import find_postings
from curation.kernels.audit_tokens import Batch, Bytes, Ints, join_texts, tokenize_batch, tokenize_prepared

Tokenize = Callable[[Bytes, Ints], Batch]


@cache
def compiled() -> FastKernel:
    return FastKernel(build_index(["a prompt that is not looked for"], [0]), all_tokens=True)


def in_place(raw: Bytes, offsets: Ints) -> Batch:
    """What the compiled kernel makes of the documents; those that it leaves to the other are taken from that."""
    found = compiled()(raw, offsets[:-1], offsets[1:] - 1)
    if len(found.left):
        return tokenize_prepared(raw, offsets)
    return found.batch


KERNELS = [pytest.param(tokenize_prepared, id="numpy"), pytest.param(in_place, id="numba")]
_SIGNS = "aZ09 \n-_.,éÄßŉ½中文字かがカ가나각ไทยกำก่абвЙё﷽ﬁ①㈱㎏１Ａ“”…𝒳😀𠀀ＡعربيǄⅧ₂İςꦄꀀ㍍"
ALPHABET = st.sampled_from([*_SIGNS, *"\u200b\u0301\u00ad\u1100\u1161\u11a8"])
TEXTS = st.lists(st.one_of(st.text(ALPHABET, max_size=14), st.text(max_size=8)), min_size=1, max_size=6)


def words(text: str) -> list[bytes]:
    return tokenize(text)[0]


@pytest.mark.parametrize("kernel", KERNELS)
@given(texts=TEXTS)
def test_a_batch_has_the_tokens_hashes_and_spans_of_the_definition(kernel: Tokenize, texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    batch = kernel(*join_texts(texts))
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
def test_bytes_that_are_not_utf8_do_no_harm(kernel: Tokenize) -> None:
    raw = np.frombuffer(b"one \xff\xfe two \xe4\xb8", np.uint8)
    assert len(kernel(raw, np.array([0, len(raw) + 1])).tokens.hashes) >= 2


def test_a_span_holds_whole_characters() -> None:
    raw, offsets = join_texts(["é à"])
    batch = Batch(raw, offsets[:-1], offsets[1:] - 1, tokenize_batch(raw, offsets), {})
    assert [batch.text(i, i + 1) for i in range(2)] == ["é", "à"]


def test_the_table_of_three_byte_characters_is_the_definition() -> None:
    """The table tells most characters by their category alone; folding each must give the same."""
    table = three_byte_table()
    for code in range(0x800, 0x10000):
        if not 0xD800 <= code <= 0xF8FF:  # surrogates and private use are separators
            folded = fold_character(chr(code))
            expected = encode_folded(folded) if not 0x1100 <= code <= 0x11FF else bytes([SPECIAL])
            if len(expected) > 3:
                expected = bytes([SPECIAL])
            assert int(table[code]).to_bytes(3, "little").strip(b"\0\1") == expected.strip(b"\0"), hex(code)


def test_the_compiled_kernel_leaves_what_must_be_prepared() -> None:
    raw, offsets = join_texts(["one", "\u1100\u1161\u11a8", "two \U0001d4b3", "\ufdfa"])
    found = compiled()(raw, offsets[:-1], offsets[1:] - 1)
    assert found.left.tolist() == [1, 3]
    assert found.num_tokens.tolist() == np.diff(found.batch.tokens.first).tolist() == [1, 0, 2, 0]


def test_the_search_compiled_and_not_finds_the_same_matches() -> None:
    prompts = [f"{a} {b} walks {i} miles to the {c} market" for i, (a, b, c) in enumerate(_WALKS)] + [
        "水が冷たい",
        "a b c",
    ]
    index = build_index(prompts, range(len(prompts)))
    edited = [p.replace("walks", "runs") for p in prompts] + [" ".join(prompts)] + ["", "one two", "a b c d"]
    raw, offsets = join_texts([*prompts, *edited])
    found = FastKernel(index, all_tokens=True)(raw, offsets[:-1], offsets[1:] - 1).postings
    for slow, fast in zip(find_postings(tokenize_batch(raw, offsets), index), found, strict=True):
        assert len(slow.at) > 0
        for name in ("document", "prompt", "at", "position"):
            assert getattr(fast, name).tolist() == getattr(slow, name).tolist()


_WALKS = [("the", "baker", "old"), ("a", "smith", "fish"), ("one", "tall monk", "cheese"), ("our", "clerk", "hay")]
