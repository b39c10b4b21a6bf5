"""MMATH: the same problems in ten languages."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.adapters.mmath import LANGUAGES, SPEC
from sources.registry import SOURCES

SOURCE = SOURCES["mmath"]


def test_language_and_problem_number_make_the_id(memory_files: Any, parsed: Any) -> None:
    rows = [{"question": f"{language}?", "lang": language, "gid": 3} for language in ("ja", "pt")]
    records, rejected = parsed(SOURCE, memory_files(SPEC, {"problems": rows}))
    assert rejected == []
    assert [(r.native_id, r.language, r.turns) for r in records] == [("ja_3", "ja", ("ja?",)), ("pt_3", "pt", ("pt?",))]
    assert {(r.category, r.sub_category, r.template_id) for r in records} == {("multilingual", "math", "")}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question": "?", "lang": "de", "gid": 1}, "language 'de' is none of"),
        ({"question": " ", "lang": "en", "gid": 1}, "empty question"),
        ({"question": None, "lang": "en", "gid": 1}, "empty question"),
    ],
)
def test_a_bad_row_is_rejected(row: dict[str, Any], reason: str, memory_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, memory_files(SPEC, {"problems": [row]}))
    assert records == []
    assert rejected[0].reason.startswith(reason)


def test_every_file_of_the_pattern_is_read(sample_files: Any, parsed: Any) -> None:
    records, _ = parsed(SOURCE, sample_files(SPEC)[0])
    assert Counter(r.language for r in records) == dict.fromkeys(LANGUAGES, 2)


@pytest.mark.mirror
def test_the_real_files_have_374_problems_in_each_language(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, mirror_files(SPEC)[0])
    assert (len(records), len(rejected)) == (3740, 0)
    assert Counter(r.language for r in records) == dict.fromkeys(LANGUAGES, 374)
