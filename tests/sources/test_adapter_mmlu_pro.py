from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.adapters.mmlu_pro import group_size
from sources.registry import SOURCES

MMLU_PRO = SOURCES["mmlu_pro"]


def _row(number: int, subject: str = "law", **values: Any) -> dict[str, Any]:
    return {"question_id": number, "question": f"Q{number}?", "options": ["yes", "no"], "category": subject, **values}


def test_a_conversation_of_two_questions(memory_files: Any, parsed: Any) -> None:
    rows = [_row(12, options=["a", "b", "c"]), _row(9)]
    (record,), rejected = parsed(MMLU_PRO, memory_files(MMLU_PRO.spec, {"test": rows}))
    first, second = record.turns
    assert first.endswith("\n\nQ9?\nA. yes\nB. no")
    assert "about law" in first
    assert second == "Q12?\nA. a\nB. b\nC. c"
    assert record.text == "Q9?\nA. yes\nB. no\n\nQ12?\nA. a\nB. b\nC. c"
    assert record.native_id == "12+9"
    assert record.record_ids == ("mmlu_pro:12", "mmlu_pro:9")
    assert (record.category, record.sub_category, record.template_id) == ("reasoning", "law", "mmlu_pro/v1")
    assert rejected == []


@given(num_left=st.integers(2, 400), subject=st.text(max_size=5), first_id=st.text(max_size=5))
def test_a_group_has_two_to_five_and_leaves_no_single_question(num_left: int, subject: str, first_id: str) -> None:
    size = group_size(num_left, subject, first_id)
    assert 2 <= size <= 5
    assert num_left - size == 0 or num_left - size >= 2
    assert size == group_size(num_left, subject, first_id)


def test_all_four_sizes_occur_about_equally_often() -> None:
    counts = Counter(group_size(1000, "law", str(i)) for i in range(800))
    assert set(counts) == {2, 3, 4, 5}
    assert all(150 <= n <= 250 for n in counts.values())  # 200 expected, standard deviation 12


@given(sizes=st.dictionaries(st.sampled_from(["law", "history", "physics"]), st.integers(1, 23), min_size=1))
def test_every_question_is_used_once_and_subjects_do_not_mix(
    sizes: dict[str, int], memory_files: Any, parsed: Any
) -> None:
    rows = [_row(100 * k + i, subject) for k, (subject, n) in enumerate(sorted(sizes.items())) for i in range(n)]
    records, rejected = parsed(MMLU_PRO, memory_files(MMLU_PRO.spec, {"test": rows}).shuffled(1))
    used = Counter(int(m) for r in records for m in r.members)
    alone = {r["question_id"] for r in rows if sizes[r["category"]] == 1}
    assert used == Counter(r["question_id"] for r in rows if r["question_id"] not in alone)
    assert len(rejected) == len(alone)
    subject_of = {str(r["question_id"]): r["category"] for r in rows}
    assert all({subject_of[m] for m in r.members} == {r.sub_category} for r in records)


def test_a_group_holds_neighbours_by_number_not_by_text(memory_files: Any, parsed: Any) -> None:
    rows = [_row(n) for n in (1000, 99, 100, 9, 10)]
    records, _ = parsed(MMLU_PRO, memory_files(MMLU_PRO.spec, {"test": rows}))
    order = [turn.splitlines()[-3] for r in records for turn in r.turns]
    assert order == ["Q9?", "Q10?", "Q99?", "Q100?", "Q1000?"]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"question": " "}, "empty"),
        ({"options": []}, "0 options"),
        ({"options": ["only"]}, "1 options"),
        ({"options": ["x"] * 27}, "27 options"),
        ({"options": ["a", ""]}, "option is empty"),
    ],
)
def test_bad_rows_are_rejected(values: dict[str, Any], word: str, memory_files: Any, parsed: Any) -> None:
    rows = [_row(1), _row(2, **values), _row(3)]
    (record,), (rejected,) = parsed(MMLU_PRO, memory_files(MMLU_PRO.spec, {"test": rows}))
    assert record.members == ("1", "3")
    assert word in rejected.reason


def test_of_two_rows_with_one_id_the_same_one_wins_in_any_order(memory_files: Any, parsed: Any) -> None:
    rows = [_row(1), _row(2), _row(2, question="An impostor?"), _row(2, question=" ")]
    kept = []
    for order in (rows, rows[::-1], [rows[2], rows[0], rows[3], rows[1]]):
        (record,), rejected = parsed(MMLU_PRO, memory_files(MMLU_PRO.spec, {"test": order}))
        assert sorted(r.reason for r in rejected) == ["its question or category is empty", "question_id 2 occurs twice"]
        kept.append(record)
    assert kept[0] == kept[1] == kept[2]


def test_other_is_not_named_as_a_subject(memory_files: Any, parsed: Any) -> None:
    rows = [_row(1, "other"), _row(2, "other")]
    (record,), _ = parsed(MMLU_PRO, memory_files(MMLU_PRO.spec, {"test": rows}))
    assert "about mixed topics" in record.turns[0]
    assert record.sub_category == "other"


def test_the_sample(sample_files: Any, parsed: Any) -> None:
    records, rejected = parsed(MMLU_PRO, sample_files(MMLU_PRO.spec)[0])
    assert len(records) >= 8
    assert sum(len(r.turns) for r in records) == 30
    assert len(rejected) == 5


@pytest.mark.mirror
def test_real_questions_are_all_used_once(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(MMLU_PRO, mirror_files(MMLU_PRO.spec)[0])
    assert sum(len(r.members) for r in records) == len({m for r in records for m in r.members}) == 12_032
    assert {len(r.turns) for r in records} == {2, 3, 4, 5}
    assert len({r.sub_category for r in records}) == 14
    assert rejected == []
