"""Candidates by an embedder: thresholds from clean text, and what was looked at."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.audit import semantic
from curation.audit.errors import AuditError
from curation.audit.plan import make_plan
from curation.audit.reading import read_documents
from curation.audit.results import merge
from curation.audit.row_counts import RowCounts
from curation.audit.session import Request, prepare_run
from curation.kernels.audit_windows import clean_thresholds, windows
from tests.audit.corpora import FILLER, MILL, WIRE, write_benchmark, write_jsonl

CONCEPTS = [("miller", "grinder"), ("sacks", "bags"), ("rye", "corn"), ("feast", "holiday"), ("baker", "breadmaker")]
CONCEPTS += [("rope", "cord"), ("harbour", "port"), ("hemp", "fibre"), ("cable", "line"), ("tar", "pitch")]
REWRITE = "The grinder fills many bags with corn before each holiday, and the breadmaker asks for their number."


def bag_of_concepts(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors: one axis a concept, the rest by a hash of the other words."""
    out = np.zeros((len(texts), 64), np.float32)
    for i, text in enumerate(texts):
        for word in text.lower().replace(",", " ").replace(".", " ").split():
            axis = next((k for k, names in enumerate(CONCEPTS) if word in names), None)
            out[i, axis if axis is not None else 10 + zlib.crc32(word.encode()) % 54] += 3 if axis is not None else 0.3
    norm = np.linalg.norm(out, axis=1, keepdims=True)
    return np.where(norm > 0, out / np.maximum(norm, 1e-9), np.nan).astype(np.float32)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    words = [w for pair in CONCEPTS for w in pair] + FILLER.split()
    return write_jsonl(tmp_path / "clean.jsonl", [" ".join(rng.choice(words, 30)) + "." for _ in range(400)])


def search(tmp_path: Path, rows: Sequence[str], clean: Path | None) -> list[tuple[int, str, str]]:
    dist = write_benchmark(tmp_path / "d", [MILL, WIRE])
    corpus = str(write_jsonl(tmp_path / "c.jsonl", rows))
    told = str(clean) if clean else None
    request = Request(
        [corpus], str(dist), tmp_path / "out", semantic=True, clean_text=told, uncalibrated=clean is None, workers=1
    )
    plan, index = prepare_run(request)
    semantic.run_semantic(plan, index, tmp_path / "out", told, bag_of_concepts, "bag")
    hits = merge([tmp_path / "out"]).hits.to_pylist()
    return [(h["row"], h["question_id"], h["class"]) for h in hits]


def test_a_rewritten_prompt_is_a_candidate_and_a_copy_is_no_candidate_besides(tmp_path: Path, clean: Path) -> None:
    found = search(tmp_path, [REWRITE, MILL, FILLER, ""], clean)
    assert found == [(1, "q0", "semantic"), (2, "q0", "exact")]
    assert merge([tmp_path / "out"]).summary["benchmark"]["contaminated_prompts"] == 1


def test_what_was_looked_at_is_stated(tmp_path: Path, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample goes by a hash of path and row: 30 of 300 are expected, and 5 to 60 come under any path."""
    monkeypatch.setattr(semantic, "SAMPLE_SHARE", 0.1)
    search(tmp_path, [REWRITE, FILLER, *(f"{FILLER * 30} {i}" for i in range(300))], clean)
    stated = merge([tmp_path / "out"]).summary["semantic"]
    assert stated["calibrated"] is True
    assert stated["clean_windows"] >= 400
    assert stated["short_documents"] == 2
    assert stated["sampled_documents"] + stated["other_documents"] == 300
    assert stated["sample_share"] == 0.1
    assert 5 < stated["sampled_documents"] < 60


def test_without_clean_text_the_result_says_so(tmp_path: Path) -> None:
    search(tmp_path, [REWRITE], None)
    stated = merge([tmp_path / "out"]).summary["semantic"]
    assert (stated["calibrated"], stated["clean_windows"]) == (False, 0)


def test_too_little_clean_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="200 are the least"):
        search(tmp_path, [REWRITE], write_jsonl(tmp_path / "few.jsonl", [FILLER]))


def test_a_threshold_is_the_empirical_quantile() -> None:
    clean = np.array([[0.1, 0], [0.7, 0], [0.4, 0], [-1, 0]], np.float32)
    prompts = np.array([[1, 0], [-1, 0]], np.float32)
    assert clean_thresholds(prompts, clean) == pytest.approx([0.7, 1.0])
    many = np.zeros((20_000, 2), np.float32)
    many[:, 0] = np.arange(20_000) / 20_000
    assert clean_thresholds(prompts[:1], many)[0] == pytest.approx(19_998 / 20_000)
    with pytest.raises(ValueError, match="at least one window"):
        clean_thresholds(prompts, clean[:0])


@given(st.text(st.sampled_from("ab. \n。"), max_size=400), st.integers(8, 60))
def test_windows_cover_all_text_and_hold_no_more_than_their_size(text: str, size: int) -> None:
    spans = windows(text, size)
    covered = {i for a, b in spans for i in range(a, b)}
    assert all(i in covered for i, c in enumerate(text) if not c.isspace())
    assert all(0 <= a < b <= len(text) and b - a <= 2 * size for a, b in spans)
    assert spans == sorted(spans)


def test_every_user_turn_of_a_long_chat_is_looked_at_and_its_place_is_told(
    tmp_path: Path, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers between are long and nothing is sampled, so that the chat as a whole is not read: its turns are."""
    monkeypatch.setattr(semantic, "SAMPLE_SHARE", 0.0)
    answer = {"role": "assistant", "content": FILLER * 60}
    turns = [{"role": "user", "content": "Good morning."}, answer, {"role": "user", "content": REWRITE}, answer]
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"messages": turns}) + "\n", "utf-8")
    dist = write_benchmark(tmp_path / "d", [MILL, WIRE])
    request = Request([str(path)], str(dist), tmp_path / "out", semantic=True, clean_text=str(clean), workers=1)
    plan, index = prepare_run(request)
    coverage = semantic.run_semantic(plan, index, tmp_path / "out", str(clean), bag_of_concepts, "bag")
    assert (coverage.user_turns, coverage.chats_by_turns_alone, coverage.sampled_documents) == (2, 1, 0)
    (hit,) = merge([tmp_path / "out"]).hits.to_pylist()
    document = "\n\n".join(turn["content"] for turn in turns)
    assert (hit["question_id"], document[hit["begin"] : hit["end"]]) == ("q0", REWRITE)


def test_the_turns_of_a_chat_in_parquet_are_those_of_the_row_that_holds_them(tmp_path: Path) -> None:
    chats = [[{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}], None]
    chats += [[{"role": "system", "content": "be brief"}, {"role": "user", "content": "three"}]]
    pq.write_table(pa.table({"messages": chats}), tmp_path / "c.parquet")
    plan = make_plan([str(tmp_path)], {})
    (documents,) = read_documents(plan.files[0], plan.units[0], [], RowCounts())
    assert documents.texts.to_pylist() == ["one\n\ntwo", "be brief\n\nthree"]
    assert documents.turns == {0: [(0, 3)], 1: [(10, 15)]}
