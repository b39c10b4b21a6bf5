"""NVIDIA's placeholder rows, made up by the rules of its public preparer (no published row was at hand).

The records are our own samples, written into a mirror as those sources lay them out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import DistError
from curation.fill.fill import fill_dist
from curation.fill.nvidia import IN_CODE, RULES, Unfillable, fill_template
from curation.load import read_config
from curation.schema import SENTINEL, SPLIT_SCHEMA
from curation.store import write_table
from sources.fetch import HubOrigin
from sources.lock import Lock
from sources.origins import MirrorOrigin, SamplesOrigin, samples_root
from sources.registry import SOURCES

HLE_ID = "5a0000000000000000000169"
REVISION = "ab" * 20


def row(source: str, src_id: str, *turns: str, category: str = "coding", **more: Any) -> dict[str, Any]:
    return {
        "question_id": more.pop("question_id", f"{src_id:0>32}"[-32:]),
        "category": category,
        "sub_category": "",
        "turns": list(turns),
        "source": source,
        "src_id": src_id,
        "difficulty": "",
        "multiturn": len(turns) > 1,
    }


def templated(template: str) -> str:
    return f"{SENTINEL}\n\n{template}"


def dist(folder: Path, *rows: dict[str, Any], config: str = "qualitative") -> Path:
    schema = pa.schema([SPLIT_SCHEMA.field(name) for name in SPLIT_SCHEMA.names[:8]])
    write_table(folder / config / "test-00000-of-00001.parquet", pa.Table.from_pylist(list(rows), schema=schema))
    return folder


def filled(tmp_path: Path, *rows: dict[str, Any], origin: Any = None, config: str = "qualitative") -> list[list[str]]:
    folder = dist(tmp_path / "theirs", *rows, config=config)
    report = fill_dist(folder, tmp_path / "out", origin or SamplesOrigin())
    assert report.problems == ()
    assert report.verified == 0
    assert "could not be checked" in report.summary
    return read_config(tmp_path / "out", config).column("turns").to_pylist()


def problem(tmp_path: Path, one: dict[str, Any], origin: Any = None, config: str = "qualitative") -> tuple[str, str]:
    report = fill_dist(dist(tmp_path / "theirs", one, config=config), tmp_path / "out", origin or SamplesOrigin())
    assert not report.written
    (only,) = report.problems
    return only.kind, only.detail


def sample(name: str, path: str) -> list[dict[str, Any]]:
    text = (samples_root() / name / path).read_text("utf-8-sig")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def column(name: str, path: str, *names: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return pq.read_table(samples_root() / name / path, columns=list(names)).to_pylist()


def test_an_exam_question_is_the_prompt_itself(tmp_path):
    ours = column("hle", "data/test-00000-of-00001.parquet", "id", "question")[0]
    assert filled(tmp_path, row("cais/hle", ours["id"], SENTINEL, category="stem")) == [[ours["question"]]]


def test_a_problem_with_starter_code_fills_both_fields(tmp_path):
    ours = next(r for r in sample("livecodebench", "test.jsonl") if r["starter_code"])
    template = templated("In Go, please.\n{question}\nBegin with:\n{starter_code}")
    one = row("livecodebench/code_generation_lite", ours["question_id"], template)
    assert filled(tmp_path, one) == [
        [f"In Go, please.\n{ours['question_content']}\nBegin with:\n{ours['starter_code']}"]
    ]


def test_a_contest_problem_is_found_by_its_name(tmp_path):
    ours = column("code_contests", "data/test-00000-of-00001-5a5a5a5a5a5a5a5a.parquet", "name", "description")[1]
    one = row("deepmind/code_contests", ours["name"], templated("Solve:\n{question}"))
    assert filled(tmp_path, one) == [[f"Solve:\n{ours['description']}"]]


def test_an_article_fills_its_field(tmp_path):
    ours = column("cnn_dailymail", "3.0.0/test-00000-of-00001.parquet", "id", "article")[0]
    one = row("abisee/cnn_dailymail", ours["id"], templated("{article}\n\nSummarise."), category="summarization")
    assert filled(tmp_path, one) == [[f"{ours['article']}\n\nSummarise."]]


def test_a_translation_indexes_the_language_of_its_pair(tmp_path):
    ours = column("opus_100", "de-en/test-00000-of-00001.parquet", "translation")[1]["translation"]
    one = row("Helsinki-NLP/opus-100", "opus_de-en_1", templated("To English: {question[de]}"), category="multilingual")
    assert filled(tmp_path, one) == [[f"To English: {ours['de']}"]]


def test_a_dialogue_is_found_by_its_place_and_gives_all_user_turns(tmp_path):
    rows = sample("mt_bench_101", "data/subjective/mtbench101.jsonl")
    place = next(i for i, r in enumerate(rows) if len(r["history"]) > 1)
    turns = [exchange["user"] for exchange in rows[place]["history"]]
    source = f"https://raw.example/mtbench101/mt-bench-101/{REVISION}/data/subjective/mtbench101.jsonl"
    one = row(source, f"mtbench101_{place}", *[SENTINEL] * len(turns), category="reasoning")
    assert filled(tmp_path, one) == [turns]


def test_a_part_in_a_play_takes_role_description_and_the_first_questions_that_are_wanted(tmp_path):
    rows = sample("rolebench", "rolebench-eng/instruction-generalization/role_specific/test.jsonl")
    role = rows[0]["role"]
    described = json.loads((samples_root() / "rolebench/profiles-eng/desc.json").read_text("utf-8-sig"))[role]
    source = f"https://hub.example/datasets/ZenMoore/RoleBench/tree/{REVISION}/rolebench-eng"
    template = templated("Be {role_name}.\n{role_description_and_catchphrases}")
    one = row(source, "rolebench_instruction-generalization_0_2_1", template, SENTINEL, category="roleplay")
    assert filled(tmp_path, one) == [
        [
            f"Be {role}.\n{described}\n{rows[0]['question']}",
            rows[2]["question"].removeprefix(f" {role},"),
        ]
    ]


def test_a_bad_row_keeps_its_place_and_a_blank_line_has_none(tmp_path):
    path = tmp_path / "mirror" / "_web" / "mtbench101" / "mt-bench-101" / "data" / "subjective" / "mtbench101.jsonl"
    path.parent.mkdir(parents=True)
    good = json.dumps({"task": "GR", "id": 7, "history": [{"user": "Which is taller?", "bot": "b"}]})
    path.write_text(f'\n{{"task": "GR"}}\n\n{good}\n', "utf-8")
    one = row("mtbench101/mt-bench-101", "mtbench101_1", SENTINEL, category="reasoning")
    assert filled(tmp_path, one, origin=MirrorOrigin(tmp_path / "mirror")) == [["Which is taller?"]]


def test_rows_that_are_whole_stay_and_the_files_keep_their_places(tmp_path):
    whole = row("org/free", "f1", "A prompt of their own.")
    ours = column("hle", "data/test-00000-of-00001.parquet", "id", "question")[0]
    assert filled(tmp_path, whole, row("cais/hle", ours["id"], SENTINEL))[0] == ["A prompt of their own."]
    assert (tmp_path / "out" / "qualitative" / "test-00000-of-00001.parquet").is_file()


@pytest.mark.parametrize("marker", IN_CODE)
def test_prompts_that_are_worded_in_code_are_left_with_the_reason(tmp_path, marker):
    kind, detail = problem(tmp_path, row(f"https://somewhere.example/{marker}x", "x_1", SENTINEL))
    assert (kind, "carries no template" in detail) == ("unsupported", True)


def test_few_shot_rows_are_left_with_the_reason(tmp_path):
    one = row("cais/hle", HLE_ID, SENTINEL, category="mixed")
    kind, detail = problem(tmp_path, one, config="throughput_8k")
    assert (kind, "generator" in detail) == ("unsupported", True)


@pytest.mark.parametrize(
    ("one", "kind", "detail"),
    [
        (row("cais/hle", "no-such-id", SENTINEL), "missing", "no record of this src_id"),
        (row("cais/hle", HLE_ID, SENTINEL, SENTINEL), "changed", "gives 1 turns, the row has 2"),
        (row("deepmind/code_contests", "x", SENTINEL), "missing", "no record"),
        (row("Helsinki-NLP/opus-100", "opus_de-en", templated("{question[de]}")), "unsupported", "does not read"),
        (row("Helsinki-NLP/opus-100", "opus_de-en_999", templated("{question[de]}")), "missing", "no record"),
        (row("Helsinki-NLP/opus-100", "opus_de-en_0", templated("{question}")), "unsupported", "the field 'question'"),
        (row("Helsinki-NLP/opus-100", "opus_de-en_0", templated("{question[fr]}")), "unsupported", "the field"),
        (row("Helsinki-NLP/opus-100", "opus_de-en_0", SENTINEL), "unsupported", "hold a template as a rule"),
        (row("mtbench101/mt-bench-101", "none", SENTINEL), "unsupported", "names 0 records, 1 are needed"),
        (row("org/other", "x", SENTINEL), "unsupported", "no rule is known for rows of 'org/other'"),
    ],
)
def test_a_row_that_cannot_be_filled_says_why(tmp_path, one, kind, detail):
    found, why = problem(tmp_path, one)
    assert found == kind
    assert detail in why


def test_the_rest_is_written_on_request(tmp_path):
    ours = column("hle", "data/test-00000-of-00001.parquet", "id", "question")[0]
    folder = dist(tmp_path / "theirs", row("cais/hle", ours["id"], SENTINEL), row("Neph0s/CoSER", "coser_1", SENTINEL))
    report = fill_dist(folder, tmp_path / "out", SamplesOrigin(), allow_partial=True)
    assert (report.filled, len(report.problems)) == (1, 1)
    with pytest.raises(DistError, match="1 of 2 rows of qualitative are placeholders"):
        read_config(tmp_path / "out", "qualitative")


def test_the_revision_in_the_url_of_a_row_is_the_one_that_is_asked_for(tmp_path, monkeypatch):
    asked: list[str] = []

    def files(self: HubOrigin, spec: Any) -> Any:
        asked.append(spec.revision)
        return MirrorOrigin(samples_root().parent / "nowhere").files(spec)

    monkeypatch.setattr(HubOrigin, "files", files)
    source = f"https://raw.example/mtbench101/mt-bench-101/{REVISION}/data/subjective/mtbench101.jsonl"
    folder = dist(tmp_path / "theirs", row(source, "mtbench101_1", SENTINEL))
    report = fill_dist(folder, tmp_path / "out", HubOrigin(lock=Lock()), allow_partial=True)
    assert ([p.kind for p in report.problems], asked) == (["unread"], [REVISION])


def test_a_source_without_a_revision_anywhere_is_not_asked(tmp_path):
    kind, detail = problem(tmp_path, row("abisee/cnn_dailymail", "x", SENTINEL), origin=HubOrigin(lock=Lock()))
    assert (kind, "sources lock" in detail) == ("unpinned", True)


def test_every_rule_names_a_registered_source():
    assert {rule.name for rule in RULES} <= SOURCES.keys()


@given(st.text(), st.text())
def test_braces_in_what_is_filled_in_are_never_read_as_a_template(question, code):
    assert (
        fill_template("<{question}|{code}|{{}}>", {"question": question, "code": code}) == f"<{question}|{code}|{{}}>"
    )


@pytest.mark.parametrize("template", ["{", "a } b", "{question:>9}", "{question!r}", "{0}", "{}", "{question.x}"])
def test_a_template_that_asks_for_more_than_a_text_is_refused(template):
    with pytest.raises(Unfillable, match="its template"):
        fill_template(template, {"question": "x"})
