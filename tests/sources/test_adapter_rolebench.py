"""RoleBench: conversations of one to five questions to one role."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.adapters.rolebench import MAX_TURNS, SPEC, TEMPLATES, without_address
from sources.base import canonical_id, joined_id
from sources.registry import SOURCES

SOURCE = SOURCES["rolebench"]
FIRST, SECOND = "instruction-generalization", "role-generalization"


def _files(first: list[tuple[Any, Any]], second: list[tuple[Any, Any]] | None = None, **roles: Any) -> dict[str, Any]:
    return {
        "descriptions": [{"key": key, "value": value} for key, value in (roles or {"Nemo": "A captain."}).items()],
        FIRST: [{"role": role, "question": question} for role, question in first],
        SECOND: [{"role": role, "question": question} for role, question in second or []],
    }


def test_the_first_turn_is_a_template_with_role_description_and_question(memory_files: Any, parsed: Any) -> None:
    (record,), _ = parsed(SOURCE, memory_files(SPEC, _files([("Nemo", " Nemo, why the sea? ")])))
    number = int(record.template_id.removeprefix("rolebench/v1."))
    prompt = TEMPLATES[number - 1].format(role="Nemo", description="A captain.")
    assert record.turns == (f"{prompt}\n\nNemo, why the sea?",)
    assert record.text == "Nemo, why the sea?"
    assert record.native_id == canonical_id({"question": "Nemo, why the sea?", "role": "Nemo"})


def test_conversations_are_the_questions_of_one_role_in_the_order_of_their_ids(memory_files: Any, parsed: Any) -> None:
    asked = [(role, f"{role}, what is {i} to you?") for role in ("Ada", "Nemo") for i in range(60)]
    records, _ = parsed(SOURCE, memory_files(SPEC, _files(asked, Ada="A.", Nemo="B.")))
    for record in records:
        assert list(record.members) == sorted(record.members)
        assert record.native_id == joined_id(record.members)
        assert len(record.turns) == len(record.members) <= MAX_TURNS
        assert len({q.partition(",")[0] for q in record.text.split("\n\n")}) == 1, "one role"
        later = [q.partition(", ")[2] for q in record.text.split("\n\n")[1:]]
        assert [turn.lower() for turn in record.turns[1:]] == later, "no later turn repeats the name"
        assert all(turn.startswith("What is") for turn in record.turns[1:])
    assert sorted(q for r in records for q in r.text.split("\n\n")) == sorted(q for _, q in asked), "each question once"
    assert set(Counter(len(r.turns) for r in records)) == {1, 2, 3, 4, 5}
    assert len({r.template_id for r in records}) == len(TEMPLATES) == 8


def test_a_question_less_changes_no_conversation_before_it(memory_files: Any, parsed: Any) -> None:
    asked = sorted(
        (("Nemo", f"What is {i} to you?") for i in range(60)),
        key=lambda pair: canonical_id({"question": pair[1], "role": pair[0]}),
    )
    whole, _ = parsed(SOURCE, memory_files(SPEC, _files(asked)))
    fewer, _ = parsed(SOURCE, memory_files(SPEC, _files(asked[:-1])))
    assert fewer[: len(whole) - 1] == whole[:-1]


def test_each_file_makes_conversations_of_its_own(memory_files: Any, parsed: Any) -> None:
    first, second = [("Nemo", f"First {i}?") for i in range(7)], [("Nemo", f"Second {i}?") for i in range(7)]
    records, _ = parsed(SOURCE, memory_files(SPEC, _files(first, second)))
    assert all(len({q.split()[0] for q in r.text.split("\n\n")}) == 1 for r in records)


def test_a_question_that_stands_in_both_files_counts_once(memory_files: Any, parsed: Any) -> None:
    rows = _files([("Nemo", " Why?")], [("Nemo", "Why? "), ("Nemo", "How?")])
    records, rejected = parsed(SOURCE, memory_files(SPEC, rows))
    assert sorted(r.text for r in records) == ["How?", "Why?"]
    assert [(r.file, r.line) for r in rejected] == [(SPEC.files[SECOND].path, 1)]


@pytest.mark.parametrize(
    ("role", "question", "reason"),
    [
        ("Nemo", " ", "empty question"),
        ("Nemo", None, "empty question"),
        (None, "Who?", "no role"),
        ("Nobody", "Who?", "no description of the role Nobody"),
        ("Blank", "Who?", "no description of the role Blank"),
    ],
)
def test_a_bad_row_is_rejected(role: Any, question: Any, reason: str, memory_files: Any, parsed: Any) -> None:
    files = memory_files(SPEC, _files([(role, question)], Nemo="A captain.", Blank=" "))
    records, rejected = parsed(SOURCE, files)
    assert records == []
    assert [r.reason for r in rejected] == [reason]


@pytest.mark.parametrize(
    ("question", "role", "bare"),
    [
        ("John Coffey, what do you fear?", "John Coffey", "What do you fear?"),
        ("Dr. House, why a cane?", "Gregory House", "Why a cane?"),
        ("D'Artagnan, how many duels?", "D_Artagnan", "How many duels?"),
        ("Professor Dorr, who hired them?", "Professor G.H. Dorr", "Who hired them?"),
        ("In your opinion, who won?", "Nemo", "In your opinion, who won?"),
        ("Sir, who won?", "Nemo", "Sir, who won?"),
        ("Nemo and Ned, who won?", "Nemo", "Nemo and Ned, who won?"),
        ("Who are you, Nemo?", "Nemo", "Who are you, Nemo?"),
        ("Nemo,", "Nemo", "Nemo,"),
        ("Nemo", "Nemo", "Nemo"),
        ("", "Nemo", ""),
    ],
)
def test_an_address_is_taken_off_and_nothing_else(question: str, role: str, bare: str) -> None:
    assert without_address(question, role) == bare


@given(st.text(max_size=30), st.text(min_size=1, max_size=12))
def test_what_is_left_is_never_empty_and_ends_as_the_question_does(question: str, role: str) -> None:
    bare = without_address(question, role)
    assert bool(bare) == bool(question)
    assert bare == question or question.endswith(bare[1:])


@pytest.mark.mirror
def test_every_real_question_is_asked_once_or_rejected_as_a_repeat(mirror_files: Any, parsed: Any) -> None:
    files, unread = mirror_files(SPEC)
    records, rejected = parsed(SOURCE, files)
    assert [len(files.by_key[key]) for key in (FIRST, SECOND)] == [4750, 2534]
    assert unread == []
    assert sum(len(r.members) for r in records) + len(rejected) == 4750 + 2534
    assert all("was read before" in r.reason for r in rejected)
    assert len(rejected) == 738
    assert Counter(len(r.turns) for r in records).keys() == {1, 2, 3, 4, 5}
