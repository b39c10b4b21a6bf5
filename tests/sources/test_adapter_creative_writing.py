"""Creative Writing v3: a base prompt gives one record for each seed modifier."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sources.adapters.creative_writing import MARK, SPEC
from sources.registry import SOURCES

SOURCE = SOURCES["creative_writing"]


def _prompts(**values: Any) -> dict[str, Any]:
    return {"prompts": [{"key": key.lstrip("p"), "value": value} for key, value in values.items()]}


def test_each_modifier_replaces_the_mark_and_its_index_ends_the_id(memory_files: Any, parsed: Any) -> None:
    value = {
        "category": "humour",
        "title": "Kite",
        "writing_prompt": "A kite speaks. <SEED> 300 words.",
        "seed_modifiers": ["It lies.", "It lands."],
    }
    records, rejected = parsed(SOURCE, memory_files(SPEC, _prompts(p12=value)))
    assert rejected == []
    assert [(r.native_id, r.turns[0]) for r in records] == [
        ("12_0", "A kite speaks. It lies. 300 words."),
        ("12_1", "A kite speaks. It lands. 300 words."),
    ]
    assert {(r.category, r.sub_category, r.language, r.template_id) for r in records} == {
        ("writing", "humour", "en", "")
    }


def test_a_modifier_that_is_no_text_is_rejected_alone_and_moves_no_index(memory_files: Any, parsed: Any) -> None:
    value = {"writing_prompt": "<SEED>!", "seed_modifiers": ["one", None, " ", 4, "five"]}
    records, rejected = parsed(SOURCE, memory_files(SPEC, _prompts(p1=value)))
    assert [r.native_id for r in records] == ["1_0", "1_4"]
    assert [r.reason for r in rejected] == [f"prompt 1: seed modifier {i} is empty or not a text" for i in (1, 2, 3)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"seed_modifiers": ["a"]}, "no writing_prompt"),
        ({"writing_prompt": "No mark.", "seed_modifiers": ["a"]}, f"holds {MARK} 0 times"),
        ({"writing_prompt": "<SEED> and <SEED>", "seed_modifiers": ["a"]}, f"holds {MARK} 2 times"),
        ({"writing_prompt": "<SEED>", "seed_modifiers": []}, "no seed_modifiers"),
        ({"writing_prompt": "<SEED>", "seed_modifiers": "a text"}, "no seed_modifiers"),
    ],
)
def test_a_base_prompt_of_another_shape_is_rejected_whole(
    value: dict[str, Any], reason: str, memory_files: Any, parsed: Any
) -> None:
    records, rejected = parsed(SOURCE, memory_files(SPEC, _prompts(p9=value)))
    assert records == []
    assert len(rejected) == 1
    assert reason in rejected[0].reason
    assert "prompt 9" in rejected[0].reason


@pytest.mark.mirror
def test_the_real_32_prompts_expand_to_321_that_hold_no_mark(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, mirror_files(SPEC)[0])
    assert (len(records), len(rejected)) == (321, 0)
    assert len(Counter(r.native_id.partition("_")[0] for r in records)) == 32
    assert not any(MARK in r.turns[0] for r in records)
