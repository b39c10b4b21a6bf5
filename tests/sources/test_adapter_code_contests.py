from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.adapters.code_contests import LANGUAGES, difficulty
from sources.registry import SOURCES

CODE_CONTESTS = SOURCES["code_contests"]


def _rows(number: int, **values: Any) -> list[dict[str, Any]]:
    return [
        {"name": f"n{i}", "description": "Add up.\n\nInput\n\n1 2", "difficulty": 1, **values} for i in range(number)
    ]


# The source's names in the order of their numbers.
NAMES = ["UNKNOWN", "EASY", "MEDIUM", "HARD", "HARDER", "HARDEST", "EXTERNAL", *"ABCDEFGHIJKLMNOPQRSTUV"]


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES)))
def test_difficulty_of_every_number_of_the_enumeration(number: int, name: str) -> None:
    if name in ("UNKNOWN", "EXTERNAL"):
        expected = ""
    elif name in ("EASY", "MEDIUM"):
        expected = name.lower()
    elif name.startswith("HARD"):
        expected = "hard"
    else:
        expected = "easy" if name <= "I" else "medium" if name <= "Q" else "hard"
    assert difficulty(number) == expected


@pytest.mark.parametrize("number", [None, -1, 29, 1000])
def test_numbers_outside_the_enumeration_have_no_difficulty(number: int | None) -> None:
    assert difficulty(number) == ""


def test_the_description_stands_verbatim_after_our_instruction(memory_files: Any, parsed: Any) -> None:
    description = "  Pick {n} \\lbrace x \\rbrace <image> \r\n"
    (record,), _ = parsed(CODE_CONTESTS, memory_files(CODE_CONTESTS.spec, {"test": _rows(1, description=description)}))
    assert record.text == description
    assert record.turns[0].endswith("\n\n" + description)
    assert f"Write a {record.sub_category} program" in record.turns[0]
    assert (record.template_id, record.is_code, record.category) == ("code_contests/v1", True, "coding")


def test_three_languages_are_drawn_evenly(memory_files: Any, parsed: Any) -> None:
    records, _ = parsed(CODE_CONTESTS, memory_files(CODE_CONTESTS.spec, {"test": _rows(600)}))
    counts = Counter(r.sub_category for r in records)
    assert set(counts) == set(LANGUAGES) == {"Python", "Java", "C++"}
    assert all(160 <= n <= 240 for n in counts.values())  # 200 expected, standard deviation 12


def test_the_draw_is_not_that_of_livecodebench(memory_files: Any, parsed: Any) -> None:
    other = SOURCES["livecodebench"]
    rows = [{"question_id": f"n{i}", "question_content": "x"} for i in range(200)]
    theirs = {r.native_id: r.sub_category for r in parsed(other, memory_files(other.spec, {"test": rows}))[0]}
    ours = parsed(CODE_CONTESTS, memory_files(CODE_CONTESTS.spec, {"test": _rows(200)}))[0]
    agree = sum(theirs[r.native_id] == r.sub_category for r in ours)
    assert 15 <= agree <= 55  # a sixth of 200 by chance


def test_bad_rows_are_rejected(memory_files: Any, parsed: Any) -> None:
    rows = [*_rows(2), {"name": "x", "description": "", "difficulty": None}, {"name": " ", "description": "y"}]
    records, rejected = parsed(CODE_CONTESTS, memory_files(CODE_CONTESTS.spec, {"test": rows}))
    assert len(records) == 2
    assert [r.line for r in rejected] == [3, 4]


def test_the_sample(sample_files: Any, parsed: Any) -> None:
    records, rejected = parsed(CODE_CONTESTS, sample_files(CODE_CONTESTS.spec)[0])
    assert Counter(r.difficulty for r in records) == {"easy": 2, "medium": 2, "hard": 3, "": 3}
    assert len(rejected) == 1
    assert CODE_CONTESTS.spec.may_publish


@pytest.mark.mirror
def test_the_stand_in_of_the_mirror(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(CODE_CONTESTS, mirror_files(CODE_CONTESTS.spec)[0])
    assert Counter(r.difficulty for r in records) == {"hard": 87, "easy": 82, "medium": 76}
    assert rejected == []
