from __future__ import annotations

from typing import Any

import pytest

from sources.adapters import long_code_arena as lca
from sources.base import Rejected
from sources.passages import Part, Passage

MIT = "Permission is hereby granted, free of charge, to any person obtaining\na copy of this software"


def read(memory_files: Any, **values: Any) -> list[Any]:
    row = {
        "repo": "someone__Thing",
        "commit_hash": "0123456789abcdef",
        "completion_file": {"filename": "a.py", "content": "import b\nb.c()\nb.d()"},
        "completion_lines": {"inproject": [2, 1, 99], "random": [0], "infile": None},
        "repo_snapshot": {
            "filename": ["LICENSE", "b.py", "a.py", "e.py"],
            "content": [MIT, "def c(): ...", "old", " "],
        },
        **values,
    }
    return list(lca.parse(memory_files(lca.SPEC, {"medium": [row], "large": [row]})))


def test_a_file_to_complete_with_its_repository(memory_files: Any) -> None:
    passage, again = read(memory_files)
    assert isinstance(again, Rejected)
    assert isinstance(passage, Passage)
    assert (passage.native_id, passage.group, passage.title) == (
        "someone/thing@0123456789ab/a.py",
        "someone/thing",
        "a.py",
    )
    assert passage.parts == (Part("LICENSE", MIT), Part("b.py", "def c(): ..."))
    assert (passage.lines, passage.license) == ((1, 2), "MIT")


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"repo_snapshot": {"filename": ["b.py"], "content": ["x"]}}, "someone__Thing is not known to be permissive"),
        ({"completion_lines": {"random": [1]}}, "no line"),
        ({"completion_file": {"filename": "a.py", "content": None}}, "lacks"),
        ({"repo_snapshot": {"filename": ["b.py"], "content": []}}, "lacks"),
    ],
)
def test_rows_that_are_rejected(memory_files: Any, values: dict[str, Any], word: str) -> None:
    items = read(memory_files, **values)
    assert all(isinstance(item, Rejected) and word in item.reason for item in items)
