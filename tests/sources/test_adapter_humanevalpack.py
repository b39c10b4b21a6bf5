from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.registry import SOURCES

PACK = SOURCES["humanevalpack"]


def test_the_prompt_is_the_turn_and_the_file_the_language(memory_files: Any, parsed: Any) -> None:
    prompt = "func Tide(h []int) int {\n"
    rows = {"go": [{"task_id": "Go/3", "prompt": prompt}], "cpp": [{"task_id": "CPP/3", "prompt": "int tide(int h){"}]}
    records, rejected = parsed(PACK, memory_files(PACK.spec, rows))
    assert [(r.native_id, r.sub_category) for r in records] == [("Go/3", "Go"), ("CPP/3", "C++")]
    assert records[0].turns == (prompt,)
    assert records[0].text == prompt
    assert all(r.is_code and r.difficulty == "easy" and r.category == "coding" for r in records)
    assert rejected == []


@pytest.mark.parametrize("values", [{"task_id": "", "prompt": "def f():"}, {"task_id": "Rust/1", "prompt": "\n"}])
def test_empty_rows_are_rejected(values: dict[str, str], memory_files: Any, parsed: Any) -> None:
    records, (rejected,) = parsed(PACK, memory_files(PACK.spec, {"rust": [values]}))
    assert records == []
    assert rejected.file == "data/rust/data/humanevalpack.jsonl"


def test_the_sample(sample_files: Any, parsed: Any) -> None:
    files, unread = sample_files(PACK.spec)
    records, rejected = parsed(PACK, files)
    assert Counter(r.sub_category for r in records) == dict.fromkeys(
        ["Python", "JavaScript", "Java", "Go", "C++", "Rust"], 2
    )
    assert (len(rejected), len(unread)) == (1, 1)


@pytest.mark.mirror
def test_real_functions(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(PACK, mirror_files(PACK.spec)[0])
    assert len(records) == 984
    assert set(Counter(r.sub_category for r in records).values()) == {164}
    assert rejected == []
