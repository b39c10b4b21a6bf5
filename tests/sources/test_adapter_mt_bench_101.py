from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.registry import SOURCES

MT_BENCH_101 = SOURCES["mt_bench_101"]


def _history(*users: Any) -> list[dict[str, Any]]:
    return [{"user": user, "bot": "I see."} for user in users]


def test_only_what_the_user_says_is_kept(memory_files: Any, parsed: Any) -> None:
    rows = [
        {"task": "GR", "id": 4, "history": _history("If A then B. A.", "Then what?", "Sure?")},
        {"task": "CM", "id": 5, "history": _history("Remember my name.")},
        {"task": "MR", "id": 6, "history": _history("Three halves of ten?")},
    ]
    records, rejected = parsed(MT_BENCH_101, memory_files(MT_BENCH_101.spec, {"dialogues": rows}))
    assert [(r.native_id, r.sub_category) for r in records] == [
        ("4", "general reasoning"),
        ("6", "mathematical reasoning"),
    ]
    assert records[0].turns == ("If A then B. A.", "Then what?", "Sure?")
    assert records[0].text == "If A then B. A.\n\nThen what?\n\nSure?"
    assert {r.category for r in records} == {"reasoning"}
    assert rejected == []


@pytest.mark.parametrize("history", [[], [{}], _history("Fine.", ""), _history("Fine.", None), _history(["a", "list"])])
def test_a_broken_history_is_rejected_whole(history: list[Any], memory_files: Any, parsed: Any) -> None:
    rows = [{"task": "MR", "id": 1, "history": history}, {"task": "MR", "id": 2, "history": _history("Go on.")}]
    records, (rejected,) = parsed(MT_BENCH_101, memory_files(MT_BENCH_101.spec, {"dialogues": rows}))
    assert [r.native_id for r in records] == ["2"]
    assert "history" in rejected.reason


def test_the_sample(sample_files: Any, parsed: Any) -> None:
    files, unread = sample_files(MT_BENCH_101.spec)
    records, rejected = parsed(MT_BENCH_101, files)
    assert (len(records), len(rejected), len(unread)) == (12, 3, 2)
    assert any(not r.text.isascii() for r in records)


@pytest.mark.mirror
def test_real_dialogues(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(MT_BENCH_101, mirror_files(MT_BENCH_101.spec)[0])
    assert Counter(r.sub_category for r in records) == {"general reasoning": 71, "mathematical reasoning": 108}
    assert Counter(len(r.turns) for r in records) == {2: 102, 3: 70, 4: 7}
    assert rejected == []
