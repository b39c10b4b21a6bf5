from __future__ import annotations

import json

import numpy as np
import pytest

from curation.composition import composition, input_lengths, programming_languages
from curation.diversity import DiversityReport, mean_cosine_of, measure_category, spec_bench_rows
from curation.diversity_report import as_document, as_text, write_plot


def _unit(*angles_deg: float) -> np.ndarray:
    a = np.radians(angles_deg)
    return np.stack([np.cos(a), np.sin(a)], axis=1).astype(np.float32)


def _row(category: str, *turns: str, **more) -> dict:
    return {"category": category, "sub_category": "", "turns": list(turns), "difficulty": "", "num_tokens": 1} | more


def test_the_figures_of_a_category_worked_by_hand():
    own, theirs = _unit(0, 90), _unit(0, 60, 0)
    measured = measure_category(
        "math", own, spec_bench=theirs, pool=_unit(0, 90, 0, 90), certificate={"bound": 2.0, "gap": 0.0}
    )
    assert measured.own == pytest.approx(0.0, abs=1e-6)
    assert measured.spec_bench == pytest.approx((0.5 + 1.0 + 0.5) / 3, abs=1e-6)
    assert measured.under_spec_bench == pytest.approx(1.0, abs=1e-6)
    assert measured.greedy == pytest.approx(0.0, abs=1e-6), "greedy finds a right angle"
    assert measured.bound == pytest.approx(0.0), "(2.0 - 2) / (2 * 1)"
    assert 0.0 < measured.random < 1.0
    assert (measured.rows, measured.candidates) == (2, 4)


def test_what_was_not_measured_is_none_and_never_zero():
    measured = measure_category("qa", _unit(10))
    assert (measured.own, measured.spec_bench, measured.random, measured.greedy, measured.bound) == (None,) * 5
    assert measured.under_spec_bench is None
    document = as_document(_report(measured))
    assert document["under_spec_bench"] is None
    assert document["categories"][0]["own"] is None


def _report(*categories) -> DiversityReport:
    parts = composition([_row("math", "one"), _row("multilingual", "deux", "trois")], ["en", "fr"])
    return DiversityReport("out/full", "an embedder", categories, parts, None, 0, ("no pool",))


def test_the_mean_needs_every_category():
    whole = measure_category("math", _unit(0, 60), spec_bench=_unit(0, 0))
    half = measure_category("qa", _unit(0, 60))
    assert _report(whole).under_spec_bench == pytest.approx(0.5, abs=1e-6)
    assert _report(whole, half).under_spec_bench is None, "a mean over fewer categories would be another figure"
    assert _report(whole, half).mean_own == pytest.approx(0.5, abs=1e-6)


def test_the_mean_cosine_of_an_objective_is_that_of_its_rows():
    x = _unit(0, 30, 75, 200).astype(np.float64)
    objective = float(np.square(x.sum(axis=0)).sum())
    cosines = [float(x[i] @ x[j]) for i in range(4) for j in range(i)]
    assert mean_cosine_of(objective, 4) == pytest.approx(np.mean(cosines))


def test_categories_stand_beside_spec_benchs_own():
    theirs = ["translation", "math", "math_reasoning", "rag", "translation"]
    assert spec_bench_rows(theirs, "multilingual") == [0, 4]
    assert spec_bench_rows(theirs, "math") == [1], "MT-Bench's math, without GSM8K"


@pytest.mark.parametrize(
    ("text", "sub_category", "names"),
    [
        ("Write a Python function and a C++ one", "", ("Python", "C++")),
        ("Use JavaScript, not Java", "", ("Java", "JavaScript")),
        ("Go to the shop and sort the list", "", ()),
        ("Write a Go program", "", ("Go",)),
        ("A website with HTML and CSS", "", ("HTML", "CSS")),
        ("Complete it", "rust", ("Rust",)),
    ],
)
def test_programming_languages_come_from_the_sub_category_or_are_named_in_the_text(text, sub_category, names):
    assert set(programming_languages(_row("coding", text, sub_category=sub_category))) == set(names)


def test_input_lengths_are_over_all_turns_of_a_row():
    rows = [_row("qa", "a", num_tokens=3), _row("qa", "b", "c", num_tokens=6), _row("math", "d", num_tokens=9)]
    lengths = input_lengths(rows)
    assert (lengths["qa"].rows, lengths["qa"].mean_isl, lengths["qa"].median_isl) == (2, 4.5, 4.5)
    assert list(lengths) == ["math", "qa"]


def test_the_composition_counts_turns_and_the_languages_of_the_multilingual_rows():
    parts = _report().composition
    assert (parts.rows, parts.multiturn_rows, dict(parts.turns)) == (2, 1, {1: 1, 2: 1})
    assert dict(parts.languages) == {"fr": 1}


def test_text_and_json_tell_the_same_and_the_plot_is_a_picture(tmp_path):
    report = _report(
        measure_category("math", _unit(0, 60), spec_bench=_unit(0, 0), certificate={"bound": 2.9, "gap": 0.03})
    )
    assert "50.0 %" in as_text(report)
    assert "3.00 %" in as_text(report)
    assert "note: no pool" in as_text(report)
    json.dumps(as_document(report))
    write_plot(report, tmp_path / "a.png")
    write_plot(report, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
