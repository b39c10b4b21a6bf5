"""Recipes: what is wrong with one is said in one line that names the recipe and the field."""

from __future__ import annotations

import pytest

from curation.errors import RecipeError
from curation.recipe import load_recipe


def _written(folder, text: str | bytes, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff\xfe\x00", "not UTF-8 at byte 0"),
        ('name = "x"\nname = "y"', "not TOML"),
        ("a=" + "[" * 5_000, "not TOML"),
        ('extends = "demo"\n[selection]\nquotaa = 3', r"selection\.quotaa: Extra inputs"),
        ('extends = "demo"\n[selection]\nquota = 1', r"selection\.quota: .*greater than or equal to 2"),
        ('extends = "demo"\n[selection]\nquota = 4\nnested = [4]', r"selection\.nested must lie in \[2, 4\), got 4"),
        ('extends = "demo"\n[selection]\ncategories = ["maths"]', r"selection\.categories: .*no category 'maths'"),
        ('extends = "demo"\n[selection]\ncategories = ["qa", "qa"]', "a category is named twice"),
        ('extends = "demo"\nselection = 3', "selection: "),
        ('extends = "nowhere"', "recipe nowhere: not a file"),
    ],
)
def test_a_recipe_that_cannot_be_used_is_refused_by_field(tmp_path, text, said):
    with pytest.raises(RecipeError, match=said) as refusal:
        load_recipe(_written(tmp_path, text))
    assert "\n" not in str(refusal.value)


def test_a_recipe_that_extends_itself_through_another_is_refused(tmp_path):
    first = _written(tmp_path, f'extends = "{tmp_path}/b.toml"', "a.toml")
    _written(tmp_path, f'extends = "{first}"', "b.toml")
    with pytest.raises(RecipeError, match=r"extends itself through .*a\.toml -> .*b\.toml"):
        load_recipe(first)


def test_a_byte_order_mark_is_no_part_of_a_recipe(tmp_path):
    assert load_recipe(_written(tmp_path, b'\xef\xbb\xbfextends = "demo"\n')) == load_recipe("demo")
