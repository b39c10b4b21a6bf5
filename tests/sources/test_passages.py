"""The contract that every source of the throughput split keeps, found over the registry."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.base import TIERS, Rejected
from sources.gutenberg_books import BOOKS
from sources.passages import Part, Passage, PassageSource
from sources.registry import QUALITATIVE, THROUGHPUT
from sources.repositories import PERMISSIVE

ALL = [pytest.param(source, id=source.spec.name) for source in THROUGHPUT]
HOSTILE: dict[str, tuple[Any, ...]] = {
    "string": ("", " \n", "\x00", "\ud800", "{braces} {0} %s", "x" * 5000),
    "any": (None, "", 5, [], {}, [None], ["x"], "[4, 4, 1, 2]"),
    "struct": ({}, {"filename": None}, {"filename": ["a"], "content": []}, {"infile": ["x"], "inproject": None}),
    "list<string>": ([], [""], ["one"]),
    "list<struct>": ([], [{}], [{"path": None, "snippet": 5}]),
}


def read(source: PassageSource, files: Any) -> tuple[list[Passage], list[Rejected]]:
    items = list(source.parse(files))
    return [i for i in items if isinstance(i, Passage)], [i for i in items if isinstance(i, Rejected)]


def test_the_eight_sources_of_table_5_feed_their_tiers() -> None:
    assert {s.spec.name: s.tier for s in THROUGHPUT} == {
        "bamboo": "high_entropy",
        "gutenberg": "high_entropy",
        "writingbench": "high_entropy",
        "stackselect": "mixed",
        "hle": "mixed",
        "long_code_arena": "low_entropy",
        "repobench_python": "low_entropy",
        "repobench_java": "low_entropy",
        "textsort": "low_entropy",
    }
    for source in THROUGHPUT:
        assert [tier for tier in TIERS if tier in source.spec.feeds] == [source.tier]


def test_a_source_of_both_splits_has_one_spec() -> None:
    qualitative = {s.spec.name: s.spec for s in QUALITATIVE}
    both = [s for s in THROUGHPUT if s.spec.name in qualitative]
    assert [s.spec.name for s in both] == ["writingbench", "hle"]
    assert all(s.spec is qualitative[s.spec.name] for s in both)


def test_which_texts_are_published() -> None:
    published = {s.spec.name for s in THROUGHPUT if s.spec.may_publish}
    assert published == {"gutenberg", "writingbench", "long_code_arena", "repobench_python", "repobench_java"}


def test_there_are_150_books_or_more_each_once() -> None:
    assert len(BOOKS) >= 150
    assert len({number for number, _, _ in BOOKS}) == len({(a, t) for _, a, t in BOOKS}) == len(BOOKS)


@pytest.mark.parametrize("source", ALL)
def test_samples_hold_passages_and_odd_rows(source: PassageSource, sample_files: Any) -> None:
    files, unread = sample_files(source.spec)
    assert all(files.by_key.values()), "a file of the source has no sample"
    passages, rejected = read(source, files)
    assert len(passages) >= (3 if source.spec.name == "gutenberg" else 8)
    assert rejected or unread
    _check(source, passages)


@pytest.mark.parametrize("source", ALL)
def test_the_order_of_rows_does_not_matter(source: PassageSource, sample_files: Any) -> None:
    files, _ = sample_files(source.spec)
    passages, rejected = read(source, files)
    for seed in range(3):
        again, rejected_again = read(source, files.shuffled(seed))
        assert sorted(again, key=lambda p: p.record_id) == sorted(passages, key=lambda p: p.record_id)
        assert Counter(r.reason for r in rejected_again) == Counter(r.reason for r in rejected)


@pytest.mark.parametrize("source", ALL)
def test_one_careless_row_raises_nothing_and_costs_nobody_else(source: PassageSource, sample_files: Any) -> None:
    files, _ = sample_files(source.spec)
    whole = len(read(source, files)[0])
    for key, spec in source.spec.files.items():
        for column, kind in spec.columns.items():
            values = [*HOSTILE.get(kind.removesuffix("?"), ()), *([None] if kind.endswith("?") else [])]
            for value in values:
                passages, _ = read(source, files.replaced(key, 0, {column: value}))
                assert len(passages) >= whole - 1, (key, column, value)
                assert all(p.native_id and (p.text or p.parts) for p in passages)


@pytest.mark.mirror
@pytest.mark.parametrize("source", [p for p in ALL if p.id != "repobench_java"])
def test_the_mirror_gives_passages(source: PassageSource, mirror_files: Any) -> None:
    files, _ = mirror_files(source.spec)
    passages, _ = read(source, files)
    assert passages
    _check(source, passages)


def _check(source: PassageSource, passages: list[Passage]) -> None:
    assert [i for i, n in Counter(p.record_id for p in passages).items() if n > 1] == []
    for p in passages:
        assert p.source == source.spec.name
        assert p.task
        assert all(isinstance(part, Part) and part.text.strip() for part in p.parts)
        assert p.license == "" or p.license in PERMISSIVE
        assert all(0 < line <= p.text.count("\n") for line in p.lines)


def test_a_passage_needs_an_id_and_something_to_read() -> None:
    with pytest.raises(ValueError, match="native id"):
        Passage("s", "", "t", "text")
    with pytest.raises(ValueError, match=r"s:1: a passage needs text or parts"):
        Passage("s", "1", "t")
    assert Passage("s", "1", "t", "ab", parts=(Part("p", "cde"),)).num_chars == 5


def test_a_tier_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="tier"):
        PassageSource(THROUGHPUT[0].spec, "medium", THROUGHPUT[0].parse)
