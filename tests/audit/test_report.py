"""The report of an audit, with prompts and documents that try to break it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.conftest import Run
from tests.audit.corpora import FILLER, MILL, hits_of, write_benchmark, write_jsonl

MARKUP = "<b>Write</b> the page </script><script>alert(1)</script> so that it shows twelve red lanterns & a boat"
ARABIC = "اكتب قصة قصيرة عن صياد عجوز يصلح شباكه كل صباح قبل أن تشرق الشمس على الميناء"


@pytest.fixture
def page(tmp_path: Path, run_audit: Run) -> str:
    dist = write_benchmark(tmp_path / "d", [MARKUP, ARABIC, MILL, "Go <i>on</i>"])
    rows = [f"{FILLER} {MARKUP}", f"<td>{ARABIC}</td>\u202e", "x" * 1_000_000 + " " + MILL, {"id": "<&>", "text": MILL}]
    assert run_audit(write_jsonl(tmp_path / "c<o>.jsonl", rows), dist=dist).exit_code == 0
    return (tmp_path / "out" / "report.html").read_text("utf-8")


def test_nothing_of_a_prompt_or_a_document_is_markup(page: str) -> None:
    assert page.count("<script>") == 1
    assert "alert(1)</script>" not in page
    assert "<i>on</i>" not in page
    assert "&lt;&amp;&gt;" in page
    assert "c&lt;o&gt;.jsonl" in page


def test_a_line_of_a_megabyte_does_not_fill_the_page(page: str) -> None:
    assert len(page) < 60_000
    assert "<mark>A miller" in page


def test_text_from_right_to_left_is_set_apart(page: str) -> None:
    assert f"<mark>{ARABIC}</mark>" in page
    assert "\u202e" not in page


def test_a_long_span_is_shortened_in_its_middle(tmp_path: Path, run_audit: Run) -> None:
    prompt = " ".join(f"word{i} of the tale" for i in range(200))
    dist = write_benchmark(tmp_path / "d", [prompt])
    run_audit(write_jsonl(tmp_path / "c.jsonl", [prompt]), dist=dist)
    (hit,) = hits_of(tmp_path / "out")
    assert (hit["begin"], hit["end"]) == (0, len(prompt))
    assert len(hit["snippet"]) < 500
    assert " … " in hit["snippet"]


def test_the_statement_says_what_was_looked_for_and_what_was_not(tmp_path: Path, run_audit: Run) -> None:
    run_audit(write_jsonl(tmp_path / "c.jsonl", [MILL, FILLER, {"n": 1}]))
    statement = (tmp_path / "out" / "statement.md").read_text("utf-8")
    assert statement.count("\n") == 1
    assert "2 documents" in statement
    assert "3 auditable prompts" in statement
    assert "1 exact, 0 format, 0 near, in 1 documents" in statement
    assert "1 rows were not scanned" in statement
