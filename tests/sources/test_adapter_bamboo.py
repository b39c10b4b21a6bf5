from __future__ import annotations

from typing import Any

from sources.adapters import bamboo
from sources.base import Rejected
from sources.passages import Passage


def test_a_conversation_with_the_name_that_ends_it(memory_files: Any) -> None:
    row = {"content": '"Good morning." said by Ann\n"Hello." said by ', "answer": " Bob"}
    (passage,) = bamboo.parse(memory_files(bamboo.SPEC, {"showspred_4k": [row]}))
    assert isinstance(passage, Passage)
    assert (passage.text, passage.answer, passage.task, passage.group) == (
        row["content"],
        "Bob",
        "showspred",
        "showspred",
    )


def test_a_row_in_two_files_is_rejected_the_second_time(memory_files: Any) -> None:
    row = {"content": "a said by ", "answer": "B"}
    kept, again = bamboo.parse(memory_files(bamboo.SPEC, {"meetingpred_4k": [row], "meetingpred_16k": [row]}))
    assert isinstance(kept, Passage)
    assert isinstance(again, Rejected)
    assert "16k" in again.file


def test_the_files_lie_in_datasets_or_in_the_folder_itself() -> None:
    for path in ("datasets/meetingpred_4k.jsonl", "meetingpred_4k.jsonl"):
        assert [key for key, spec in bamboo.SPEC.files.items() if spec.matches(path)] == ["meetingpred_4k"]
