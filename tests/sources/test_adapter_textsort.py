from __future__ import annotations

from typing import Any

import pytest

from sources.adapters import textsort
from sources.base import Rejected
from sources.passages import Passage

PROMPT = (
    "Sort.\n\nBefore: XXX\n\n\nPart 1: XXX\n\n\nPart 2: XXX\n\n\nPart 3: XXX\n\n\nPart 4: XXX\n\n\nAfter: XXX\n\n"
    "Before: dawn\n\n\nPart 1: noon\nand later\n\n\nPart 2: Part one of the day\n\n\nPart 3: dusk\n\n\n"
    "Part 4: tea\n\n\nAfter: night\n"
)


def read(memory_files: Any, **values: Any) -> Any:
    row = {"book_id": 3, "para_offset": [1, 9], "prompt": PROMPT, "answer": [2, 1, 4, 3], **values}
    (item,) = textsort.parse(memory_files(textsort.SPEC, {"1k": [row]}))
    return item


@pytest.mark.parametrize("answer", [[2, 1, 4, 3], "[2, 1, 4, 3]"])
def test_the_prompt_is_taken_apart_behind_its_example(memory_files: Any, answer: Any) -> None:
    passage = read(memory_files, answer=answer)
    assert isinstance(passage, Passage)
    assert [p.text for p in passage.parts] == ["noon\nand later", "Part one of the day", "dusk", "tea"]
    assert (passage.before, passage.after, passage.answer) == ("dawn", "night", "2,1,4,3")
    assert passage.native_id == "3/1-9@1k"


@pytest.mark.parametrize(
    "values",
    [{"answer": [1, 2, 3]}, {"answer": "none"}, {"answer": None}, {"answer": [1, 1, 2, 3]}, {"prompt": "Part 1: x"}],
)
def test_a_row_without_order_or_parts_is_rejected(memory_files: Any, values: dict[str, Any]) -> None:
    assert isinstance(read(memory_files, **values), Rejected)
