from __future__ import annotations

from pathlib import Path

import pytest

from sources.adapters import gutenberg
from sources.base import Rejected, Row
from sources.cache import SourceCache
from sources.fetch import HubOrigin
from sources.hosts import file_url
from sources.lock import Lock
from sources.passages import Passage

START = "*** START OF THIS PROJECT GUTENBERG EBOOK {} ***"
END = "*** END OF THIS PROJECT GUTENBERG EBOOK {} ***"


class OneFile:
    def __init__(self, file: str, text: str) -> None:
        self.row = Row({"text": text}, file, 1)

    def rows(self, key: str) -> list[Row]:
        return [self.row]


def read(file: str, text: str) -> Passage | Rejected:
    (item,) = gutenberg.parse(OneFile(file, text))  # type: ignore[arg-type]
    return item


def book(title: str, body: str, note: str = "Header.") -> str:
    return f"{note}\n\n{START.format(title)}\n\n{body}\n\n{END.format(title)}\n\nLicence of the project."


@pytest.mark.parametrize("file", ["84.txt", "84-0.txt", "old/84-8.txt"])
def test_a_book_is_what_stands_between_the_marks(file: str) -> None:
    passage = read(file, book("FRANKENSTEIN", "You will rejoice.\r\n\r\nNext."))
    assert isinstance(passage, Passage)
    assert (passage.native_id, passage.text) == ("84", "You will rejoice.\n\nNext.")
    assert passage.title == "Frankenstein by Mary Wollstonecraft Shelley"


@pytest.mark.parametrize("title", ["Moby Dick; Or, The Whale", "MOBY DICK"])
def test_a_title_matches_whatever_its_case_and_subtitle(title: str) -> None:
    assert isinstance(read("2701.txt", book(title, "Call me.")), Passage)


@pytest.mark.parametrize(
    ("file", "text", "word"),
    [
        ("84.txt", book("Dracula", "x"), "the list says 'Frankenstein'"),
        ("7.txt", book("Frankenstein", "x"), "no number"),
        ("readme.txt", book("Frankenstein", "x"), "no number"),
        ("84.txt", "Frankenstein without marks", "that mark"),
        ("84.txt", END.format("F") + START.format("FRANKENSTEIN"), "that mark"),
        ("84.txt", book("Frankenstein", " "), "empty"),
        ("84.txt", book("Frankenstein", "x", "This is a COPYRIGHTED Project Gutenberg eBook."), "copyright"),
    ],
)
def test_other_files_are_rejected(file: str, text: str, word: str) -> None:
    item = read(file, text)
    assert isinstance(item, Rejected)
    assert word in item.reason


def test_every_book_has_an_address_and_a_name_that_the_pattern_matches() -> None:
    spec = gutenberg.SPEC.files["books"]
    assert spec.urls["1342.txt"] == "https://www.gutenberg.org/cache/epub/1342/pg1342.txt"
    assert all(spec.matches(path) for path in spec.urls)


def test_a_plain_web_server_is_asked_for_the_listed_books(tmp_path: Path) -> None:
    origin = HubOrigin(cache=SourceCache(tmp_path), lock=Lock())
    wanted, absent = origin.plan(gutenberg.SPEC, None)
    assert {w.path for w in wanted} == set(gutenberg.SPEC.files["books"].urls)
    assert len(wanted) >= 150
    assert absent == []
    assert file_url(gutenberg.SPEC, "", "84.txt") == "https://www.gutenberg.org/cache/epub/84/pg84.txt"
