"""`speedbench audit self`: the same prompt twice in a config is a fault; sharing a record across configs is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from curation.audit.self_check import SelfCheck, check_self
from curation.schema import SENTINEL
from speedbench.cli import cli
from tests.audit.corpora import FILLER, MILL, WIRE, write_benchmark

PASSAGE = "The lighthouse of the northern cape was built in two summers by masons from the valley. " * 4


def verdicts(result: SelfCheck) -> list[tuple[str, str, str, str]]:
    return sorted((p.verdict, p.kind, *sorted((p.question_id, p.other_question_id))) for p in result.pairs)


def check(tmp_path: Path, prompts: list[Any]) -> SelfCheck:
    return check_self(write_benchmark(tmp_path / "dist", prompts))


def edited(text: str) -> str:
    return text.replace(" the ", " a ", 1)


@pytest.mark.parametrize(
    ("change", "kind"), [(lambda t: t, "exact"), (lambda t: t.upper() + " ?", "format"), (edited, "near")]
)
def test_the_same_prompt_twice_in_a_config_is_a_fault(tmp_path: Path, change: Any, kind: str) -> None:
    result = check(tmp_path, [MILL, WIRE, change(MILL)])
    assert verdicts(result) == [("fault", kind, "q0", "q2")]
    command = CliRunner().invoke(cli, ["audit", "self", str(tmp_path / "dist")])
    assert command.exit_code == 1
    assert f"fault\t{kind}\tqualitative\tq2\tqualitative\tq0" in command.stdout


def test_questions_about_one_passage_are_no_fault(tmp_path: Path) -> None:
    """Contexts that rows share do not make them near."""
    prompts = [
        f"{PASSAGE}\n\n{q}" for q in ("Who built the tower on the cape?", "How long did the masons need for it?")
    ]
    assert verdicts(check(tmp_path, prompts)) == []


def test_demonstrations_that_rows_share_are_no_fault(tmp_path: Path) -> None:
    shots = "\n\n".join(f"Question: what is {i} plus {i}?\n\nAnswer: {2 * i}" for i in range(20))
    assert verdicts(check(tmp_path, [f"{shots}\n\n{MILL}", f"{shots}\n\n{WIRE}"])) == []


def test_a_prompt_inside_another_is_listed_and_no_fault(tmp_path: Path) -> None:
    result = check(tmp_path, [MILL, f"{FILLER * 9} {MILL} {FILLER * 9}"])
    assert verdicts(result) == [("contained", "exact", "q0", "q1")]
    assert result.faults == ()
    assert CliRunner().invoke(cli, ["audit", "self", str(tmp_path / "dist")]).exit_code == 0


def test_across_configs_one_record_or_a_smaller_set_is_by_construction(tmp_path: Path) -> None:
    dist = write_benchmark(tmp_path / "dist", [MILL, {"turns": [WIRE], "src_id": "other"}])
    write_benchmark(dist, [{"turns": [MILL], "question_id": "n0", "src_id": "copy"}], config="qualitative_20")
    write_benchmark(dist, [{"turns": [WIRE], "question_id": "b0", "src_id": "other"}], config="spec_bench")
    assert verdicts(check_self(dist)) == [
        ("by construction", "exact", "b0", "q1"),
        ("by construction", "exact", "n0", "q0"),
    ]


def test_what_spec_bench_shares_is_by_construction_and_what_other_configs_share_without_a_record_is_a_fault(
    tmp_path: Path,
) -> None:
    dist = write_benchmark(tmp_path / "dist", [{"turns": [MILL]}, {"turns": [WIRE], "category": "math"}])
    bench = [{"turns": [MILL], "question_id": "b0", "src_id": "x0", "category": "c"}]
    write_benchmark(dist, bench, config="spec_bench")
    write_benchmark(dist, [{"turns": [WIRE], "question_id": "t0", "src_id": "x1"}], config="throughput_1k")
    assert verdicts(check_self(dist)) == [("by construction", "exact", "b0", "q0"), ("fault", "exact", "q1", "t0")]


def test_a_demonstration_that_two_lengths_cut_elsewhere_is_no_fault(tmp_path: Path) -> None:
    shown = FILLER * 12
    rows = [f"{MILL}\n\n{shown[:-40]}", f"{WIRE}\n\n{shown[:-9]}"]
    assert verdicts(check(tmp_path, rows)) == []


def test_a_prompt_that_goes_on_where_another_ends_is_near(tmp_path: Path) -> None:
    assert [p.kind for p in check(tmp_path, [MILL, MILL + " Explain."]).faults] == ["near"]


def test_near_means_what_the_recipe_of_the_build_says(tmp_path: Path) -> None:
    dist = write_benchmark(tmp_path / "build" / "full", [MILL, edited(edited(MILL))])
    recipe = {"dedup": {"jaccard_threshold": 0.95}}
    (tmp_path / "build" / "manifest.json").write_text(json.dumps({"recipe": recipe}), "utf-8")
    result = check_self(dist)
    assert (result.jaccard_threshold, result.threshold_from) == (0.95, "manifest.json")
    assert [v for v in verdicts(result) if v[0] == "fault"] == []


def test_the_records_own_text_comes_from_the_pool(tmp_path: Path) -> None:
    """Our instruction wraps both rows: without the pool they would be near."""
    frame = "Act as the keeper of a small museum by the sea who has told this story to visitors for thirty years. "
    rows = [
        {"turns": [frame * 6 + task], "src_id": f"r{i}", "record_ids": [f"made:r{i}"]}
        for i, task in enumerate(("Tell of the storm.", "Tell of the whale."))
    ]
    dist = write_benchmark(tmp_path / "build" / "full", rows)
    assert [p.kind for p in check_self(dist).faults] == ["near"]
    pool = [
        {"record_ids": [f"made:r{i}"], "text": t} for i, t in enumerate(("Tell of the storm.", "Tell of the whale."))
    ]
    (tmp_path / "build" / "pool").mkdir()
    pq.write_table(pa.Table.from_pylist(pool), tmp_path / "build" / "pool" / "pool.parquet")
    result = check_self(dist)
    assert result.own_text_from == "pool"
    assert result.faults == ()


def test_placeholders_are_counted_and_not_compared(tmp_path: Path) -> None:
    result = check(tmp_path, [{"turns": [SENTINEL]}, {"turns": [SENTINEL]}, MILL])
    assert (result.pairs, result.placeholders, result.rows) == ((), {"qualitative": 2}, {"qualitative": 1})
