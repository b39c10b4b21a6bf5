"""Prompts whose answers are near to what they hold: lines of code in their repository, and text to put in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from curation.throughput.composition import (
    CONTINUATION_CHARS,
    Composition,
    CountTokens,
    Piece,
    Target,
    Unfit,
    drawn,
    generator,
)
from curation.throughput.shelf import Shelf
from sources.passages import Part, Passage

TAIL_SHARE = 0.6
"""Most of a prompt that the file to complete may take, estimated; the rest is for its repository."""


@dataclass(frozen=True, slots=True)
class CodeCompletion:
    """A file up to a line, behind other files of its repository."""

    source: str
    comment: str  # how a line comment begins

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield every file to complete; those that are long for the length come last."""
        for entry in shelf.of(self.source):
            yield Target(
                self.source,
                entry.native_id,
                entry.record_id,
                preferred=entry.text_chars < 3 * TAIL_SHARE * num_tokens and entry.parts_chars > 3 * num_tokens,
            )

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return path, repository, the file up to the line, and the instruction."""
        passage = shelf.read(f"{self.source}:{src_id}")
        code, answer = self._split(passage, num_tokens)
        c = self.comment
        return Composition(
            head=f"{c} {passage.title}, line {code.count(chr(10)) + 1}\n{c} in {passage.group}, is to be written.\n",
            pieces=self._files(shelf, passage),
            tail=f"\n{c} [The context ends.]\n\n{c} File to complete: {passage.title}\n{code}\n\n"
            f"{c} Write the next line of {passage.title} and go on with the file. Only code.",
            sub_category=passage.task,
            template_id=f"{self.source}/v1",
            license=passage.license,
            answer=answer,
        )

    def _split(self, passage: Passage, num_tokens: int) -> tuple[str, str]:
        """Return the code before the line to complete, and what follows in the file."""
        if not passage.lines:
            return passage.text, passage.answer[:CONTINUATION_CHARS]
        lines = passage.text.split("\n")
        ends = {line: sum(len(text) + 1 for text in lines[:line]) for line in passage.lines}
        near = [line for line in passage.lines if ends[line] < 3 * TAIL_SHARE * num_tokens]
        if not near:
            raise Unfit("every candidate line stands too far down its file")
        line = near[generator("line", self.source, passage.native_id, str(num_tokens)).integers(0, len(near))]
        return "\n".join(lines[:line]), "\n".join(lines[line:])[:CONTINUATION_CHARS]

    def _files(self, shelf: Shelf, passage: Passage) -> Iterator[Piece]:
        """Yield its own context, then files of the repository that other records complete; each path once."""
        seen = {passage.title}
        own = list(passage.parts)
        for i in (
            generator("files", self.source, passage.native_id).permutation(len(own))
            if passage.lines
            else range(len(own))
        ):
            seen.add(own[i].name)
            yield self._piece(own[i], passage.record_id)
        for other_id in drawn(shelf, self.source, passage.group, passage.native_id):
            other = shelf.read(other_id)
            for part in (Part(other.title, other.text), *other.parts):
                if part.name not in seen:
                    seen.add(part.name)
                    yield self._piece(part, other_id)

    def _piece(self, part: Part, record_id: str) -> Piece:
        return Piece(f"\n{self.comment} {part.name}\n{part.text.rstrip()}\n", record_id)


@dataclass(frozen=True, slots=True)
class TextSort:
    """Four segments of a book in a wrong order, each shortened alike; their text is asked for, not their numbers."""

    source: str = "textsort"
    spare_share: float = 0.06  # of the last segment's share, so that the cut finds text to end in

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield every record; first those whose segments are a little to somewhat longer than the prompt."""
        for entry in shelf.of(self.source):
            preferred = 4 * num_tokens <= entry.parts_chars <= 12 * num_tokens
            yield Target(self.source, entry.native_id, entry.record_id, preferred)

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return the segments as shown: the first three shortened, the last as the body."""
        passage = shelf.read(f"{self.source}:{src_id}")
        before = f"{passage.before}\n\n[Four parts of what follows, not in their order:]"
        after = (
            f"\n\n[What comes after them:]\n\n{passage.after}\n\n[End.]\n\nPut the four parts into the book's order. "
            "Write out the full text of each, first to last, word by word as it stands above; no numbers, no remarks."
        )
        room = num_tokens - count(before) - count(after) - 24  # the labels of the parts
        segments = [part.text for part in passage.parts]
        whole = sum(count(text) for text in segments)
        share = room / whole
        if room < 80 or share > 1 - self.spare_share / 4:
            raise Unfit("its segments leave nothing to shorten" if room >= 80 else "no room for its segments", whole)
        shown = [_shortened(text, share) for text in segments[:3]]
        labelled = "".join(f"\n\nPart {i}: {text}" for i, text in enumerate(shown, start=1))
        texts = [*shown, segments[3][: int(len(segments[3]) * share)]]
        return Composition(
            head=f"{before}{labelled}\n\nPart 4: ",
            pieces=iter([Piece(segments[3], passage.record_id)]),
            tail=after,
            sub_category=passage.task,
            template_id="textsort/v1",
            answer="\n\n".join(texts[int(i) - 1] for i in passage.answer.split(",")),
            keep_chars=40,
        )


def _shortened(text: str, share: float) -> str:
    """Return a share of a text from its beginning, up to the end of a word."""
    end = int(len(text) * share)
    space = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))
    return text[: space if space > end // 2 else end]
