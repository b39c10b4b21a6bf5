"""MT-Bench, GSM8K, Natural Questions and Spec-Bench, which read one file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sources.base import Rejected, Source
from sources.origins import open_source, resolve
from sources.registry import SOURCES

MT_BENCH, GSM8K, NQ, SPEC_BENCH = (SOURCES[n] for n in ("mt_bench", "gsm8k", "natural_questions", "spec_bench"))

ROWS = [
    {"question_id": 7, "category": "extraction", "turns": ["List the dates.", "Now sort them."]},
    {"question_id": 8, "category": "stem", "turns": ["Why is ice slippery?", "And at -40 °C?"], "reference": ["Film."]},
    {"question_id": 9, "category": "writing", "turns": ["Write a limerick.", "Again, sadder."]},
    {"question_id": 10, "category": "translation", "turns": ["Translate German to English: Es regnet."]},
    {"question_id": 11, "category": "math_reasoning", "turns": ["Two plus two apples?"]},
    {"question_id": 12, "category": "qa", "turns": ["who sang first"]},
    {"question_id": 13, "category": "rag", "turns": ["A passage.\nA question?"]},
    {"question_id": 14, "category": "summarization", "turns": ["Summarize: It happened."]},
]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (MT_BENCH, [("7", "rag", "extraction", ""), ("8", "stem", "", "medium"), ("9", "writing", "", "")]),
        (GSM8K, [("11", "math", "", "easy")]),
        (NQ, [("12", "qa", "", ""), ("13", "rag", "", "")]),
    ],
)
def test_each_takes_its_own_rows(source: Source, expected: list[Any], memory_files: Any, parsed: Any) -> None:
    records, rejected = parsed(source, memory_files(source.spec, {"questions": ROWS}))
    assert [(r.native_id, r.category, r.sub_category, r.difficulty) for r in records] == expected
    assert rejected == []


def test_spec_bench_keeps_every_row_under_its_own_names(memory_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SPEC_BENCH, memory_files(SPEC_BENCH.spec, {"questions": ROWS}))
    assert [r.category for r in records] == [row["category"] for row in ROWS]
    assert [r.sub_category for r in records[:4]] == ["mt_bench", "mt_bench", "mt_bench", "translation"]
    assert [r.language for r in records if r.language != "en"] == ["de"]
    assert rejected == []


def test_turns_are_used_as_they_are(memory_files: Any, parsed: Any) -> None:
    turns = ["  Leading blanks,\ttabs\r\n", "and a second turn \u2028"]
    row = {"question_id": 1, "category": "humanities", "turns": turns}
    (record,), _ = parsed(MT_BENCH, memory_files(MT_BENCH.spec, {"questions": [row]}))
    assert record.turns == tuple(turns)
    assert record.text == turns[0] + "\n\n" + turns[1]
    assert record.template_id == ""


@pytest.mark.parametrize("turns", [[], [""], ["Fine.", " \n"]])
def test_rows_without_text_are_rejected(turns: list[str], memory_files: Any, parsed: Any) -> None:
    rows = [{"question_id": 1, "category": "qa", "turns": turns}, ROWS[5]]
    records, (rejected,) = parsed(NQ, memory_files(NQ.spec, {"questions": rows}))
    assert [r.native_id for r in records] == ["12"]
    assert (rejected.line, "turn" in rejected.reason) == (1, True)


def test_an_unknown_category_is_rejected_once_by_spec_bench(memory_files: Any, parsed: Any) -> None:
    rows = [*ROWS, {"question_id": 99, "category": "poetry", "turns": ["Rhyme."]}]
    rejected = {
        s.spec.name: parsed(s, memory_files(s.spec, {"questions": rows}))[1]
        for s in SOURCES.values()
        if s.spec.samples == "spec_bench" or s is SPEC_BENCH
    }
    assert {name: len(r) for name, r in rejected.items()} == {
        "mt_bench": 0,
        "gsm8k": 0,
        "natural_questions": 0,
        "spec_bench": 1,
    }
    assert "poetry" in rejected["spec_bench"][0].reason


def test_bad_lines_of_the_sample_are_named(sample_files: Any, parsed: Any) -> None:
    files, unread = sample_files(SPEC_BENCH.spec)
    records, rejected = parsed(SPEC_BENCH, files)
    assert len(records) == 80 + 12 * 4 + 14
    assert len(rejected) == 3
    assert len(unread) == 4
    assert "not JSON" in unread[-1].reason


def test_a_file_with_bom_and_blank_lines_counts_its_own_lines(tmp_path: Path) -> None:
    from sources.origins import MirrorOrigin

    path = tmp_path / "_web" / "hemingkx" / "Spec-Bench" / "data" / "spec_bench" / "question.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'\xef\xbb\xbf\n\n{"question_id": 1, "category": "qa", "turns": []}\n')
    rejected: list[Rejected] = []
    files = open_source(NQ.spec, resolve(MirrorOrigin(tmp_path), NQ.spec), rejected.append)
    (item,) = NQ.parse(files)
    assert isinstance(item, Rejected)
    assert (item.file, item.line) == ("data/spec_bench/question.jsonl", 3)


def test_the_file_is_not_published_as_a_whole() -> None:
    assert [s.spec.may_publish for s in (MT_BENCH, GSM8K, NQ, SPEC_BENCH)] == [True, True, True, False]
    assert "newspapers" in SPEC_BENCH.spec.publish_reason


@pytest.mark.mirror
def test_the_real_file_has_480_questions(mirror_files: Any, parsed: Any) -> None:
    count = {s.spec.name: len(parsed(s, mirror_files(s.spec)[0])[0]) for s in (MT_BENCH, GSM8K, NQ, SPEC_BENCH)}
    assert count == {"mt_bench": 80, "gsm8k": 80, "natural_questions": 160, "spec_bench": 480}


@pytest.mark.mirror
def test_real_questions_by_task_and_id(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SPEC_BENCH, mirror_files(SPEC_BENCH.spec)[0])
    assert rejected == []
    assert Counter(r.sub_category for r in records) == {
        "mt_bench": 80,
        "translation": 80,
        "summarization": 80,
        "qa": 80,
        "math_reasoning": 80,
        "rag": 80,
    }
    assert {int(r.native_id) for r in records} == set(range(81, 561))
    assert all(len(r.turns) == (2 if r.sub_category == "mt_bench" else 1) for r in records)
