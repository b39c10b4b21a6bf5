from __future__ import annotations

import inspect
import random
import typing

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.kernels.length import BLOCK_CHARS, BodyTooShort, Encoder, HeadTailTooLong, _Search, fit_to_length
from curation.recipe import TokenizerConfig
from curation.tokenizer import JsonTokenizer, load_tokenizer


def _json() -> JsonTokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([inspect.getsource(typing)[:20_000]], trainer)
    return JsonTokenizer(tokenizer.to_str().encode(), "model.json")


O200K = load_tokenizer(TokenizerConfig())
CL100K = load_tokenizer(TokenizerConfig(name="cl100k_base"))
GPT_LIKE = _json()
EACH = pytest.mark.parametrize("encoder", [O200K, CL100K, GPT_LIKE], ids=["o200k", "cl100k", "json"])

PIECES = (
    "the ", "Word", "and's", "'ll", "don't ", "x=1;\n", "    return", "\n\n", "\r\n", "\n", "/", " /", "\t", "  ", " ",
    "\u3000", "\u00a0", "\x85", "\u2028", "\x1c", "12345", "3.14", "½", "²", "٣", "中文", "，", "日本語の",
    "नमस्ते", "สวัสดี",
    "e\u0301", "\u0301", "🧭", "👩\u200d🚀", "🇩🇪", "\ufe0f", "\ufffd", "<|endoftext|>", "<|im_start|>", "…", "(", ")",
    "_", "-", ".", ",", "’s", "ſ", "İ", "ǅ", "ʰ", "A", "aB", "\x00", "\U0001f9ff", "\U000e0041",
)  # fmt: skip
HARD = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
TEXT = HARD | st.text(max_size=60)


def count(encoder: Encoder, text: str) -> int:
    return len(encoder.encode_ordinary(text))


def check(encoder: Encoder, n: int, head: str, body: str, tail: str, max_pad: int | None = None) -> None:
    """Whatever comes back is exact, whole and a prefix; otherwise a reason that is true."""
    try:
        fitted = fit_to_length(encoder, n, head=head, body=body, tail=tail, max_pad_tokens=max_pad)
    except HeadTailTooLong:
        assert count(encoder, head + tail) > n
        return
    except BodyTooShort:
        # Only where the body cannot reach, or a join at the length itself leaves room for nothing.
        assert max_pad is not None or count(encoder, head + tail) >= n - 2
        return
    assert count(encoder, fitted.text) == n
    kept = head + body[: fitted.body_chars]
    assert 0 <= fitted.body_chars <= len(body)
    assert fitted.text.startswith(kept)
    assert fitted.text.endswith(tail)
    assert fitted.pad_tokens == n - count(encoder, kept + tail)
    assert (fitted.pad_tokens == 0) == (fitted.text == kept + tail)
    assert fitted.text.count("\ufffd") == (kept + tail).count("\ufffd")
    assert max_pad is None or fitted.pad_tokens <= max_pad


# --- the window is enough ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", [O200K, CL100K], ids=["o200k", "cl100k"])
@settings(max_examples=600, deadline=None)
@given(text=TEXT)
@example(text="we'll go on, we 'll")
@example(text="a\n\n/b \n c\r\n\td \n\n e")
def test_at_every_split_the_ids_of_both_sides_stand_alone(encoder: Encoder, text: str) -> None:
    """What the window rests on: at a match of `splits`, encode(text) is encode(left) + encode(right)."""
    assert encoder.splits is not None
    whole = encoder.encode_ordinary(text)
    for found in encoder.splits.finditer(text):
        i = found.start()
        assert encoder.encode_ordinary(text[:i]) + encoder.encode_ordinary(text[i:]) == whole, (text[:i], text[i:])


@pytest.mark.parametrize("encoder", [O200K, CL100K], ids=["o200k", "cl100k"])
def test_every_pair_of_code_points_that_is_a_split_is_one_in_any_surroundings(encoder: Encoder) -> None:
    """A split depends on the two code points beside it alone: each kind of pair, between each kind of neighbour."""
    assert encoder.splits is not None
    kinds = "aZé中ๆ\u0301ʰǅ5½² \t\u3000\n\r\x85'’/.,(_-…，。🧭\u200d\ufe0f\x00\x1c"
    around = ("", "a", "A", "5", " ", "\n", "/", "'", "s", "'s", "\u0301", ".", "中", "  ", "\r\n")
    pairs = [(a, b) for a in kinds for b in kinds if encoder.splits.search(a + b)]
    assert len(pairs) > 150
    for a, b in pairs:
        for left in around:
            for right in around:
                text = left + a + b + right
                i = len(left) + len(a)
                halves = encoder.encode_ordinary(text[:i]) + encoder.encode_ordinary(text[i:])
                assert halves == encoder.encode_ordinary(text), (text[:i], text[i:])


@pytest.mark.parametrize("encoder", [O200K, CL100K], ids=["o200k", "cl100k"])
@settings(max_examples=60, deadline=None)
@given(n=st.integers(5, 200), body=st.lists(st.sampled_from(PIECES), min_size=40, max_size=300).map("".join), tail=TEXT)
@example(n=40, body="word " * 200, tail="s and more")
def test_the_window_counts_what_the_whole_text_has(encoder: Encoder, n: int, body: str, tail: str) -> None:
    search = _Search(encoder, n, "Head: ", body, tail)
    near = {end + d for end in (*search.anchors, search.at) for d in (-2, -1, 0, 1, 2)}
    for end in sorted(e for e in near if 0 <= e <= len(search.text)):
        for pad in ("", " ok"):
            assert search.count(end, pad) == count(encoder, search.text[:end] + pad + tail)


def test_splits_are_frequent_in_ordinary_text() -> None:
    assert O200K.splits is not None
    assert len(O200K.splits.findall("Words, and more words.\n\ndef f(x):\n    return x  # 中文，日本語。")) >= 10


# --- exact, whole, a prefix --------------------------------------------------------------------------------------


@EACH
@settings(max_examples=300, deadline=None)
@given(n=st.integers(1, 70), head=TEXT | st.just(""), body=TEXT, tail=TEXT | st.just(""))
def test_any_text_at_any_length(encoder: Encoder, n: int, head: str, body: str, tail: str) -> None:
    if head + body + tail:
        check(encoder, n, head, body, tail)


@EACH
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(300, 3_000), max_pad=st.sampled_from([None, 8]))
def test_texts_of_many_blocks(encoder: Encoder, seed: int, n: int, max_pad: int | None) -> None:
    rng = random.Random(seed)
    body = "".join(rng.choices(PIECES, k=rng.randint(500, 6_000)))
    check(encoder, n, "Question:\n", body, "\n\nAnswer the question.", max_pad)


@pytest.mark.parametrize(
    "unit", ["🧭 day 🪢 log 🐚 ", "ต้นไม้", "漢字かな交じり文。", "👩‍👩‍👧‍👦", "  \n\t", "\r\n", "é", "a"]
)
@pytest.mark.parametrize("n", [1_000, 1_024, 2_000, 2_048])
def test_case_24_a_cut_never_splits_a_character(unit: str, n: int) -> None:
    body = unit * (8 * n // max(1, count(O200K, unit * 8) // 8))
    check(O200K, n, "", body, "", max_pad=8 if count(O200K, body) >= n else None)


def test_case_24_a_replacement_character_of_the_source_stays() -> None:
    body = "kept \ufffd as it is 🪢, " * 400
    fitted = fit_to_length(O200K, 1_000, body=body)
    assert body.startswith(fitted.text[: fitted.body_chars])
    assert fitted.text.count("\ufffd") == body[: fitted.body_chars].count("\ufffd") > 100


PADDED = (
    "17 barrels rolled off.", "¾ of the rope was wet.", "barrels", "\n\nA paragraph.", "（注）これは例です。",
    "'Well,' he said.",
    "   three spaces", "It ends in 40", "and so on ....", "a tab comes \t", "a line\n",
)  # fmt: skip


@pytest.mark.parametrize("text", PADDED)
@pytest.mark.parametrize("n", [256, 1_000, 1_024])
def test_case_26_padding_is_exact_and_the_text_stands_in_it_once(text: str, n: int) -> None:
    fitted = fit_to_length(O200K, n, body=text)
    assert count(O200K, fitted.text) == n
    assert fitted.text.startswith(text)
    assert fitted.text.count(text.strip()) == 1
    assert (fitted.body_chars, fitted.pad_tokens) == (len(text), n - count(O200K, text))


def test_case_26_nothing_but_padding_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing but padding"):
        fit_to_length(O200K, 1_000, body="")


SPECIAL = ("See <|endoftext|>, then <|endofprompt|>.", "<|endoftext|>" * 2, "if t == '<|im_end|>': n -= 1")


@pytest.mark.parametrize("text", SPECIAL)
def test_case_27_special_literals_are_text(text: str) -> None:
    for n in range(1, 60):
        check(O200K, n, "", text * 4, "")
    fitted = fit_to_length(O200K, 500, body=text * 40)
    assert fitted.text.startswith(text)
    assert max(O200K.encode_ordinary(fitted.text)) < 199_998


# --- refusals ----------------------------------------------------------------------------------------------------


def test_head_and_tail_that_are_too_long_are_refused_with_their_count() -> None:
    with pytest.raises(HeadTailTooLong, match=r"head and tail alone have 6 tokens, 5 are asked for"):
        fit_to_length(O200K, 5, head="one two three", body=" four" * 9, tail=" five six seven")


def test_head_and_tail_of_the_very_length_leave_no_body() -> None:
    fitted = fit_to_length(O200K, 6, head="one two three", body=" four" * 9, tail=" five six seven")
    assert (fitted.text, fitted.body_chars, fitted.pad_tokens) == ("one two three five six seven", 0, 0)


def test_a_body_that_is_used_up_is_refused_or_padded() -> None:
    with pytest.raises(BodyTooShort, match="9 tokens before 12"):
        fit_to_length(O200K, 12, body="one two three", max_pad_tokens=8)
    assert fit_to_length(O200K, 12, body="one two three", max_pad_tokens=9).pad_tokens == 9


@pytest.mark.parametrize("n", [0, -1])
def test_a_length_below_one_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match=r"num_tokens must be >= 1"):
        fit_to_length(O200K, n, body="text")


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        fit_to_length(O200K, 5, body="a \ud800 b c d e f g h")


# --- worked by hand ----------------------------------------------------------------------------------------------


def test_a_cut_by_hand() -> None:
    """Each of these words is one token with its blank: so the fourth word is where four tokens end."""
    fitted = fit_to_length(O200K, 7, head="Go:", body=" one two three four five six", tail=" end")
    assert fitted.text == "Go: one two three four end"


class CountingEncoder:
    """O200K, and how many code points it was asked to encode."""

    splits = O200K.splits
    max_token_chars = O200K.max_token_chars

    def __init__(self) -> None:
        self.chars = 0

    def encode_ordinary(self, text: str) -> list[int]:
        self.chars += len(text)
        return O200K.encode_ordinary(text)

    def chars_of(self, text: str, num_tokens: int) -> int:
        self.chars += len(text)
        return O200K.chars_of(text, num_tokens)


@pytest.mark.parametrize("n", [8_000, 32_000])
def test_a_long_text_is_encoded_about_once(n: int) -> None:
    """Besides the blocks only windows are encoded: a whole book behind the cut costs nothing."""
    words = [f"w{i % 997} is here, " for i in range(40 * n)]
    encoder = CountingEncoder()
    fitted = fit_to_length(encoder, n, head="Read:\n", body="".join(words), tail="\n\nGo on.")
    assert count(O200K, fitted.text) == n
    assert encoder.chars < len(fitted.text) + 8 * BLOCK_CHARS
