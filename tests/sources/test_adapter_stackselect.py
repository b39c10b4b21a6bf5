from __future__ import annotations

from typing import Any

import pytest

from sources.adapters import stackselect
from sources.base import Rejected
from sources.passages import Part, Passage


def read(memory_files: Any, **values: Any) -> Any:
    row = {"question_id": 7, "question": "Why?", "answer": "A2", "all_answers": ["No.", "Yes.", " "], **values}
    (item,) = stackselect.parse(memory_files(stackselect.SPEC, {"2k": [row]}))
    return item


def test_a_question_keeps_its_answers_and_the_label_of_the_right_one(memory_files: Any) -> None:
    passage = read(memory_files)
    assert isinstance(passage, Passage)
    assert (passage.native_id, passage.group, passage.title, passage.answer) == ("7@2k", "7", "Why?", "A2")
    assert passage.parts == (Part("A1", "No."), Part("A2", "Yes."))


@pytest.mark.parametrize(
    "values", [{"answer": "A4"}, {"answer": "A0"}, {"answer": "2"}, {"question": " "}, {"answer": "A3"}]
)
def test_a_row_without_question_or_right_answer_is_rejected(memory_files: Any, values: dict[str, Any]) -> None:
    assert isinstance(read(memory_files, **values), Rejected)
