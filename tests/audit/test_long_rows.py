"""Rows too long for Python's strings: read as UTF-8, with the same results as any other row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.audit import json_rows, long_rows, run
from curation.audit.long_rows import LongText, load_long_row
from tests.audit.conftest import Run
from tests.audit.corpora import FILLER, FOG, MILL, WIRE, hits_of, summary_of, write_jsonl

SIGNS = st.sampled_from([*'ab "\\/\n\t{}[]:,é中😀', "\\u", "\ud83d\ude00", "ud83d", "\\ud83d"])
STRINGS = st.lists(SIGNS, max_size=60).map("".join).map(lambda t: t.encode("utf-16", "surrogatepass").decode("utf-16"))
VALUES = st.recursive(
    STRINGS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(autouse=True)
def _little_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_rows, "_LONG_TEXT", 4)
    monkeypatch.setattr(long_rows, "_BLOCK", 16)
    monkeypatch.setattr(long_rows, "_STEP", 8)


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, LongText) else value


@given(value=VALUES, ascii_only=st.booleans())
def test_a_long_row_holds_what_a_short_one_holds(value: Any, ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert plain(load_long_row(line, json.loads)) == value


@given(st.text(st.sampled_from("aé中😀"), max_size=60), st.integers(0, 70), st.integers(0, 70))
def test_a_long_text_is_cut_by_characters(text: str, begin: int, end: int) -> None:
    assert len(LongText(text.encode())) == len(text)
    assert LongText(text.encode())[begin:end] == text[begin:end]


@pytest.mark.parametrize("inside", [r"a tab \q that is none", "a control \x01 character", r"half an escape \u12"])
def test_a_long_text_that_is_no_json_is_refused(inside: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        load_long_row(b'{"text": "%b"}' % inside.encode(), json.loads)


@pytest.mark.parametrize("line", [b'{"text": "never closed and never ended', b'"long enough" "and a second one"'])
def test_a_line_that_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        load_long_row(line, json.loads)


ROWS: list[Any] = [
    f"{FILLER} 🚤 {MILL} {FILLER}",
    {"id": "a chat of some length", "messages": [{"role": "user", "content": f"é {WIRE}"}, {"value": FOG}]},
    {"text": f"\ud83d {MILL} {FILLER}"},
    {"text": 7},
    {"body": f"{WIRE}", "note": "short"},
]


def test_a_run_over_long_rows_gives_the_same_results(
    tmp_path: Path, run_audit: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("".join(json.dumps({"text": r} if isinstance(r, str) else r) + "\n" for r in ROWS), "utf-8")
    assert run_audit(corpus, out="short").exit_code == 0
    monkeypatch.setattr(json_rows, "LONG_LINE", 8)
    monkeypatch.setattr(run, "_SHORT_TEXT", 8)
    assert run_audit(corpus, out="long").exit_code == 0
    assert hits_of(tmp_path / "long") == hits_of(tmp_path / "short")
    assert len(hits_of(tmp_path / "long")) == 5
    assert summary_of(tmp_path / "long") == summary_of(tmp_path / "short")
    assert summary_of(tmp_path / "long")["corpus"]["by_file"][0]["repaired"] == {"lone surrogate": [1, 3]}


def test_a_line_that_is_long_as_it_comes_is_read_without_a_string_of_it(
    tmp_path: Path, run_audit: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("SPEEDBENCH_CACHE", str(tmp_path / "cache"))
    text = f"{'🚤 ' * (long_rows.LONG_LINE // 5 + 9)} {MILL}"
    run_audit(write_jsonl(tmp_path / "c.jsonl", [text, FILLER]))
    (hit,) = hits_of(tmp_path / "out")
    assert text[hit["begin"] : hit["end"]] == MILL
    assert hit["snippet"] == f"{'🚤 ' * 39}🚤  {MILL}"[-80 - len(MILL) :]


@pytest.mark.slow
def test_memory_is_bounded_by_the_longest_row() -> None:
    """700 MB and three times the row are promised; the row counts three times, whatever its characters."""
    script = Path(__file__).parents[1] / "perf" / "audit_memory.py"
    command = [sys.executable, str(script), "--mb", "60", "--kinds", "one_emoji_a_sentence,messages"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert max(told["peak_mb"].values()) - told["one_word_peak_mb"] <= 3 * 60
