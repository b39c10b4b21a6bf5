"""CoSER: one character's part in a scene of a book in the public domain."""

from __future__ import annotations

from typing import Any

import pytest

from sources.adapters.coser import NO_MOTIVATION, PUBLIC_DOMAIN, SPEC, is_public_domain
from sources.registry import SOURCES

SOURCE = SOURCES["coser"]
SCENE: dict[str, Any] = {
    "book": "Hamlet",
    "scenario": "A cold night on the wall.",
    "topic": "The watch",
    "key_characters": [{"name": "Horatio", "motivation": "To see for himself."}, {"name": "Ghost", "motivation": ""}],
    "major_characters": ["Horatio"],
    "character_profiles": {"Horatio": "A scholar.", "Ghost": "A king that was.", "Stranger": None},
    "i_p": 1,
    "i_c": 0,
}


def _one(memory_files: Any, parsed: Any, **changed: Any) -> Any:
    (record,), rejected = parsed(SOURCE, memory_files(SPEC, {"test": [{**SCENE, **changed}]}))
    assert rejected == []
    return record


def test_the_prompt_holds_book_profile_scene_company_and_motivation(memory_files: Any, parsed: Any) -> None:
    record = _one(memory_files, parsed)
    (prompt,) = record.turns
    for part in ("Horatio", "Hamlet", "A scholar.", "A cold night", "- Ghost: A king that was.", "To see for himself."):
        assert part in prompt
    assert "Stranger" not in prompt, "a null profile belongs to another row"
    assert record.text == "A scholar.\n\nA cold night on the wall.\n\nGhost: A king that was.\n\nTo see for himself."
    assert (record.category, record.template_id, record.language) == ("roleplay", "coser/v1", "en")


def test_a_profile_of_someone_who_is_not_in_the_scene_is_left_out(memory_files: Any, parsed: Any) -> None:
    profiles = {"Horatio": "A scholar.", "Yorick": "A jester, long dead."}
    record = _one(memory_files, parsed, character_profiles=profiles)
    assert "Yorick" not in record.turns[0]
    assert "Also in the scene" not in record.turns[0]


def test_motivation_and_thought_are_the_same_field_of_two_copies(memory_files: Any, parsed: Any) -> None:
    other = [{"name": "Horatio", "thought": "To see for himself."}, {"name": "Ghost", "thought": ""}]
    assert _one(memory_files, parsed, key_characters=other) == _one(memory_files, parsed)


@pytest.mark.parametrize("characters", [None, [], [{"name": "Horatio"}], [{"name": "Horatio", "motivation": None}]])
def test_without_a_motivation_a_sentence_of_ours_stands_in(characters: Any, memory_files: Any, parsed: Any) -> None:
    record = _one(memory_files, parsed, key_characters=characters)
    assert NO_MOTIVATION.format(name="Horatio") in record.turns[0]
    assert NO_MOTIVATION[:10] not in record.text


def test_only_a_major_character_with_a_profile_is_drawn(memory_files: Any, parsed: Any) -> None:
    record = _one(memory_files, parsed, major_characters=["Stranger", "Nobody", "Ghost"])
    assert record.turns[0].startswith("Play Ghost,")


def test_every_major_character_is_drawn_in_some_scene(memory_files: Any, parsed: Any) -> None:
    rows = [{**SCENE, "i_p": i, "major_characters": ["Horatio", "Ghost"]} for i in range(40)]
    records, _ = parsed(SOURCE, memory_files(SPEC, {"test": rows}))
    drawn = [r.turns[0].startswith("Play Ghost,") for r in records]
    assert 8 <= sum(drawn) <= 32


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"book": "The Hunger Games (The Hunger Games, #1)"}, "the book 'The Hunger Games"),
        ({"book": "The Awakening (The Vampire Diaries, #1)"}, "the book 'The Awakening"),
        ({"book": "Inferno (Robert Langdon, #4)"}, "the book 'Inferno"),
        ({"book": None}, "no book"),
        ({"scenario": "  "}, "empty scenario"),
        ({"character_profiles": {"Horatio": None}}, "no major character"),
        ({"character_profiles": None}, "no major character"),
        ({"major_characters": []}, "no major character"),
        ({"major_characters": None}, "no major character"),
    ],
)
def test_a_row_that_cannot_be_played_is_rejected(
    changed: dict[str, Any], reason: str, memory_files: Any, parsed: Any
) -> None:
    records, rejected = parsed(SOURCE, memory_files(SPEC, {"test": [{**SCENE, **changed}]}))
    assert records == []
    assert rejected[0].reason.startswith(reason)


def test_titles_are_compared_whole_but_for_case_and_quotes() -> None:
    assert is_public_domain("  tess of the d’urbervilles ")
    assert is_public_domain("Moby-Dick or, the Whale")
    assert not is_public_domain("Emma Watson")
    assert not is_public_domain("")
    assert all(number > 0 for number in PUBLIC_DOMAIN.values())


@pytest.mark.mirror
def test_the_three_real_scenes_are_kept(mirror_files: Any, parsed: Any) -> None:
    records, rejected = parsed(SOURCE, mirror_files(SPEC)[0])
    assert (len(records), len(rejected)) == (3, 0)
