"""What each source's prompts hold, by hand and on our samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from curation.reading import OpenSource, read_passages
from curation.recipe import ThroughputConfig, TokenizerConfig, load_recipe
from curation.throughput.build import row_builder
from curation.throughput.composition import Composition, Unfit, drawn, generator
from curation.throughput.mixed import is_demonstration
from curation.throughput.rows import COMPOSERS, Refused, RowBuilder, provenance_of
from curation.throughput.shelf import Shelf
from curation.tokenizer import load_tokenizer
from sources.origins import SamplesOrigin
from sources.passages import Part, Passage
from sources.registry import THROUGHPUT

TOKENIZER = load_tokenizer(TokenizerConfig())
LENGTHS = (512, 1_000, 2_000)


def count(text: str) -> int:
    return len(TOKENIZER.encode_ordinary(text))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    origin = SamplesOrigin()
    passages = read_passages([OpenSource(s, origin.files(s.spec)) for s in THROUGHPUT], [])
    return Shelf.write(tmp_path_factory.mktemp("shelf") / "passages.bin", passages)


def builder(shelf: Shelf) -> RowBuilder:
    used = load_recipe("demo").model_copy(update={"throughput": ThroughputConfig()})
    return row_builder(shelf, provenance_of(THROUGHPUT, {}), used, TOKENIZER)


def shelf_of(tmp_path: Path, *passages: Passage) -> Shelf:
    return Shelf.write(tmp_path / "passages.bin", passages)


def rows(shelf: Shelf, source: str, n: int, most: int = 12) -> list[tuple[dict[str, Any], Composition]]:
    composer = COMPOSERS[source]
    found = []
    for target in composer.targets(shelf, n, count):
        built = builder(shelf).build("throughput_test", target, n)
        if not isinstance(built, Refused):
            found.append((built.row, composer.compose(shelf, target.src_id, n, count)))
    return found[:most]


@pytest.mark.parametrize("source", COMPOSERS)
@pytest.mark.parametrize("n", LENGTHS)
def test_heads_and_tails_stand_whole_in_the_text(source: str, n: int, samples: Shelf) -> None:
    found = rows(samples, source, n)
    assert found or source in ("writingbench", "hle"), "our samples of these two are short: see below"
    for row, composition in found:
        text = row["turns"][0]
        assert count(text) == n
        assert text.startswith(composition.head)
        assert text.endswith(composition.tail)
        body = "".join(piece.text for piece in islice(composition.pieces, 500))
        middle = text[len(composition.head) : len(text) - len(composition.tail)]
        if row["pad_tokens"] == 0:
            assert body.startswith(middle)
        assert row["template_id"] == composition.template_id


def test_every_registered_source_has_a_composer() -> None:
    assert {s.spec.name for s in THROUGHPUT} == set(COMPOSERS)
    assert all(name == composer.source for name, composer in COMPOSERS.items())


# --- high entropy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", LENGTHS)
def test_passages_of_a_book_never_overlap(n: int, samples: Shelf) -> None:
    spans: dict[str, list[tuple[int, int]]] = {}
    for row, composition in rows(samples, "gutenberg", n, most=10_000):
        number, _, start = row["src_id"].partition("/")
        length = len(row["turns"][0]) - len(composition.tail)
        assert samples.read(f"gutenberg:{number}").text[int(start) :].startswith(row["turns"][0][: length - 20])
        spans.setdefault(number, []).append((int(start), int(start) + length))
    assert len(spans) == 3
    for of_book in spans.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(sorted(of_book)))


def test_a_passage_that_would_reach_into_the_next_is_refused(tmp_path: Path) -> None:
    """Six code points a token, more than prose has: the length would need more of the book than a passage may have."""
    paragraph = "Hello" + " hello" * 60
    shelf = shelf_of(tmp_path, Passage("gutenberg", "1", "book", (paragraph + "\n\n") * 200, title="A by B"))
    (target, *_) = COMPOSERS["gutenberg"].targets(shelf, 2_000, count)
    outcome = builder(shelf).build("c", target, 2_000)
    assert isinstance(outcome, Refused)
    assert "reach into the next passage" in outcome.reason


def test_a_short_prompt_stops_inside_a_conversation_and_a_long_one_ends_with_it(samples: Shelf) -> None:
    (short, _), (long, composed) = rows(samples, "bamboo", 512)[0], rows(samples, "bamboo", 8_000)[0]
    target = samples.read(f"bamboo:{long['src_id']}")
    assert short["template_id"] == "bamboo_alone/v1"
    assert long["template_id"] == "bamboo_after_others/v1"
    assert short["record_ids"] == [f"bamboo:{short['src_id']}"]
    assert f"=== Record to be continued ===\n{target.text}\n\n[The record stops here.]" in composed.tail
    assert len(long["record_ids"]) > 1
    assert {samples.read(r).task for r in long["record_ids"]} == {target.task}
    assert long["turns"][0].count(target.text) == 1


def test_writing_requests_are_taken_from_seven_tenths_to_twice_the_length(tmp_path: Path) -> None:
    word = " essay"
    passages = [
        Passage("writingbench", str(k), "d", f"Write {k}:" + word * k, group="d")
        for k in (300, 400, 700, 990, 1_100, 1_900, 2_100)
    ]
    shelf = shelf_of(tmp_path, *passages)
    targets = [t.src_id for t in COMPOSERS["writingbench"].targets(shelf, 1_000, count)]
    assert sorted(targets, key=int) == ["700", "990", "1100", "1900"]
    with pytest.raises(Unfit, match=r"0\.7 to 2\.0 times"):
        COMPOSERS["writingbench"].compose(shelf, "300", 1_000, count)
    found = {row["src_id"]: row for row, _ in rows(shelf, "writingbench", 1_000)}
    assert set(found) == {"700", "990", "1100", "1900"}
    assert found["700"]["turns"][0].startswith(passages[2].text)
    assert found["700"]["template_id"] == "writingbench_with_reference/v1"
    assert found["1900"]["template_id"] == "writingbench_shortened/v1"


# --- mixed -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", LENGTHS)
def test_the_right_answer_is_always_whole(n: int, samples: Shelf) -> None:
    places = set()
    for row, _ in rows(samples, "stackselect", n, most=40):
        passage = samples.read(f"stackselect:{row['src_id']}")
        right = next(part.text for part in passage.parts if part.name == passage.answer)
        assert row["turns"][0].count(right) == 1
        places.add(row["turns"][0].count("\n\nA", 0, row["turns"][0].index(right)))
    assert len(places) > 1, "its place is drawn per row"


def test_a_right_answer_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    parts = (Part("A1", "short"), Part("A2", " long" * 600))
    shelf = shelf_of(tmp_path, Passage("stackselect", "1@1k", "t", group="1", title="Why?", answer="A2", parts=parts))
    (target,) = COMPOSERS["stackselect"].targets(shelf, 512, count)
    outcome = builder(shelf).build("c", target, 512)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "question, right answer and instruction alone are longer"
    assert outcome.score is not None
    assert outcome.score > 512


def test_one_question_is_one_target_with_the_fewest_answers_that_fill_the_prompt(tmp_path: Path) -> None:
    def question(size: str, answers: int) -> Passage:
        parts = tuple(Part(f"A{i}", "word " * 100) for i in range(1, answers + 1))
        return Passage("stackselect", f"7@{size}", "t", group="7", title="Why?", answer="A1", parts=parts)

    shelf = shelf_of(tmp_path, question("1k", 2), question("2k", 9), question("8k", 40))
    for n, size, preferred in ((200, "1k", True), (1_000, "2k", True), (4_000, "8k", True), (9_000, "8k", False)):
        (target,) = COMPOSERS["stackselect"].targets(shelf, n, count)
        assert (target.src_id, target.preferred) == (f"7@{size}", preferred)


def exam(size: int) -> list[Passage]:
    return [
        Passage(
            "hle",
            f"q{i}",
            f"Field{i % 2}",
            f"What is {i} plus {i}?",
            group=f"Field{i % 2}",
            answer=f"Twice.\nAnswer: {2 * i}",
        )
        for i in range(size)
    ]


def test_demonstrations_are_of_the_field_from_the_held_out_half_and_each_once(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, *exam(200))
    found = rows(shelf, "hle", 512, most=200)
    assert 60 < len(found) < 140
    firsts = set()
    for row, composition in found:
        target = shelf.read(f"hle:{row['src_id']}")
        assert not is_demonstration(target.native_id)
        assert row["turns"][0].startswith(target.text)
        others = [r for r in row["record_ids"] if r != target.record_id]
        assert len(others) > 5
        assert all(is_demonstration(r.partition(":")[2]) and shelf.read(r).group == target.group for r in others)
        pieces = list(islice(composition.pieces, 30))
        assert len({p.record_id for p in pieces}) == 30
        firsts.add(pieces[0].record_id)
    assert len(firsts) > 25, "drawn per row, not in one order for all"


def test_a_row_depends_on_its_target_and_pool_alone(tmp_path: Path) -> None:
    """No state is kept between rows: the same in another order, or alone."""
    shelf = shelf_of(tmp_path, *exam(60))
    targets = list(COMPOSERS["hle"].targets(shelf, 512, count))
    one = builder(shelf)
    forward = [one.build("c", t, 512) for t in targets]
    backward = [builder(shelf).build("c", t, 512) for t in reversed(targets)]
    assert [getattr(b, "row", b) for b in forward] == [getattr(b, "row", b) for b in reversed(backward)]


def test_draws_by_key() -> None:
    assert generator("a", "b").random() == generator("a", "b").random()
    assert generator("a", "b").random() != generator("ab").random()


def test_a_target_never_draws_itself_and_draws_every_other_once(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, *exam(30))
    order = drawn(shelf, "hle", "Field0", "q4")
    assert sorted(order) == sorted(f"hle:q{i}" for i in range(0, 30, 2) if i != 4)
    assert order != sorted(order)
    assert drawn(shelf, "hle", "Field0", "q6") != order


# --- low entropy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", LENGTHS)
def test_text_is_asked_for_in_order_and_all_four_parts_are_there(n: int, samples: Shelf) -> None:
    for row, composition in rows(samples, "textsort", n):
        text = row["turns"][0]
        passage = samples.read(f"textsort:{row['src_id']}")
        assert text.startswith(passage.before)
        assert passage.after in composition.tail
        assert "numbers, no remarks" in text
        marks = [text.index(f"\n\nPart {i}: ") for i in range(1, 5)]
        assert marks == sorted(marks)
        for i, part in enumerate(passage.parts):
            start = marks[i] + len("\n\nPart 1: ")
            assert text[start:].startswith(part.text[:40])
        order = [int(i) for i in passage.answer.split(",")]
        answer = composition.answer.split("\n\n")
        assert answer[0] == passage.parts[order[0] - 1].text.split("\n\n")[0][: len(answer[0])]


@pytest.mark.parametrize(
    ("source", "mark"), [("repobench_python", "#"), ("repobench_java", "//"), ("long_code_arena", "#")]
)
def test_code_ends_before_the_line_and_its_repository_stands_before(source: str, mark: str, samples: Shelf) -> None:
    for row, composition in rows(samples, source, 2_000):
        passage = samples.read(f"{source}:{row['src_id']}")
        text = row["turns"][0]
        assert text.startswith(f"{mark} {passage.title}, line ")
        assert text.endswith(f"Write the next line of {passage.title} and go on with the file. Only code.")
        code = (
            passage.text
            if source != "long_code_arena"
            else passage.text[: passage.text.index(composition.answer[:200])]
        )
        assert f"File to complete: {passage.title}\n{code.rstrip(chr(10))}" in text
        assert composition.answer.strip()
        assert {samples.read(r).group for r in row["record_ids"]} == {passage.group}


def test_no_file_stands_twice_in_a_prompt(samples: Shelf) -> None:
    for entry in samples.of("repobench_python"):
        pieces = COMPOSERS["repobench_python"].compose(samples, entry.native_id, 2_000, count).pieces
        names = [piece.text.split("\n")[1] for piece in pieces]
        assert len(set(names)) == len(names)


def test_a_candidate_line_too_far_down_is_refused(tmp_path: Path) -> None:
    code = "x = 1\n" * 2_000
    passage = Passage(
        "long_code_arena", "r/f.py", "python", code, group="r", title="f.py", parts=(Part("g.py", "y"),), lines=(1_900,)
    )
    shelf = shelf_of(tmp_path, passage)
    (target,) = COMPOSERS["long_code_arena"].targets(shelf, 512, count)
    outcome = builder(shelf).build("c", target, 512)
    assert isinstance(outcome, Refused)
    assert "too far down" in outcome.reason


# --- the shelf ---------------------------------------------------------------------------------------------------


def test_a_shelf_gives_back_what_was_put_on_it_whatever_the_order(tmp_path: Path) -> None:
    passages: Sequence[Passage] = exam(20)
    one = shelf_of(tmp_path, *passages)
    assert [one.read(p.record_id) for p in passages] == list(passages)
    assert list(one.entries) == sorted(p.record_id for p in passages)
    assert one.group("hle", "Field1") == tuple(sorted(p.record_id for p in passages if p.group == "Field1"))
    assert one.group("hle", "none") == ()
    with pytest.raises(KeyError):
        one.read("hle:none")


def test_of_two_passages_with_one_id_the_same_is_kept_in_any_order(tmp_path: Path) -> None:
    a, b = (Passage("hle", "q1", "t", text, answer="x") for text in ("one", "two"))
    first, second = shelf_of(tmp_path, a, b).read("hle:q1"), shelf_of(tmp_path, b, a).read("hle:q1")
    assert first == second
    assert shelf_of(tmp_path, a, b).duplicates == ("hle:q1",)
    assert shelf_of(tmp_path, a).duplicates == ()
