"""Prompts that mix copying and reasoning: a choice among answers, and questions behind solved ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from curation.throughput.composition import Composition, CountTokens, Piece, Target, Unfit, drawn, generator
from curation.throughput.shelf import Entry, Shelf
from sources.base import seeded_int
from sources.passages import Passage


@dataclass(frozen=True, slots=True)
class StackSelect:
    """A question and candidate answers, the right one always whole among them, at a place drawn per row."""

    source: str = "stackselect"
    slack_tokens: int = 40  # for marks, joins and a piece of the answer that is cut

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield one target a question: with the fewest answers that fill the prompt, or else with the most."""
        questions: dict[str, list[Entry]] = {}
        for entry in shelf.of(self.source):
            questions.setdefault(entry.group, []).append(entry)
        for question in sorted(questions):
            by_size = sorted(questions[question], key=lambda e: (e.parts_chars, e.record_id))
            filling = [e for e in by_size if e.parts_chars >= 4 * num_tokens]
            best = filling[0] if filling else by_size[-1]
            yield Target(self.source, best.native_id, f"{self.source}:{question}", preferred=bool(filling))

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return question, answers in an order drawn for this row, and the instruction."""
        passage = shelf.read(f"{self.source}:{src_id}")
        head = f"{passage.title}\n\nThat was asked on a forum. These answers came in."
        tail = (
            "\n\n[No more answers.]\n\nWhich answer helps the one who asked the most? Go through the answers in their "
            "order, give a reason for or against each, and end with the label of the one that you choose."
        )
        right = next(part.text for part in passage.parts if part.name == passage.answer)
        room = num_tokens - self.slack_tokens - count(head) - count(tail) - count(right)
        if room < 0:
            raise Unfit("question, right answer and instruction alone are longer", num_tokens - room)
        before = self._place(shelf, passage, room, count)
        keep = sum(len(piece.text) for piece in self._pieces(shelf, passage, before)[: before + 1])
        return Composition(
            head=head,
            pieces=self._all_pieces(shelf, passage, before),
            tail=tail,
            sub_category=passage.task,
            template_id="stackselect/v1",
            keep_chars=keep,
        )

    def _place(self, shelf: Shelf, passage: Passage, room: int, count: CountTokens) -> int:
        """Draw how many wrong answers stand before the right one, of those that leave it whole."""
        most = 0
        for i, text in enumerate(self._wrong(passage)):
            # A label and two line breaks are at most eight tokens; counts of parts add up to no less than the whole's.
            room -= count(_labelled(i + 1, text)) + 1
            if room < 0:
                break
            most = i + 1
        return int(generator("place", self.source, passage.native_id).integers(0, most + 1))

    def _wrong(self, passage: Passage) -> list[str]:
        wrong = [part.text for part in passage.parts if part.name != passage.answer]
        order = generator("answers", self.source, passage.native_id).permutation(len(wrong))
        return [wrong[i] for i in order]

    def _pieces(self, shelf: Shelf, passage: Passage, before: int) -> list[Piece]:
        right = next(part.text for part in passage.parts if part.name == passage.answer)
        texts = self._wrong(passage)
        texts.insert(before, right)
        return [Piece(_labelled(i, text), passage.record_id) for i, text in enumerate(texts, start=1)]

    def _all_pieces(self, shelf: Shelf, passage: Passage, before: int) -> Iterator[Piece]:
        own = self._pieces(shelf, passage, before)
        yield from own
        number = len(own)
        for other_id in self._other_questions(shelf, passage):
            for part in shelf.read(other_id).parts:
                number += 1
                yield Piece(_labelled(number, part.text), other_id)

    def _other_questions(self, shelf: Shelf, passage: Passage) -> Iterator[str]:
        """Yield one record of each other question, in an order drawn for this row."""
        first = {entry.group: entry.record_id for entry in reversed(shelf.of(self.source))}
        others = sorted(record_id for group, record_id in first.items() if group != passage.group)
        for i in generator("others", self.source, passage.native_id).permutation(len(others)):
            yield others[i]


@dataclass(frozen=True, slots=True)
class FewShot:
    """Exam questions behind solved ones of the same subject; half of the questions are kept for demonstrations."""

    source: str = "hle"

    def targets(self, shelf: Shelf, num_tokens: int, count: CountTokens) -> Iterator[Target]:
        """Yield the questions of the other half."""
        for entry in shelf.of(self.source):
            if not is_demonstration(entry.native_id):
                yield Target(self.source, entry.native_id, entry.record_id)

    def compose(self, shelf: Shelf, src_id: str, num_tokens: int, count: CountTokens) -> Composition:
        """Return the question, demonstrations drawn for this row without repetition, and the instruction."""
        passage = shelf.read(f"{self.source}:{src_id}")
        return Composition(
            head=f"{passage.text}\n\nThat question is yours to solve. First, solved ones of the field {passage.group}:",
            pieces=self._demonstrations(shelf, passage),
            tail="\n\n[No more examples.]\n\nNow solve the question with which this began. Reason step by step, as the "
            "examples do, and close with the answer on a line of its own.",
            sub_category=passage.task,
            template_id="hle_few_shot/v1",
            answer=passage.answer,
        )

    def _demonstrations(self, shelf: Shelf, passage: Passage) -> Iterator[Piece]:
        for other_id in drawn(shelf, self.source, passage.group, passage.native_id):
            if is_demonstration(other_id.partition(":")[2]):
                other = shelf.read(other_id)
                yield Piece(f"\n\nQuestion: {other.text}\nSolution: {other.answer}", other_id)


def is_demonstration(native_id: str) -> bool:
    """Tell whether a question belongs to the half from which demonstrations are drawn, by its id alone."""
    return seeded_int(2, "demonstration", native_id) == 0


def _labelled(number: int, text: str) -> str:
    return f"\n\nA{number}: {text}"
