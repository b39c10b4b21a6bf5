"""CNN/DailyMail: an article under our instruction."""

from __future__ import annotations

from typing import Any

import pytest

from sources.adapters.cnn_dailymail import INSTRUCTION, SPEC
from sources.registry import SOURCES

SOURCE = SOURCES["cnn_dailymail"]


def test_the_article_follows_our_instruction_and_is_alone_the_text(memory_files: Any, parsed: Any) -> None:
    row = {"article": "A bridge was painted on Monday. It is now green.", "id": "ab12"}
    (record,), rejected = parsed(SOURCE, memory_files(SPEC, {"test": [row]}))
    assert rejected == []
    assert record.turns == (INSTRUCTION + row["article"],)
    assert record.text == row["article"]
    assert (record.native_id, record.category, record.template_id) == ("ab12", "summarization", "cnn_dailymail/v1")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"article": "", "id": "1"}, "empty article"),
        ({"article": None, "id": "1"}, "empty article"),
        ({"article": "News.", "id": None}, "no id"),
        ({"article": "News.", "id": " "}, "no id"),
    ],
)
def test_a_row_without_article_or_id_is_rejected(
    row: dict[str, Any], reason: str, memory_files: Any, parsed: Any
) -> None:
    records, rejected = parsed(SOURCE, memory_files(SPEC, {"test": [row]}))
    assert records == []
    assert [r.reason for r in rejected] == [reason]


def test_the_news_is_withheld_although_the_card_says_apache() -> None:
    assert SPEC.license.may_publish
    assert not SPEC.may_publish
    assert "copyright" in SPEC.publish_reason


@pytest.mark.mirror
def test_all_80_real_articles_are_read(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, mirror_files(SPEC)[0])
    assert (len(records), len(rejected)) == (80, 0)
