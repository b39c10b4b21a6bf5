from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.adapters.livecodebench import LANGUAGES
from sources.registry import SOURCES

LIVECODEBENCH = SOURCES["livecodebench"]


def _row(**values: Any) -> dict[str, Any]:
    return {
        "question_id": "q1",
        "question_content": "Count the sheep.",
        "starter_code": "",
        "difficulty": "easy",
        **values,
    }


def _rows(number: int, **values: Any) -> list[dict[str, Any]]:
    return [_row(question_id=f"q{i}", **values) for i in range(number)]


def test_the_prompt_is_our_instruction_and_the_problem(memory_files: Any, parsed: Any) -> None:
    (record,), _ = parsed(LIVECODEBENCH, memory_files(LIVECODEBENCH.spec, {"test": [_row()]}))
    (turn,) = record.turns
    assert turn.endswith("\n\nCount the sheep.")
    assert f" {record.sub_category} program" in turn
    assert "standard input" in turn
    assert record.text == "Count the sheep."
    assert (record.category, record.difficulty, record.is_code) == ("coding", "easy", True)
    assert record.template_id == "livecodebench/v1"


def test_starter_code_follows_the_problem_and_is_called_python(memory_files: Any, parsed: Any) -> None:
    code = "class Solution:\n    def count(self, n: int) -> int:\n        "
    records, _ = parsed(LIVECODEBENCH, memory_files(LIVECODEBENCH.spec, {"test": _rows(60, starter_code=code)}))
    for record in records:
        assert record.text == f"Count the sheep.\n\n{code}"
        assert record.turns[0].endswith(record.text)
        assert "standard input" not in record.turns[0]
        assert ("is Python" in record.turns[0]) == (record.sub_category != "Python")


@pytest.mark.parametrize("starter_code", [None, "", "  \n"])
def test_no_starter_code_leaves_no_trace(starter_code: str | None, memory_files: Any, parsed: Any) -> None:
    (record,), _ = parsed(LIVECODEBENCH, memory_files(LIVECODEBENCH.spec, {"test": [_row(starter_code=starter_code)]}))
    assert record.text == "Count the sheep."
    assert "starter code" not in record.turns[0]


def test_languages_are_drawn_evenly_and_by_the_id_alone(memory_files: Any, parsed: Any) -> None:
    files = memory_files(LIVECODEBENCH.spec, {"test": _rows(600)})
    drawn = {r.native_id: r.sub_category for r in parsed(LIVECODEBENCH, files)[0]}
    counts = Counter(drawn.values())
    assert set(counts) == set(LANGUAGES)
    assert all(70 <= n <= 130 for n in counts.values())  # 100 expected, standard deviation 9
    changed = memory_files(LIVECODEBENCH.spec, {"test4": _rows(600, question_content="Another text.")})
    assert {r.native_id: r.sub_category for r in parsed(LIVECODEBENCH, changed)[0]} == drawn


@pytest.mark.parametrize(("theirs", "ours"), [("hard", "hard"), ("medium", "medium"), ("unrated", ""), (None, "")])
def test_difficulty_is_the_source_s_own(theirs: str | None, ours: str, memory_files: Any, parsed: Any) -> None:
    (record,), _ = parsed(LIVECODEBENCH, memory_files(LIVECODEBENCH.spec, {"test": [_row(difficulty=theirs)]}))
    assert record.difficulty == ours


@pytest.mark.parametrize("values", [{"question_content": "  "}, {"question_id": ""}])
def test_rows_without_id_or_problem_are_rejected(values: dict[str, str], memory_files: Any, parsed: Any) -> None:
    records, (rejected,) = parsed(LIVECODEBENCH, memory_files(LIVECODEBENCH.spec, {"test2": [_row(**values)]}))
    assert records == []
    assert rejected.file == "test2.jsonl"


def test_it_reads_six_files_and_publishes_no_text(sample_files: Any, parsed: Any) -> None:
    spec = LIVECODEBENCH.spec
    assert [f.path for f in spec.files.values()] == ["test.jsonl", *(f"test{i}.jsonl" for i in range(2, 7))]
    assert not spec.may_publish
    files, unread = sample_files(spec)
    records, rejected = parsed(LIVECODEBENCH, files)
    assert (len(records), len(rejected), len(unread)) == (13, 1, 2)


@pytest.mark.mirror
def test_real_problems(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(LIVECODEBENCH, mirror_files(LIVECODEBENCH.spec)[0])
    assert len(records) == 635
    assert rejected == []
    assert Counter(r.difficulty for r in records) == {"medium": 255, "easy": 197, "hard": 183}
    assert sum("starter code" in r.turns[0] for r in records) == 381
    assert {r.sub_category for r in records} == set(LANGUAGES)
