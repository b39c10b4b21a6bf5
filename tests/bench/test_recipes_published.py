"""The figures that others published, against a second copy of the papers' tables, and beside the rows of a run."""

import re
import statistics
from pathlib import Path

import pytest

from bench.config import DataConfig
from bench.recipes.published import conditions, published_figures, published_rows, rows_of, unlike_settings
from bench.recipes.shipped import list_recipes
from bench.recipes.text import docs_table
from bench.split import load_split
from sources.base import CATEGORIES
from tests.bench.test_recipes import command_of

RECIPES = {recipe.name: recipe for recipe in list_recipes()}
DOCS = Path(__file__).parents[2] / "docs" / "recipes.md"

# Typed a second time from Table 1: rows of N-Gram, Vanilla, EAGLE3 (Llama), N-Gram, EAGLE3 (gpt-oss), MTP (R1),
# Vanilla, EAGLE3 (Qwen3 235B), EAGLE3, MTP (Qwen3-Next).
TABLE_1 = (
    "speed-bench-llama-3.3-70b-ngram", "speed-bench-llama-3.3-70b-draft", "speed-bench-llama-3.3-70b-eagle3",
    "speed-bench-gpt-oss-120b-ngram", "speed-bench-gpt-oss-120b-eagle3", "speed-bench-deepseek-r1-mtp",
    "speed-bench-qwen3-235b-draft", "speed-bench-qwen3-235b-eagle3",
    "speed-bench-qwen3-next-eagle3", "speed-bench-qwen3-next-mtp",
)  # fmt: skip
TABLE_1_ROWS = """
coding 1.54 2.72 3.00 1.31 2.46 2.76 2.62 2.26 3.17 3.34
humanities 1.39 2.30 2.34 1.35 2.28 2.53 2.32 2.13 2.22 2.68
math 1.43 2.43 2.45 1.30 2.46 2.77 2.69 2.37 2.90 3.13
multilingual 1.91 2.59 1.71 1.58 2.32 2.68 2.87 2.33 1.90 3.19
qa 1.21 2.35 2.35 1.27 2.25 2.52 2.28 2.23 2.13 2.71
rag 1.51 2.50 2.76 1.31 2.31 2.61 2.54 2.44 2.46 2.94
reasoning 1.34 2.46 2.61 1.31 2.39 2.62 2.51 2.32 2.60 2.89
roleplay 1.15 2.14 2.04 1.25 1.87 2.14 1.92 1.87 1.80 2.09
stem 1.38 2.45 2.39 1.30 2.28 2.62 2.44 2.18 2.47 2.85
summarization 1.36 2.47 2.59 1.25 2.13 2.47 2.37 2.26 2.19 2.66
writing 1.33 2.45 2.63 1.20 1.98 2.33 2.19 2.02 2.09 2.46
mean 1.41 2.44 2.44 1.31 2.25 2.55 2.43 2.22 2.36 2.81
speed-up 0.88 1.60 1.90 0.29 1.34 1.45 1.17 1.33 1.06 1.20
mean-1 1.37 1.98 2.37 1.27 2.07 - 2.21 2.03 2.26 2.68
speed-up-1 0.85 1.15 1.75 0.27 1.06 - 1.06 1.21 1.03 1.18
"""
CELLS = {line.split()[0]: line.split()[1:] for line in TABLE_1_ROWS.strip().splitlines()}


def table_1(name, temperature):
    return [one for one in RECIPES[name].published if one.source.endswith("Table 1") and one.temperature == temperature]


@pytest.mark.parametrize(("column", "name"), list(enumerate(TABLE_1)))
def test_the_ten_columns_of_table_1_are_the_papers(column, name):
    (greedy,) = table_1(name, 0.0)
    assert greedy.acceptance_length == {c: float(CELLS[c][column]) for c in CATEGORIES}
    assert (greedy.acceptance_length_mean, greedy.speed_up_mean) == (
        float(CELLS["mean"][column]),
        float(CELLS["speed-up"][column]),
    )
    sampled = [(one.acceptance_length_mean, one.speed_up_mean) for one in table_1(name, 1.0)]
    there = CELLS["mean-1"][column] != "-"
    assert sampled == ([(float(CELLS["mean-1"][column]), float(CELLS["speed-up-1"][column]))] if there else [])
    assert (greedy.batch_size, greedy.draft_length, greedy.rows_config) == (32, 3, "qualitative")


@pytest.mark.parametrize("name", RECIPES)
def test_a_printed_mean_is_the_mean_of_its_categories_within_their_rounding(name):
    for one in RECIPES[name].published:
        pairs = ((one.acceptance_length, one.acceptance_length_mean), (one.speed_up, one.speed_up_mean))
        for values, printed in pairs:
            if not values or printed is None or one.source.startswith("Spec-Bench"):
                continue  # Spec-Bench's overall is over all questions, not a mean of its tasks
            digits = max(len(str(value).partition(".")[2]) for value in (*values.values(), printed))
            geometric = values is one.speed_up and one.source.startswith("DFlash")
            mean = statistics.geometric_mean if geometric else statistics.mean
            # Each value and the mean are rounded to half a unit of the last digit.
            assert abs(mean(values.values()) - printed) <= 10.0**-digits, one.source


def test_a_drafter_made_by_those_who_measured_is_said_to_be_self_reported():
    makers = {name: RECIPES[name].draft.hf_id for name in TABLE_1 if RECIPES[name].draft}
    for name in TABLE_1:
        told = {one.self_reported for one in RECIPES[name].published}
        assert told == {makers.get(name, "").startswith("nvidia/")}


def test_targets_drafts_and_parallelism_are_those_of_tables_11_and_12():
    for name, hf_id, tp, ep in (
        ("speed-bench-gpt-oss-120b-eagle3", "openai/gpt-oss-120b", 1, 1),
        ("speed-bench-llama-3.3-70b-draft", "meta-llama/Llama-3.3-70B-Instruct", 1, 1),
        ("speed-bench-qwen3-next-mtp", "Qwen/Qwen3-Next-80B-A3B-Instruct", 8, 8),
        ("speed-bench-qwen3-235b-eagle3", "Qwen/Qwen3-235B-A22B", 8, 8),
        ("speed-bench-deepseek-r1-mtp", "deepseek-ai/DeepSeek-R1", 8, 4),
    ):
        recipe = RECIPES[name]
        assert (recipe.target.hf_id, recipe.parallelism.tp, recipe.parallelism.ep) == (hf_id, tp, ep)
        command = " ".join(command_of(name))
        assert re.search(rf"--tp[_-]size {tp} --ep[_-]size {ep}\b", command)
    drafts = {name: RECIPES[name].draft.hf_id for name in TABLE_1 if RECIPES[name].draft}
    assert drafts["speed-bench-llama-3.3-70b-draft"] == "meta-llama/Llama-3.2-1B-Instruct"
    assert drafts["speed-bench-qwen3-235b-draft"] == "Qwen/Qwen3-0.6B"
    assert drafts["speed-bench-gpt-oss-120b-eagle3"] == "nvidia/gpt-oss-120b-Eagle3-long-context"
    assert drafts["speed-bench-qwen3-235b-eagle3"] == "nvidia/Qwen3-235B-A22B-Eagle3"


@pytest.mark.parametrize(
    ("method", "speed_ups"),
    [("eagle", (2.08, 1.91, 1.74)), ("sps", (1.77, 1.64, 1.49)), ("rest", (1.39, 1.36, 1.35))],
)
def test_spec_benchs_speed_ups_by_temperature_are_the_papers(method, speed_ups):
    found = {
        one.temperature: one.speed_up_mean
        for one in published_figures(f"spec-bench-vicuna-7b-{method}")
        if one.source.startswith("Spec-Bench (ACL")
    }
    assert found == dict(zip((0.0, 0.5, 1.0), speed_ups, strict=True))


def test_spec_benchs_methods_are_all_there_at_batch_1_in_half_precision_three_times():
    for method in ("eagle", "sps", "medusa", "pld", "rest", "lookahead"):
        recipe = RECIPES[f"spec-bench-vicuna-7b-{method}"]
        assert (recipe.batch_size, recipe.repeats, recipe.target.hf_id) == (1, 3, "lmsys/vicuna-7b-v1.3")
        assert {one.precision for one in recipe.published} == {"FP16"}
        assert {one.batch_size for one in recipe.published} == {1}
        assert all("RTX 3090" in one.hardware for one in recipe.published)


def test_the_newer_drafters_are_on_engines_that_know_them():
    assert {"qwen3-8b-vllm-dflash", "qwen3-8b-vllm-dspark", "qwen3-8b-vllm-pard", "qwen3-8b-vllm-suffix"} <= set(
        RECIPES
    )
    assert {"qwen3-8b-sglang-dflash", "qwen3-8b-sglang-dspark"} <= set(RECIPES)
    block = command_of("qwen3-8b-sglang-dflash")
    assert block[block.index("--speculative-dflash-block-size") + 1] == "16", (
        "a block holds the token before its drafts"
    )


# -- beside a run's


def described(rows, total, *, sha="0" * 64, path="nvidia/SPEED-Bench@abc", config="qualitative", **more):
    data = {"format": "dist", "path": path, "config": config, "first_turn_only": False, **more}
    settings = {
        "data": data,
        "sampling": {"temperature": 1.0},
        "load": {"concurrency": 8},
        "engine": {"draft_length": None},
    }
    return {"config": settings, "split": {"sha256": sha, "rows": rows, "total": total}}


def test_figures_are_over_the_same_data_set_only_where_all_of_it_was_sent():
    (one,) = table_1("speed-bench-llama-3.3-70b-eagle3", 0.0)
    whole = {"coding": 80, "qa": 80}
    assert rows_of(one, described(160, whole)) == "same data set"
    assert rows_of(one, described(159, whole)) == "other rows"
    assert rows_of(one, described(160, whole, first_turn_only=True)) == "other rows"
    assert rows_of(one, described(80, {"coding": 80}, categories=["coding"])) == "other rows"
    assert rows_of(one, described(160, whole, path="out/demo/full")) == "other rows"
    assert rows_of(one, described(160, whole, config="throughput_1k")) == "other rows"
    assert rows_of(one, described(160, whole, format="jsonl")) == "other rows"


def test_figures_are_over_the_same_rows_where_the_digest_is_theirs():
    one = published_figures("spec-bench-vicuna-7b-eagle")[0]
    assert rows_of(one, described(1, {"qa": 1}, sha=one.split_sha256, path="elsewhere")) == "same rows"


@pytest.mark.mirror
def test_spec_benchs_rows_have_the_digest_that_the_recipes_name(mirror):
    path = mirror / "_web" / "hemingkx" / "Spec-Bench" / "data" / "spec_bench" / "question.jsonl"
    split = load_split(DataConfig(format="spec_bench", path=str(path)))
    assert {one.split_sha256 for one in published_figures("spec-bench-vicuna-7b-pld")} == {split.sha256}
    assert set(published_figures("spec-bench-vicuna-7b-pld")[0].speed_up) == set(split.total)


def test_nothing_is_published_of_what_is_no_recipe():
    assert published_figures("") == published_figures("gone") == ()


def test_settings_that_differ_are_told_and_those_that_nobody_states_are_not():
    (one,) = table_1("speed-bench-llama-3.3-70b-eagle3", 0.0)
    assert unlike_settings(one, described(1, {"qa": 1})) == ("temperature 1, published 0", "batch size 8, published 32")
    assert "self" not in conditions(one)
    assert conditions(one).startswith("1 NVIDIA B200, batch size 32, draft length 3, temperature 0")


def summary_of(by_category, *, headline, pooled):
    """As much of a summary as the comparison reads."""

    def table(value):
        return {"figures": {"acceptance_length": {"request_mean": value, "pooled": value and value + 0.5}}}

    overall = {"headline": {"acceptance_length": {"value": headline}}, "figures": {}}
    overall["figures"] = {"acceptance_length": {"request_mean": None, "pooled": pooled}}
    by = {"category": {name: table(value) for name, value in by_category.items()}}
    return {"synthetic_prompts": False, "overall": overall, "by": by}


def told_beside(recipe, summary, **more):
    run = described(160, {"coding": 80, "qa": 80}, **more)
    run["config"]["engine"]["recipe"] = recipe
    run["config"]["sampling"]["temperature"] = 0.0
    return run, published_rows(run, summary)[1:]


def test_each_published_figure_stands_beside_the_runs_own_of_that_category():
    summary = summary_of({"coding": 2.5, "qa": None}, headline=2.25, pooled=2.0)
    _, rows = told_beside("speed-bench-gpt-oss-120b-eagle3", summary, path="elsewhere")
    cells = {(row[0], row[1]): row[2:5] for row in rows}
    assert cells["acceptance_length", "mean"] == ["2.2500", "2.2500", "other rows"]
    assert cells["acceptance_length", "coding"] == ["2.5000", "2.4600", "other rows"]
    assert cells["acceptance_length", "qa"] == ["n/a", "2.2500", "other rows"], "nobody measured is not zero"
    assert cells["acceptance_length", "stem"] == ["n/a", "2.2800", "other rows"], "this run has no such category"
    assert cells["speed_up", "mean"] == ["n/a", "1.3400", "other rows"], "a speed-up takes a baseline"
    assert {row[5] for row in rows} == {"batch size 8, published 32"}
    assert all("measured by those who made the method or the draft model" in row[7] for row in rows)


def test_a_mean_over_all_steps_stands_beside_the_pooled_figure():
    summary = summary_of({}, headline=2.25, pooled=2.0)
    _, rows = told_beside("spec-bench-vicuna-7b-eagle", summary, format="spec_bench")
    assert [row[2:4] for row in rows if row[0] == "acceptance_length"] == [["2.0000", "3.5700"]]


def test_figures_of_another_config_or_temperature_stay_away():
    summary = summary_of({}, headline=None, pooled=None)
    _, rows = told_beside("speed-bench-llama-3.3-70b-eagle3", summary, config="throughput_2k")
    assert {row[6] for row in rows} == {"SPEED-Bench (arXiv 2604.09557v2), Table 10"}
    assert [row[3] for row in rows] == ["1.8600", "2.5900", "1.3900", "1.9100"]
    _, rows = told_beside("speed-bench-deepseek-r1-mtp", summary)
    assert len(rows) == 13, "eleven categories and two means, at temperature 0"
    _, rows = told_beside("", summary)
    assert rows == []


# -- the page


def test_the_table_in_docs_is_what_the_recipes_say():
    text = DOCS.read_text("utf-8")
    assert docs_table(list_recipes()) in text, "paste the output of `speedbench bench recipes list --markdown`"


def test_every_system_of_both_papers_has_a_row_that_says_what_is_untested():
    rows = [line for line in DOCS.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert len(rows) == len(RECIPES)
    for name in TABLE_1:
        (row,) = [line for line in rows if f"`{name}`" in line]
        assert "never started here" in row
