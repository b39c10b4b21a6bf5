"""The contract that every source keeps, found over the registry: a new source is tested by being registered."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sources.adapters
from sources.base import CATEGORIES, TIERS, Record, Source
from sources.registry import QUALITATIVE, REFERENCE, SOURCES, THROUGHPUT

EVERY = [pytest.param(source, id=name) for name, source in SOURCES.items()]
ALL = [pytest.param(source, id=source.spec.name) for source in (*QUALITATIVE, *REFERENCE)]
COLUMN_TYPE = re.compile(r"(string|int64|float64|bool|struct|any|list<(string|int64|struct)>)\??")
BCP_47 = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|\d{3}))?")
ENTRY = re.compile(r"@[a-z]+\{[^,\s]+,")

# What a column of each type may hold when a source is careless: its reader lets all of these through.
HOSTILE: dict[str, tuple[Any, ...]] = {
    "string": ("", " \n", "\x00", "\ud800", "{braces} {0} %s", "x" * 5000),
    "int64": (0, -1, 2**63 - 1),
    "float64": (0.0, -1.5),
    "bool": (True, False),
    "struct": ({}, {"": None}, {"unknown": [1, {"deep": None}]}),
    "list<string>": ([], [""], ["one"], ["a"] * 40),
    "list<int64>": ([], [0]),
    "list<struct>": ([], [{}], [{"role": None, "content": 5, "user": ["a"], "name": {}}]),
}
NESTED: tuple[Any, ...] = (None, "", 5, [], {}, ["x", None], {"x": None})


def test_every_adapter_is_registered_once_under_the_name_of_its_module() -> None:
    modules = {p.stem for p in Path(sources.adapters.__path__[0]).glob("*.py")} - {"__init__"}
    assert set(SOURCES) == modules
    assert {s.spec.name for s in (*QUALITATIVE, *REFERENCE, *THROUGHPUT)} == set(SOURCES)
    for name, source in SOURCES.items():
        assert source.spec.name == name
        assert source.parse.__module__ == f"sources.adapters.{name}"


def test_there_are_eighteen_sources_of_candidates_and_every_category_is_fed() -> None:
    assert len(QUALITATIVE) == 18
    assert {c for s in QUALITATIVE for c in s.spec.feeds if c not in TIERS} == set(CATEGORIES)


def test_categories_are_fed_as_in_table_4_of_the_paper() -> None:
    fed = {c: sorted(s.spec.name for s in QUALITATIVE if c in s.spec.feeds) for c in CATEGORIES}
    assert fed == {
        "coding": ["code_contests", "humanevalpack", "livecodebench", "mt_bench"],
        "humanities": ["hle", "mt_bench"],
        "math": ["gsm8k", "hle", "mt_bench"],
        "multilingual": ["mcif", "mmath", "opus_100"],
        "qa": ["natural_questions"],
        "rag": ["chatrag_bench", "mcif", "mt_bench", "natural_questions"],
        "reasoning": ["mmlu_pro", "mt_bench", "mt_bench_101"],
        "roleplay": ["coser", "mt_bench", "rolebench"],
        "stem": ["hle", "mt_bench"],
        "summarization": ["cnn_dailymail"],
        "writing": ["creative_writing", "mt_bench", "writingbench"],
    }


def test_importing_the_registry_loads_nothing_heavy() -> None:
    heavy = ("numpy", "pyarrow", "datasets", "huggingface_hub", "click", "pydantic")
    code = f"import sys, sources.registry; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("source", EVERY)
def test_facts_are_whole(source: Source) -> None:
    spec = source.spec
    assert spec.title
    assert set(spec.feeds) <= {*CATEGORIES, *TIERS, "spec_bench"}
    assert spec.feeds
    assert ENTRY.match(spec.citation), "one BibTeX entry"
    assert spec.citation.count("{") == spec.citation.count("}")
    assert len(re.findall(r"^@", spec.citation, re.MULTILINE)) == 1
    assert spec.publish_reason.endswith(".")
    assert sys.modules[source.parse.__module__].__doc__, "the module documents the source and its rules"
    for file in spec.files.values():
        assert all(COLUMN_TYPE.fullmatch(kind) for kind in file.columns.values())
        assert not file.path.startswith("/")
        assert bool(file.row_tag) == (file.format == "xml")


@pytest.mark.parametrize("source", EVERY)
def test_a_gated_source_is_never_published(source: Source) -> None:
    if source.spec.gated or source.spec.withheld:
        assert not source.spec.may_publish


@pytest.mark.parametrize("source", ALL)
def test_samples_hold_eight_records_and_odd_rows(source: Source, sample_files: Any, parsed: Any) -> None:
    files, unread = sample_files(source.spec)
    assert all(files.by_key.values()), "a file of the source has no sample"
    records, rejected = parsed(source, files)
    assert len(records) >= 8
    assert rejected or unread
    assert all(r.reason and r.line >= 1 and r.file for r in (*rejected, *unread))


@pytest.mark.parametrize("source", ALL)
def test_sample_records_keep_the_contract(source: Source, sample_files: Any, parsed: Any) -> None:
    records, _ = parsed(source, sample_files(source.spec)[0])
    _check_records(source, records)


@pytest.mark.parametrize("source", ALL)
def test_the_order_of_rows_does_not_matter(source: Source, sample_files: Any, parsed: Any) -> None:
    files, _ = sample_files(source.spec)
    _check_order(source, files, parsed, seeds=range(5))


@pytest.mark.parametrize("source", ALL)
def test_one_careless_row_raises_nothing_and_costs_nobody_else(source: Source, sample_files: Any, parsed: Any) -> None:
    files, _ = sample_files(source.spec)
    whole = len(parsed(source, files)[0])
    for key, index, column, value in _hostile_cells(source, files):
        changed = files.replaced(key, index, {column: value})
        records, _ = parsed(source, changed)
        assert len(records) >= whole // 2, (key, index, column, value)
        assert all(turn.strip() for r in records for turn in r.turns), (key, index, column, value)
        assert all(r.text.strip() and r.native_id.strip() for r in records), (key, index, column, value)


def test_ids_published_from_one_repository_never_meet(sample_files: Any, parsed: Any) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for source in QUALITATIVE:
        records, _ = parsed(source, sample_files(source.spec)[0])
        seen.update((source.spec.source, r.native_id) for r in records)
    assert [pair for pair, n in seen.items() if n > 1] == []


@pytest.mark.parametrize("category", CATEGORIES)
def test_samples_hold_a_dozen_unlike_candidates_of_each_category(category: str, sample_files: Any, parsed: Any) -> None:
    texts = sorted(
        r.text
        for source in QUALITATIVE
        if category in source.spec.feeds
        for r in parsed(source, sample_files(source.spec)[0])[0]
        if r.category == category
    )
    kept: list[set[str]] = []
    for text in texts:
        shingles = _shingles(text)
        if all(_jaccard(shingles, other) < 0.7 for other in kept):
            kept.append(shingles)
    assert len(kept) >= 12, f"{len(kept)} of {len(texts)}"


@pytest.mark.mirror
@pytest.mark.parametrize("source", ALL)
def test_mirror_records_keep_the_contract(source: Source, mirror_files: Any, parsed: Any) -> None:
    records, _ = parsed(source, mirror_files(source.spec)[0])
    assert records
    _check_records(source, records)


@pytest.mark.mirror
@pytest.mark.parametrize("source", ALL)
def test_the_order_of_real_rows_does_not_matter(source: Source, mirror_files: Any, parsed: Any) -> None:
    _check_order(source, mirror_files(source.spec)[0], parsed, seeds=[1])


def _check_records(source: Source, records: list[Record]) -> None:
    spec = source.spec
    assert [i for i, n in Counter(r.native_id for r in records).items() if n > 1] == []
    members = Counter(m for r in records for m in r.record_ids)
    assert [m for m, n in members.items() if n > 1] == [], "a source's record makes at most one of ours"
    theirs = spec.feeds if spec.name != "spec_bench" else tuple(r.category for r in records)
    for r in records:
        assert r.source == spec.name
        assert r.category in theirs
        assert r.text.strip()
        assert all(turn.strip() for turn in r.turns)
        assert r.language == "" or BCP_47.fullmatch(r.language), r.language
        assert r.difficulty == "" or r.category in ("coding", "humanities", "math", "stem", "math_reasoning")
        if r.template_id:
            assert re.fullmatch(rf"{spec.name}/v\d+(\.\d+)?", r.template_id)
            assert r.text != "\n\n".join(r.turns)
        else:
            assert r.text == "\n\n".join(r.turns)


def _check_order(source: Source, files: Any, parsed: Any, seeds: Any) -> None:
    records, rejected = parsed(source, files)
    assert parsed(source, files) == (records, rejected)
    for seed in seeds:
        again, rejected_again = parsed(source, files.shuffled(seed))
        assert _by_id(again) == _by_id(records)
        assert Counter(r.reason for r in rejected_again) == Counter(r.reason for r in rejected)


def _by_id(records: list[Record]) -> list[Record]:
    return sorted(records, key=lambda r: r.native_id)


def _hostile_cells(source: Source, files: Any) -> Iterator[tuple[str, int, str, Any]]:
    for key, spec in source.spec.files.items():
        rows = files.by_key[key]
        for index in range(0, len(rows), max(1, len(rows) // 12)):
            for column, kind in spec.columns.items():
                for value in _hostile_values(rows[index][column], kind):
                    yield key, index, column, value


def _hostile_values(present: Any, kind: str) -> Iterator[Any]:
    if kind.endswith("?"):
        yield None
    yield from HOSTILE.get(kind.removesuffix("?"), ())
    if isinstance(present, dict):  # one part of it wrong, the rest as it was
        for part in present:
            yield from ({**present, part: value} for value in NESTED)
    if isinstance(present, list) and present and isinstance(present[0], dict):
        for part in present[0]:
            yield from ([{**present[0], part: value}, *present[1:]] for value in NESTED)


def _shingles(text: str) -> set[str]:
    words = text.split()
    return {" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))}


def _jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b)
