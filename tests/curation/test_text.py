"""Normalisation of texts and records: one policy, idempotent, and what Arrow and JSON can store."""

import io
import json
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.kernels.text import (
    COMPOSED,
    LINE_END_CHANGED,
    NUL_REMOVED,
    SURROGATE_JOINED,
    SURROGATE_REPLACED,
    exact_key,
    is_blank,
    normalize_and_tell,
    normalize_text,
    storable,
)
from curation.stages.clean import normalize_record, normalize_records
from sources.base import Record

# Every code point, lone surrogates included, and the ones that the policy is about more often than chance gives them.
anything = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs"]),
        st.sampled_from("\r\n\0\ud83d\ude00\udcb2\ufffd\u0301e\u212b\uac00\u1100\u1161 "),
    )
)


@pytest.mark.parametrize(
    ("text", "stored", "changes"),
    [
        ("plain", "plain", ()),
        ("", "", ()),
        ("torn \ud83e half", "torn \ufffd half", (SURROGATE_REPLACED,)),
        ("escaped byte \udc9f", "escaped byte \ufffd", (SURROGATE_REPLACED,)),
        ("whole \ud83e\udded pair", "whole 🧭 pair", (SURROGATE_JOINED,)),
        ("\ude00\ud83d swapped", "\ufffd\ufffd swapped", (SURROGATE_REPLACED,)),
        ("\ud83d\ud83d\ude00", "\ufffd😀", (SURROGATE_JOINED, SURROGATE_REPLACED)),
        ("genuine \ufffd", "genuine \ufffd", ()),
        ("a\0b", "ab", (NUL_REMOVED,)),
        ("a\r\nb\rc\n", "a\nb\nc\n", (LINE_END_CHANGED,)),
        ("a\r\0\nb", "a\nb", (NUL_REMOVED, LINE_END_CHANGED)),
        ("cafe\u0301", "caf\u00e9", (COMPOSED,)),
        ("  spaces\tstay \u00a0 \ufeff\u200b", "  spaces\tstay \u00a0 \ufeff\u200b", ()),
        ("Ｆｕｌｌ ﬁ ½", "Ｆｕｌｌ ﬁ ½", ()),
    ],
)
def test_the_policy_worked_by_hand(text, stored, changes):
    assert normalize_and_tell(text) == (stored, changes)


@pytest.mark.parametrize(
    "text",
    ["stop at <|endoftext|> or <|endofprompt|>", "<|endoftext|>" * 3, "if t == '<|im_end|>': n -= 1", "[INST] </s><s>"],
)
def test_text_that_spells_a_special_token_is_stored_unchanged(text):
    assert normalize_and_tell(text) == (text, ())


@given(anything)
def test_a_second_pass_changes_nothing(text):
    once = normalize_text(text)
    assert normalize_and_tell(once) == (once, ())


@given(anything)
def test_the_result_can_be_stored_and_is_composed(text):
    stored = normalize_text(text)
    assert stored.encode("utf-8").decode("utf-8") == stored
    assert not set(stored) & {"\0", "\r"}
    assert unicodedata.is_normalized("NFC", stored)


@given(anything)
def test_joining_surrogates_is_what_utf16_says(text):
    text = text.replace("\0", "").replace("\r", "")
    by_utf16 = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert normalize_text(text) == unicodedata.normalize("NFC", by_utf16)


@given(anything)
def test_the_names_of_changes_are_given_exactly_if_something_changed(text):
    stored, changes = normalize_and_tell(text)
    assert bool(changes) == (stored != text)


def test_jsonl_and_parquet_hold_the_same_text_and_no_row_is_lost():
    texts = ["torn \ud801 glyph", "pair \ud83d\ude80", "byte \udcfe", "nul\0", "kept \ufffd", "plain"]
    records = [Record("s", f"r{i}", "qa", (t,), t) for i, t in enumerate(texts)]
    stored = [r.text for r in normalize_records(records)]
    table = pa.table({"text": stored})
    parquet = io.BytesIO()
    pq.write_table(table, parquet)
    jsonl = "".join(json.dumps({"text": t}, ensure_ascii=False) + "\n" for t in stored).encode("utf-8")
    assert pq.read_table(parquet).column("text").to_pylist() == stored
    assert [json.loads(line)["text"] for line in jsonl.decode().splitlines()] == stored
    assert stored == ["torn \ufffd glyph", "pair 🚀", "byte \ufffd", "nul", "kept \ufffd", "plain"]


def test_a_record_is_normalised_in_all_its_texts_and_its_ids_stay_findable():
    record = Record(
        "s",
        "cafe\u0301\ud800",
        "qa",
        ("one\r\ntwo", "nul\0"),
        "e\u0301",
        sub_category="a\r",
        language="en",
        members=("b\0", "a\u0301"),
    )
    normal, changes = normalize_record(record)
    assert normal.turns == ("one\ntwo", "nul")
    assert normal.text == "\u00e9"
    assert normal.sub_category == "a\n"
    assert normal.native_id == "cafe\u0301\ufffd", "another normal form would not be the source's id"
    assert normal.members == ("b", "a\u0301")
    assert changes == (COMPOSED, LINE_END_CHANGED, NUL_REMOVED)
    assert normalize_record(normal) == (normal, ())


def test_changed_records_are_counted_by_change():
    records = [Record("s", str(i), "qa", (t,), t) for i, t in enumerate(["a\r\nb\0", "c\r", "d"])]
    counts: dict[str, int] = {}
    assert [r.text for r in normalize_records(records, counts)] == ["a\nb", "c\n", "d"]
    assert counts == {LINE_END_CHANGED: 2, NUL_REMOVED: 1}


@given(anything)
def test_ids_lose_only_what_cannot_be_stored(text):
    kept = storable(text)
    kept.encode("utf-8")
    assert storable(kept) == kept
    if not any("\ud800" <= c <= "\udfff" or c == "\0" for c in text):
        assert kept == text


def test_exact_duplicates_may_differ_in_trailing_blanks_only():
    assert exact_key("one \t\n two\u3000\n\n") == exact_key("\none\n two")
    assert exact_key("if a:\n    b") != exact_key("if a:\n  b"), "indentation can be meaning"
    assert exact_key("a b") != exact_key("a  b")
    assert exact_key("x << 2") != exact_key("x >> 2")
    assert exact_key("Fig") != exact_key("fig")
    assert exact_key(" \n\t\n") == ""


@given(anything)
def test_the_key_of_a_key_is_itself(text):
    assert exact_key(exact_key(text)) == exact_key(text)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b\ufeff", "\u00a0\u3000", "\x07"])
def test_a_text_is_blank_if_nothing_of_it_shows(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "！", "\ufffd", "\ue000", "0", " a ", "你"])
def test_a_text_is_not_blank_if_anything_shows(text):
    assert not is_blank(text)
