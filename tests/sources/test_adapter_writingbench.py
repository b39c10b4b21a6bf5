"""WritingBench: the English requests, as they stand."""

from __future__ import annotations

from typing import Any

import pytest

from sources.adapters.writingbench import SPEC
from sources.registry import SOURCES

SOURCE = SOURCES["writingbench"]


def _rows(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"queries": rows}


def test_the_query_is_the_only_turn_and_the_index_the_id(memory_files: Any, parsed: Any) -> None:
    row = {"index": 7, "domain1": "Education", "lang": "en", "query": "Plan a lesson on tides.\n"}
    records, rejected = parsed(SOURCE, memory_files(SPEC, _rows(row)))
    assert rejected == []
    (record,) = records
    assert (record.native_id, record.category, record.sub_category) == ("7", "writing", "Education")
    assert record.turns == ("Plan a lesson on tides.\n",)
    assert (record.text, record.language, record.template_id) == (row["query"], "en", "")


@pytest.mark.parametrize(("language", "query"), [("zh", "写一份教案。"), ("fr", "Rédige un plan de cours.")])
def test_other_languages_are_passed_over_and_not_rejected(
    language: str, query: str, memory_files: Any, parsed: Any
) -> None:
    row = {"index": 1, "domain1": "Education", "lang": language, "query": query}
    assert parsed(SOURCE, memory_files(SPEC, _rows(row))) == ([], [])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"index": 1, "domain1": "Education", "lang": "en", "query": " \n"}, "empty query"),
        ({"index": 1, "domain1": "Education", "lang": "en", "query": None}, "empty query"),
        ({"index": 1, "lang": "en", "query": "Write."}, "no domain"),
        ({"index": 1, "domain1": "Education", "query": "Write."}, "no language"),
    ],
)
def test_a_row_that_lacks_something_is_rejected_with_the_reason(
    row: dict[str, Any], reason: str, memory_files: Any, parsed: Any
) -> None:
    records, rejected = parsed(SOURCE, memory_files(SPEC, _rows(row)))
    assert records == []
    assert [(r.line, r.reason) for r in rejected] == [(1, reason)]


def test_samples_are_read_past_a_byte_order_mark_blank_lines_and_broken_ones(sample_files: Any, parsed: Any) -> None:
    files, unread = sample_files(SPEC)
    records, rejected = parsed(SOURCE, files)
    assert [r.native_id for r in records] == [str(i) for i in range(1, 16)]
    assert [r.reason for r in rejected] == ["empty query", "empty query", "no domain", "no language"]
    assert len(unread) == 2


@pytest.mark.mirror
def test_the_real_file_has_555_english_requests_over_six_domains(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, mirror_files(SPEC)[0])
    assert (len(records), len(rejected)) == (555, 0)
    assert len({r.sub_category for r in records}) == 6
