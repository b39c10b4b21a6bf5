"""Filtering, language verdicts and the cap of candidates."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.language import can_detect, detect_language, detect_languages, primary, same_language
from curation.recipe import CandidatesConfig, FilterConfig
from curation.schema import POOL_SCHEMA
from curation.stages.base import Drop
from curation.stages.clean import cap_candidates, filter_records, judge_languages

LONG_ENGLISH = (
    "The lamp keeper climbed the stairs every evening, trimmed the wick, and wrote the weather into a large book that "
    "nobody had opened for years."
)
LONG_GERMAN = (
    "Der alte Gärtner ging jeden Morgen durch den Garten, zählte die Blüten und schrieb das Ergebnis in ein Heft, das "
    "außer ihm niemand lesen konnte."
)

# id, category, declared language, text: short, shouted, code, numbers, other scripts, two languages in one text.
ODD_ROWS = [
    ("b1", "writing", "en", "COMPOSE A LIMERICK ON A KETTLE!!!"),
    ("b2", "stem", "en", "Explain inertia."),
    ("b3", "qa", "en", "List a reptile."),
    ("b4", "coding", "en", "def ring(r):\n    from math import pi\n    return 2 * pi * r\n\nassert ring(1) > 6"),
    ("b5", "stem", "en", "RAM, ROM, CPU, GPU, SSD"),
    ("b6", "multilingual", "zh", "请用两句话说明潮汐的成因。"),
    ("b7", "multilingual", "zh", "概述經過"),
    ("b8", "multilingual", "en", "Translate: Gute Nacht"),
    ("b9", "math", "en", "Solve 3y^2 + 2y - 8 = 0 for y."),
    ("b10", "multilingual", "es", "Put this sentence into English. El tren sale a las ocho de la mañana."),
]


def pool(rows):
    """Rows of (id, category, language, text), source `s` unless the id names one before a colon."""
    return pa.Table.from_pylist(
        [
            {
                "record_id": row_id,
                "source": row_id.split(":")[0] if ":" in row_id else "s",
                "src_id": row_id,
                "category": category,
                "sub_category": "",
                "turns": [text],
                "text": text,
                "language": language,
                "difficulty": "",
                "template_id": "",
                "record_ids": [row_id],
                "is_code": category == "coding",
            }
            for row_id, category, language, text in rows
        ],
        schema=POOL_SCHEMA,
    )


def test_odd_texts_survive_whatever_the_detector_says():
    result, report = filter_records(pool(ODD_ROWS), FilterConfig(language_min_chars=0, language_warning_from=0.0))
    assert result.drops == ()
    assert result.table.num_rows == 10
    assert report.counts["code"] == 1
    assert report.warnings, "judged all the same, short texts do make the detector err; still nothing is dropped"


def test_the_report_counts_what_could_not_be_judged():
    result, report = filter_records(pool(ODD_ROWS), FilterConfig())
    assert result.table.num_rows == 10
    assert report.warnings == ()
    assert report.counts["code"] == 1
    assert report.counts["too_short"] == 8
    assert report.num_not_judged == 10 - report.counts["agrees"]
    assert sum(report.counts.values()) == 10


def verdicts(rows, **options):
    config = FilterConfig(language_min_chars=0)
    return sorted(judge_languages(pool(rows), config, **options), key=lambda v: v.record_id)


def test_verdicts_are_the_same_in_twenty_repeats_and_any_order():
    first = verdicts(ODD_ROWS)
    for shift in range(20):
        assert verdicts(ODD_ROWS[shift % 10 :][::-1] + ODD_ROWS[: shift % 10]) == first
    assert [verdicts([row])[0] for row in sorted(ODD_ROWS)] == first, "alone as among others"


@pytest.mark.slow
def test_verdicts_are_the_same_in_another_process_and_with_four_workers():
    texts = [text for *_, text in ODD_ROWS]
    here = [detect_language(text, 7) for text in texts]
    assert detect_languages(texts, 7, workers=4, parallel_from=1) == here
    program = (
        "import json, sys; from curation.language import detect_language;"
        "found = [detect_language(text, 7) for text in json.load(sys.stdin)];"
        "print(json.dumps([[one.language, one.probability] for one in found]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    assert json.loads(out.stdout) == [[d.language, d.probability] for d in here]


def test_another_users_seed_does_not_reach_the_detector(monkeypatch):
    from langdetect import DetectorFactory

    first = [detect_language(text, 3) for *_, text in ODD_ROWS]
    monkeypatch.setattr(DetectorFactory, "seed", 99)
    assert [detect_language(text, 3) for *_, text in ODD_ROWS] == first


def test_a_long_text_in_another_language_than_declared_is_a_warning_and_stays():
    rows = [("a", "qa", "en", LONG_GERMAN), ("b", "qa", "de", LONG_GERMAN), ("c", "qa", "", LONG_ENGLISH)]
    result, report = filter_records(pool(rows), FilterConfig())
    assert result.table.num_rows == 3
    assert result.table.column("language").to_pylist() == ["en", "de", ""], "the declared language wins"
    assert [(w.record_id, w.declared, w.detected) for w in report.warnings] == [("a", "en", "de")]
    assert report.warnings[0].probability >= 0.9
    assert report.counts["agrees"] == 1
    assert report.counts["undeclared"] == 1


def test_code_and_languages_that_the_detector_does_not_know_are_not_judged():
    rows = [("a", "coding", "en", LONG_GERMAN), ("b", "multilingual", "mt", LONG_GERMAN)]
    _, report = filter_records(pool(rows), FilterConfig())
    assert report.counts["code"] == 1
    assert report.counts["unsupported"] == 1
    assert report.warnings == ()


def test_text_without_a_letter_is_too_unsure_to_judge():
    _, report = filter_records(pool([("a", "math", "en", "1 + 2 = 3; " * 10)]), FilterConfig())
    assert report.counts["unsure"] == 1


def test_a_sample_of_each_source_and_language_is_judged_whatever_the_order():
    rows = [(f"{s}:{i}", "qa", lang, LONG_ENGLISH) for s in "st" for lang in ("en", "de") for i in range(4)]
    rows = [(f"{row_id}{lang}", *rest) for row_id, *rest in rows for lang in [rest[1]]]
    config = FilterConfig(language_max_judged=3)
    _, report = filter_records(pool(rows), config)
    assert report.counts["not_sampled"] == 4
    assert report.counts["agrees"] == 6
    assert filter_records(pool(rows[::-1]), config)[1] == report


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [("zh", "zh-TW", True), ("zh-Hans", "zh-CN", True), ("pt_BR", "pt", True), ("nb", "no", True), ("en", "de", False)],
)
def test_script_and_region_do_not_make_another_language(a, b, same):
    assert same_language(a, b) is same
    assert primary(a) == primary(a.upper())


def test_the_detector_knows_its_languages():
    assert can_detect("en-GB")
    assert can_detect("zh-Hant")
    assert not can_detect("mt")


def test_empty_short_and_long_records_are_dropped_with_their_reason():
    table = pool(
        [("a", "qa", "en", ""), ("b", "qa", "en", " \u200b\n"), ("c", "qa", "en", "ok"), ("d", "qa", "en", "x" * 21)]
    )
    result, _ = filter_records(table, FilterConfig(min_chars=3, max_chars=20))
    assert result.drops == (
        Drop("a", "filter", "empty"),
        Drop("b", "filter", "empty"),
        Drop("c", "filter", "too_short", "min_chars=3", 2),
        Drop("d", "filter", "too_long", "max_chars=20", 21),
    )
    assert result.table.num_rows == 0
    assert result.table.schema == POOL_SCHEMA


def test_a_turn_that_shows_nothing_makes_the_record_empty():
    row = pool([("a", "qa", "en", "one")]).to_pylist()[0] | {"turns": ["one", "\n"]}
    result, _ = filter_records(pa.Table.from_pylist([row], schema=POOL_SCHEMA), FilterConfig())
    assert result.drops == (Drop("a", "filter", "empty"),)


def test_the_longest_record_is_measured_over_all_its_turns():
    row = pool([("a", "qa", "en", "one")]).to_pylist()[0] | {"turns": ["x" * 15, "y" * 15]}
    result, _ = filter_records(pa.Table.from_pylist([row], schema=POOL_SCHEMA), FilterConfig(max_chars=29))
    assert result.drops == (Drop("a", "filter", "too_long", "max_chars=29", 30),)


def test_the_cap_counts_each_source_and_language_apart():
    rows = [
        (f"{s}:{i}", "qa", lang, "t")
        for s, lang, base in [("s", "en", 0), ("s", "de", 10), ("t", "en", 0)]
        for i in range(base, base + 5)
    ]
    result = cap_candidates(pool(rows), CandidatesConfig(max_per_source_language=2))
    left = result.table.to_pylist()
    assert len(left) == 6
    assert {(r["source"], r["language"]) for r in left} == {("s", "en"), ("s", "de"), ("t", "en")}
    assert len(result.drops) == 9
    assert {(d.reason, d.against) for d in result.drops} == {("over_cap", "max_per_source_language=2")}


def test_the_cap_is_decided_by_a_seeded_hash_of_the_id_alone():
    rows = [(f"s:{i}", "qa", "en", "t") for i in range(40)]
    kept = {seed: set() for seed in (0, 1)}
    for seed in kept:
        config = CandidatesConfig(max_per_source_language=10, seed=seed)
        kept[seed] = set(cap_candidates(pool(rows), config).table.column("record_id").to_pylist())
        assert set(cap_candidates(pool(rows[::-1]), config).table.column("record_id").to_pylist()) == kept[seed]
    assert kept[0] != kept[1]
    smaller = cap_candidates(pool(rows), CandidatesConfig(max_per_source_language=4))
    assert set(smaller.table.column("record_id").to_pylist()) < kept[0], (
        "a lower cap keeps a part of what a higher keeps"
    )
    assert sorted(smaller.table.column("src_id").to_pylist()) == ["s:15", "s:24", "s:27", "s:7"]


@settings(max_examples=20)
@given(st.text(max_size=60))
def test_any_text_has_one_verdict(text):
    assert detect_language(text, 0) == detect_language(text, 0)
    assert 0.0 <= detect_language(text, 0).probability <= 1.0
