"""The card's facts are those of the files, the ledger and the acts of the build."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.facts import LengthFacts
from curation import card_facts
from curation.card_facts import audit_facts, category_facts, recipe_settings, throughput_facts
from curation.diversity_input import read_pool
from curation.recipe import load_recipe
from curation.row_facts import config_facts, length_facts, source_facts
from sources.disk import file_sha256
from tests.curation.explore_build import CANDIDATES, SPECS, explore_build

CONFIGS = ("qualitative", "spec_bench", "throughput_1k")
LANGUAGES = {record: facts[1] for record, facts in CANDIDATES.items()}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return explore_build(tmp_path_factory.mktemp("facts") / "out")


def test_quartiles_worked_by_hand():
    assert length_facts([4, 1, 3, 2, 90]) == LengthFacts(1, 2.0, 3.0, 4.0, 90, 20.0)
    assert length_facts([7]) == LengthFacts(7, 7.0, 7.0, 7.0, 7, 7.0)


def test_no_rows_have_no_quartiles():
    with pytest.raises(ValueError, match="no rows"):
        length_facts([])


@given(st.lists(st.integers(0, 40_000), min_size=1))
def test_quartiles_lie_in_their_order_and_the_order_of_the_rows_is_nothing(lengths):
    facts = length_facts(lengths)
    ordered = [facts.minimum, facts.lower_quartile, facts.median, facts.upper_quartile, facts.maximum]
    assert ordered == sorted(ordered)
    assert length_facts(sorted(lengths, reverse=True)) == facts


def test_the_facts_of_a_config_are_those_of_its_file(build):
    facts = config_facts(build.dist, CONFIGS, LANGUAGES)
    assert [c.name for c in facts] == list(CONFIGS)
    qualitative = facts[0]
    table = pq.read_table(build.dist / qualitative.path)
    assert (qualitative.num_rows, qualitative.sha256) == (table.num_rows, file_sha256(build.dist / qualitative.path))
    assert qualitative.num_placeholders == table.column("text_status").to_pylist().count("placeholder") == 1
    assert qualitative.num_multiturn == sum(table.column("multiturn").to_pylist()) == 1
    assert {g.name: g.num_rows for g in qualitative.categories} == Counter(table.column("category").to_pylist())
    math = qualitative.categories[0]
    assert (math.difficulties, math.languages) == ((("easy", 1), ("", 1)), (("en", 1), ("no", 1)))
    assert facts[1].categories[0].languages == (("", 1),), "of a record that is not in the pool nothing is known"


def test_the_example_is_of_a_row_whose_text_is_published(build):
    qualitative, spec_bench, _ = config_facts(build.dist, CONFIGS)
    example = dict(zip([name for name, _ in qualitative.columns], qualitative.examples, strict=True))
    assert example["text_status"] == '"full"'
    assert spec_bench.examples == (), "all its rows are placeholders"


def test_a_source_counts_its_rows_in_each_config_and_its_placeholders(build):
    facts = {s.name: s for s in source_facts(build.dist, CONFIGS, SPECS, dict.fromkeys(SPECS, "r"))}
    assert sorted(facts) == ["gsm8k", "hle", "long_code_arena", "mmlu_pro", "spec_bench"]
    assert (facts["gsm8k"].num_rows, facts["gsm8k"].configs) == (2, (("qualitative", 2),))
    assert (facts["hle"].num_placeholders, facts["hle"].published) == (1, False)
    assert (facts["mmlu_pro"].num_placeholders, facts["mmlu_pro"].published) == (0, True)
    assert facts["hle"].url == "https://huggingface.co/datasets/cais/hle"


def test_every_setting_of_a_recipe_is_named(tmp_path):
    settings = dict(recipe_settings(load_recipe("v1")))
    assert settings["selection.quota"] == "80"
    assert settings["throughput.buckets"] == "1000, 2000, 8000, 16000, 32000"
    assert settings["decontaminate.reference"] == "none"
    assert settings["throughput.sampled"] == "none"
    assert settings["dedup.max_miss_probability"] == "1e-09"
    assert "name" not in settings


def test_cosines_of_a_category_worked_by_hand(build):
    """Two unit rows at right angles: |sum|^2 = 2, mean cosine 0. Random choice of both is the same two rows."""
    figures = {
        "math": {"candidates": 2, "chosen": 2, "objective": 2.0, "bound": 1.9, "gap": 0.05, "greedy_objective": 3.0}
    }
    (math,) = category_facts(figures, None)
    assert (math.mean_cosine, math.bound_cosine, math.greedy_cosine) == (0.0, pytest.approx(-0.05), 0.5)
    assert (math.random_cosine, math.spec_bench_cosine) == (None, None), "without a pool they are not known"
    all_three = {"math": {**figures["math"], "chosen": 3, "candidates": 3}}
    (math,) = category_facts(all_three, read_pool(build.full))
    angles = np.deg2rad([10, 90, 80])  # between the three candidates of math
    assert math.random_cosine == pytest.approx(np.cos(angles).mean(), abs=1e-6)
    assert math.spec_bench_cosine is None, "one row has no pair"


def test_random_choice_is_among_the_candidates_that_have_a_vector(build):
    pool = read_pool(build.full)
    vectors = np.array(pool.vectors)
    vectors[0] = np.nan  # the first of math; the two that are left lie 80 degrees apart
    figures = {"math": {"candidates": 3, "chosen": 2, "objective": 2.0}}
    (math,) = category_facts(figures, dataclasses.replace(pool, vectors=vectors))
    assert math.random_cosine == pytest.approx(np.cos(np.deg2rad(80)), abs=1e-6)


def test_a_category_of_one_row_has_no_cosine():
    (math,) = category_facts({"math": {"candidates": 1, "chosen": 1, "objective": 1.0, "bound": 1.0}}, None)
    assert (math.mean_cosine, math.bound_cosine) == (None, None)


def test_the_prefix_rule_has_the_recipes_number():
    recipe = load_recipe("v1")
    changed = recipe.model_copy(
        update={"throughput": recipe.throughput.model_copy(update={"max_shared_prefix_tokens": 19})}
    )
    facts = throughput_facts({"cells": [], "shared": [], "tier_order": []}, changed)
    assert "share their first 20 tokens" in facts.prefix_rule
    assert throughput_facts(None, recipe) is None


def test_configs_that_are_too_large_are_named_and_not_compared(build, monkeypatch):
    recipe = load_recipe("v1")
    configs = config_facts(build.dist, CONFIGS)
    everything = audit_facts(build, recipe, configs)
    assert (dict(everything.configs), everything.left_out) == (
        {"qualitative": 4, "spec_bench": 1, "throughput_1k": 1},
        (),
    )
    monkeypatch.setattr(card_facts, "MAX_AUDITED_TOKENS", 7)  # qualitative has four rows of seven
    some = audit_facts(build, recipe, configs)
    assert (dict(some.configs), some.left_out) == ({"spec_bench": 1, "throughput_1k": 1}, ("qualitative",))
