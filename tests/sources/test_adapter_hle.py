from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.registry import SOURCES

HLE = SOURCES["hle"]


def _row(**values: Any) -> dict[str, Any]:
    return {
        "id": "a1",
        "question": "Why?",
        "image": "",
        "answer_type": "exactMatch",
        "category": "Physics",
        **values,
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Physics", "stem"),
        ("Chemistry", "stem"),
        ("Engineering", "stem"),
        ("Biology/Medicine", "stem"),
        ("Computer Science/AI", "stem"),
        ("Humanities/Social Science", "humanities"),
        ("Math", "math"),
    ],
)
def test_category_by_discipline(theirs: str, ours: str, memory_files: Any, parsed: Any) -> None:
    (record,), _ = parsed(HLE, memory_files(HLE.spec, {"test": [_row(category=theirs)]}))
    assert (record.category, record.sub_category, record.difficulty) == (ours, theirs, "hard")
    assert record.turns == (record.text,) == ("Why?",)
    assert record.template_id == ""


@pytest.mark.parametrize(
    "values",
    [{"image": "data:image/png;base64,AAAA"}, {"answer_type": "multipleChoice"}, {"category": "Other"}],
)
def test_rows_that_are_not_of_this_source(values: dict[str, str], memory_files: Any, parsed: Any) -> None:
    assert parsed(HLE, memory_files(HLE.spec, {"test": [_row(**values)]})) == ([], [])


@pytest.mark.parametrize("image", ["", None])
def test_a_null_image_is_no_image(image: str | None, memory_files: Any, parsed: Any) -> None:
    assert len(parsed(HLE, memory_files(HLE.spec, {"test": [_row(image=image)]}))[0]) == 1


@pytest.mark.parametrize(
    ("values", "word"), [({"category": "Alchemy"}, "Alchemy"), ({"question": " \n"}, "empty"), ({"id": ""}, "empty")]
)
def test_bad_rows_are_rejected(values: dict[str, str], word: str, memory_files: Any, parsed: Any) -> None:
    records, (rejected,) = parsed(HLE, memory_files(HLE.spec, {"test": [_row(**values), _row(id="a2")]}))
    assert [r.native_id for r in records] == ["a2"]
    assert word in rejected.reason


def test_it_is_gated_and_pinned() -> None:
    assert HLE.spec.gated
    assert not HLE.spec.may_publish
    assert HLE.spec.revision.startswith("021a3d71")
    assert HLE.spec.license.id == "mit"


def test_the_sample(sample_files: Any, parsed: Any) -> None:
    records, rejected = parsed(HLE, sample_files(HLE.spec)[0])
    assert Counter(r.category for r in records) == {"stem": 13, "humanities": 7, "math": 7}
    assert len(rejected) == 2


@pytest.mark.mirror
def test_the_stand_in_of_the_mirror(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(HLE, mirror_files(HLE.spec)[0])
    assert Counter(r.category for r in records) == {"stem": 840, "humanities": 421, "math": 211}
    assert rejected == []
