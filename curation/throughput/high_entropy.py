"""Open-ended prompts: conversations and books to go on with, and writing requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from curation.throughput.composition import Composition, CountTokens, Piece, Target, Unfit, drawn
from curation.throughput.shelf import Shelf
from sources.passages import Passage

FRONT_MATTER_CHARS = 4_000
"""Code points at the beginning of a book that are mostly title page and contents."""

CHARS_PER_TOKEN = 6.5
"""Far more than a token of English prose covers on average: the distance between two passages of a book."""

LATE_SHARE = 8
"""A passage begins at most a stride over this late, at a paragraph, and ends as much before the next may begin."""

MIN_RATIO, MAX_RATIO = 0.7, 2.0
"""Length of a writing request over that of the prompt, in tokens, as the paper has it."""

_RECORD_TAIL = """

[The record stops here.]

Finish the line in which it stops, say who spoke as the record does, and carry the conversation on with further turns \
of the same people. Do not comment on it."""


@dataclass(frozen=True, slots=True)
class Bamboo:
    """Conversations: cut and to be continued; whole and behind others of their kind where the prompt is longer."""

    source: str = "bamboo"
    room_tokens: int = 300  # for our words and a piece of another conversation

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield every conversation."""
        for entry in shelf.of(self.source):
            yield Target(self.source, entry.native_id, entry.record_id)

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return the conversation to continue, after others if it leaves room for them."""
        passage = shelf.read(f"{self.source}:{src_id}")
        if count(passage.text) > num_tokens - self.room_tokens:
            return self._alone(shelf, passage)
        opening = " ".join(passage.text.split())[:160]
        return Composition(
            head=f"{opening} …\n\nSo begins the last of these records, which is to be continued.",
            pieces=self._others(shelf, passage),
            tail=f"\n\n=== Record to be continued ===\n{passage.text}{_RECORD_TAIL}",
            sub_category=passage.task,
            template_id="bamboo_after_others/v1",
            answer=passage.answer,
        )

    def _alone(self, shelf: Shelf, passage: Passage) -> Composition:
        def pieces() -> Iterator[Piece]:
            yield Piece(passage.text, passage.record_id)
            yield from self._others(shelf, passage, opening=f"{passage.answer}")

        return Composition(
            head="",
            pieces=pieces(),
            tail=_RECORD_TAIL,
            sub_category=passage.task,
            template_id="bamboo_alone/v1",
            continues=True,
        )

    def _others(self, shelf: Shelf, passage: Passage, opening: str = "") -> Iterator[Piece]:
        for i, other_id in enumerate(drawn(shelf, self.source, passage.group, passage.native_id), start=1):
            other = shelf.read(other_id)
            yield Piece(f"{opening}\n\n=== Record {i} ===\n{other.text}{other.answer}", other_id)
            opening = ""


@dataclass(frozen=True, slots=True)
class Gutenberg:
    """Passages of books, to be continued; those of one length never overlap."""

    source: str = "gutenberg"

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield the passages of every book, `src_id` = book/first code point."""
        stride = self.stride_chars(num_tokens)
        for entry in shelf.of(self.source):
            text = shelf.read(entry.record_id).text
            for near in range(FRONT_MATTER_CHARS, len(text) - stride, stride):
                start = _paragraph(text, near)
                if start < near + stride // LATE_SHARE:
                    src_id = f"{entry.native_id}/{start:07d}"
                    yield Target(self.source, src_id, f"{self.source}:{src_id}")

    def stride_chars(self, num_tokens: int) -> int:
        """Return the code points from one passage to the next."""
        return int(num_tokens * CHARS_PER_TOKEN)

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return the passage that begins at the code point of `src_id`."""
        number, _, start = src_id.partition("/")
        book = shelf.read(f"{self.source}:{number}")
        first = int(start)
        stride = self.stride_chars(num_tokens)
        return Composition(
            head="",
            pieces=iter([Piece(book.text[first : first + stride], f"{self.source}:{src_id}")]),
            tail=f"\n\n[These pages are from {book.title}.]\n\nGo on from the very word at which they stop, in the "
            "same voice, and write the pages that follow. Do not comment on them.",
            sub_category=book.task,
            template_id="gutenberg/v1",
            continues=True,
            max_body_chars=stride * (LATE_SHARE - 1) // LATE_SHARE,
        )


@dataclass(frozen=True, slots=True)
class WritingBench:
    """Writing requests of about the length: the longer lose words in their middle, the shorter get a reference."""

    source: str = "writingbench"

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield the requests that are 0.7 to 2 times as long as the prompt."""
        for entry in shelf.of(self.source):
            if entry.text_chars >= MIN_RATIO * num_tokens:  # a token is at least about a code point of English
                tokens = count(shelf.read(entry.record_id).text)
                if MIN_RATIO * num_tokens <= tokens <= MAX_RATIO * num_tokens:
                    yield Target(self.source, entry.native_id, entry.record_id)

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return the request, its beginning and end whole."""
        passage = shelf.read(f"{self.source}:{src_id}")
        tokens = count(passage.text)
        if not MIN_RATIO * num_tokens <= tokens <= MAX_RATIO * num_tokens:
            raise Unfit(f"its tokens are not {MIN_RATIO} to {MAX_RATIO} times the length", tokens)
        whole = Composition(
            head=f"{passage.text}\n\nFor orientation only, other requests from the same field:",
            pieces=self._others(shelf, passage),
            tail="\n\nNow write what the first of these requests asks for, in full.",
            sub_category=passage.task,
            template_id="writingbench_with_reference/v1",
        )
        if tokens + 40 < num_tokens:
            return whole
        first, last = _thirds(passage.text)
        return replace(
            whole,
            head=passage.text[:first],
            pieces=iter([Piece(passage.text[first:last], passage.record_id)]),
            tail=f" […] {passage.text[last:]}\n\nWrite what is asked for, in full.",
            template_id="writingbench_shortened/v1",
        )

    def _others(self, shelf: Shelf, passage: Passage) -> Iterator[Piece]:
        for other_id in drawn(shelf, self.source, passage.group, passage.native_id):
            yield Piece(f"\n\n* {shelf.read(other_id).text}", other_id)


def _paragraph(text: str, near: int) -> int:
    """Return where the first paragraph begins at or after a place; the end of the text if there is none."""
    found = re.compile(r"\n\n+(?=\S)").search(text, near)
    return len(text) if found is None else found.end()


def _thirds(text: str) -> tuple[int, int]:
    """Return the ends of words nearest after a fifth and after four fifths of a text."""
    first = text.find(" ", len(text) // 5)
    last = text.rfind(" ", 0, len(text) * 4 // 5)
    return (first, last) if 0 <= first < last else (len(text) // 5, len(text) * 4 // 5)
