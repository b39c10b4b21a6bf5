"""OPUS-100: one direction of each sentence pair, and the language of the text that is given."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from sources.adapters.opus_100 import LANGUAGES, SPEC
from sources.base import Row
from sources.registry import SOURCES

SOURCE = SOURCES["opus_100"]
NAMES = {name: code for code, name in LANGUAGES.items()}


class OnePair:
    """Rows of one config's file."""

    def __init__(self, config: str, *translations: dict[str, Any] | None) -> None:
        self._rows = [
            Row({"translation": t}, f"{config}/test-00000-of-00001.parquet", i) for i, t in enumerate(translations, 1)
        ]

    def rows(self, key: str) -> list[Row]:
        return self._rows if key == "test" else []


def test_instruction_sub_category_and_language_agree_on_the_direction(parsed: Any) -> None:
    pairs = [{"da": f"Sætning nummer {i}.", "en": f"Sentence number {i}."} for i in range(40)]
    records, rejected = parsed(SOURCE, OnePair("da-en", *pairs))
    assert rejected == []
    for record in records:
        source, target = re.search(r"from (.+) into (.+)\. Give", record.turns[0]).groups()  # type: ignore[union-attr]
        assert record.sub_category == f"translation {NAMES[source]}-{NAMES[target]}"
        assert record.language == NAMES[source]
        assert record.turns[0].endswith("\n\n" + record.text)
        assert record.text.startswith({"da": "Sætning", "en": "Sentence"}[record.language])
    assert 10 <= Counter(r.language for r in records)["da"] <= 30, "both directions are asked for"


def test_the_id_depends_on_config_and_content_and_not_on_place(parsed: Any) -> None:
    a, b = {"de": "Ja.", "fr": "Oui."}, {"de": "Nein.", "fr": "Non."}
    forward, _ = parsed(SOURCE, OnePair("de-fr", a, b))
    backward, _ = parsed(SOURCE, OnePair("de-fr", b, a))
    assert forward == backward[::-1]
    assert all(re.fullmatch("[0-9a-f]{16}", r.native_id) for r in forward)


def test_a_pair_that_stands_twice_gives_one_record(parsed: Any) -> None:
    records, rejected = parsed(SOURCE, OnePair("de-fr", {"de": "Ja.", "fr": "Oui."}, {"fr": "Oui.", "de": "Ja."}))
    assert len(records) == 1
    assert [(r.line, r.reason) for r in rejected] == [(2, "the same pair was read before")]


@pytest.mark.parametrize(
    ("config", "translation", "reason"),
    [
        ("de-en", None, "no translation"),
        ("de-en", {"de": "Ja."}, "the en text is empty"),
        ("de-en", {"de": " ", "en": "Yes."}, "the de text is empty"),
        ("de-en", {"de": ["Ja."], "en": "Yes."}, "the de text is empty or not a text"),
        ("en-qq", {"qq": "a", "en": "b"}, "language 'qq' has no name"),
        ("data", {"de": "a", "en": "b"}, "folder 'data' names no pair"),
    ],
)
def test_a_bad_row_is_rejected(config: str, translation: Any, reason: str, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, OnePair(config, translation))
    assert records == []
    assert rejected[0].reason.startswith(reason)


def test_names_of_languages_are_unambiguous() -> None:
    assert len(NAMES) == len(LANGUAGES) == 100


@pytest.mark.mirror
def test_all_218_real_rows_of_109_pairs_are_read(mirror_files: Any, parsed: Any) -> None:
    files, unread = mirror_files(SPEC)
    records, rejected = parsed(SOURCE, files)
    assert (len(records), len(rejected), len(unread)) == (218, 0, 0)
    pairs = {"-".join(sorted(r.sub_category.removeprefix("translation ").split("-"))) for r in records}
    assert len(pairs) == 109
