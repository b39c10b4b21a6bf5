"""Project Gutenberg: English books in the public domain, each a passage.

A file is the plain text of a book between two marked lines, with the project's own header and licence around it.

Rules
-----
- The number of the book is the digits with which the file's name begins. Only books of our list are read, and only if
  the header names the listed title: articles, case and punctuation aside.
- The header and the licence are cut off at the marked lines. Lines keep the breaks of the file; CRLF becomes LF.
- A file that says it is under copyright is rejected.
- Passages are cut from it by curation, per config and without overlap; their ids are the book's and the first code
  point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sources.base import Files, FileSpec, Rejected, Row, SourceSpec
from sources.gutenberg_books import BOOKS
from sources.licenses import PUBLIC_DOMAIN
from sources.passages import Passage

_URL = "https://www.gutenberg.org/cache/epub/{number}/pg{number}.txt"

SPEC = SourceSpec(
    name="gutenberg",
    title="Project Gutenberg",
    repo="https://www.gutenberg.org",
    host="web",
    mirror="_web/gutenberg",
    license=PUBLIC_DOMAIN,
    files={
        "books": FileSpec(
            "*.txt", "text", {"text": "string"}, urls={f"{n}.txt": _URL.format(number=n) for n, _, _ in BOOKS}
        )
    },
    feeds=("high_entropy",),
    citation="""@misc{gutenberg,
  title        = {Project Gutenberg},
  howpublished = {\\url{https://www.gutenberg.org}}
}""",
)

_BY_NUMBER = {number: (author, title) for number, author, title in BOOKS}
_START = re.compile(r"\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG EBOOK (.*?)\*\*\*", re.DOTALL)
_END = re.compile(r"\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG EBOOK")


def parse(files: Files) -> Iterator[Passage | Rejected]:
    """Yield the books of the list that are there."""
    for row in files.rows("books"):
        yield _passage(row)


def _passage(row: Row) -> Passage | Rejected:
    digits = re.match(r"\d+", row.file.rpartition("/")[2])
    if digits is None or int(digits[0]) not in _BY_NUMBER:
        return row.reject("its name begins with no number of sources/gutenberg_books.py")
    author, title = _BY_NUMBER[int(digits[0])]
    text = row["text"].replace("\r\n", "\n")
    start, end = _START.search(text), _END.search(text)
    if start is None or end is None or end.start() < start.end():
        return row.reject("the lines that mark the beginning and the end of the book are missing")
    if _plain(title) not in _plain(start[1]):
        return row.reject(f"it is {' '.join(start[1].split())!r}, the list says {title!r}")
    if re.search(r"(?i)this is a copyrighted project gutenberg", text[: start.start()]):
        return row.reject("it is under copyright")
    body = text[start.end() : end.start()].strip()
    if not body:
        return row.reject("the book is empty")
    return Passage(SPEC.name, digits[0], "book", body, title=f"{title} by {author}")


def _plain(title: str) -> str:
    """Return a title's words in lower case without leading article, for comparison."""
    words = re.findall(r"[^\W_]+", title.lower().replace("'", "").replace("’", ""))
    return " ".join(words[1:] if words and words[0] in {"a", "an", "the"} else words)
