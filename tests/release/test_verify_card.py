"""What the card says is what the files hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.stamps import STAMPS, place, with_stamps, without_stamps
from curation.schema import SPLIT_SCHEMA
from curation.verify.card import features_of, tables
from curation.verify.registry import verify_dist
from tests.release.tiny_build import copy_of, seal

STALE = """---
configs:
- config_name: demo
  data_files:
  - split: test
    path: demo/test.parquet
dataset_info:
- config_name: demo
  features:
  - name: question_id
    dtype: string
  - name: category
    dtype: string
  splits:
  - name: test
    num_bytes: 512
    num_examples: 9
---
# Riddles

9 prompts in 3 categories; 5 rows are of math.

| category | rows |
|---|---|
| math | 5 |
| qa | 2 |
| rag | 2 |
"""


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A set of eight rows whose card was written when it had nine."""
    rows = [
        {"question_id": f"q{i}", "category": category, "turns": [f"Riddle {i}?"]}
        for i, category in enumerate(["math"] * 5 + ["qa"] * 3)
    ]
    (tmp_path / "demo").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "demo" / "test.parquet")
    (tmp_path / "README.md").write_text(STALE)
    return tmp_path


def card_lines(folder: Path) -> list[str]:
    found = verify_dist(folder, is_local=True).faults
    return [f"{fault.row}: {fault.message}" for fault in found if fault.check == "card"]


def test_every_stale_claim_is_listed_in_one_pass(demo: Path) -> None:
    assert card_lines(demo) == [
        "dataset_info of demo: features lack 'turns'",
        "dataset_info of demo: num_examples 9, the data has 8",
        "table of category: qa 2, the data has 3",
        "table of category: rag 2 has no rows in the data",
        "text: '9 prompts', the data has 3, 5, 8",
        "text: '3 categories', the data has 2",
    ]


def test_a_table_that_leaves_a_category_out_is_a_fault(demo: Path) -> None:
    (demo / "README.md").write_text(STALE.replace("| qa | 2 |\n", ""))
    assert "table of category: qa is absent, the data has 3" in card_lines(demo)


def test_a_card_mended_from_the_data_has_no_fault(demo: Path) -> None:
    mended = (
        STALE.replace("num_examples: 9", "num_examples: 8")
        .replace("    dtype: string\n  splits", "    dtype: string\n  - name: turns\n    list: string\n  splits")
        .replace("9 prompts in 3 categories", "8 prompts in 2 categories")
        .replace("| qa | 2 |\n| rag | 2 |", "| qa | 3 |")
    )
    (demo / "README.md").write_text(mended)
    assert card_lines(demo) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("config_name: demo\n  data", "config_name: 8000\n  data", "configs: config_name 8000 is no text"),
        ("config_name: demo\n  data", "config_name: other\n  data", "configs: demo has a file and no entry"),
        ("- config_name: demo\n  features", "- config_name: demo2\n  features", "dataset_info of demo: absent"),
        ("name: category\n    dtype: string", "name: category\n    dtype: int64", "feature 'category' is"),
        ("  - name: category", "  - name: grade\n    dtype: int64\n  - name: category", "'grade' is not in the data"),
        ("---\nconfigs", "configs", "front matter: absent, or not YAML"),
        ("configs:", "configs: [", "front matter: absent, or not YAML"),
    ],
)
def test_front_matter_that_is_wrong_is_named(demo: Path, old: str, new: str, message: str) -> None:
    assert old in STALE
    (demo / "README.md").write_text(STALE.replace(old, new, 1))
    assert any(message in line for line in card_lines(demo)), card_lines(demo)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("default: true", "default: false", "not exactly one config is the default"),
        ("path: data/qualitative.parquet", "path: data/*.parquet", "data_files of qualitative are not split test"),
        ("split: test", "split: train", "are not split test of"),
        ("dataset_size: ", "dataset_size: 1", "dataset_size"),
        ("num_bytes: ", "num_bytes: 1", "num_bytes"),
        ("download_size: ", "download_size: 1", "download_size"),
        ("| `qualitative` | 6 |", "| `qualitative` | 7 |", "table of config: qualitative 7, the data has 6"),
        ("| math | 9 | 2 |", "| math | 9 | 3 |", "table of category: math 3, the data has 2"),
    ],
)
def test_a_card_of_ours_is_held_to_more(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(built / "lock.toml"))
    dist = copy_of(built, tmp_path / "copy")
    text = (dist / "README.md").read_text()
    assert old in text
    (dist / "README.md").write_text(text.replace(old, new, 1))
    seal(dist)
    found = [f"{fault.check}: {fault}" for fault in verify_dist(dist).faults]
    assert found
    assert all("card" in line for line in found), "nothing else is wrong"
    assert any(message in line for line in found), found


def test_features_are_written_as_datasets_reads_them() -> None:
    kinds = {feature["name"]: feature.get("dtype", feature.get("list")) for feature in features_of(SPLIT_SCHEMA)}
    assert kinds["turns"] == kinds["question_id"] == "string"
    assert (kinds["multiturn"], kinds["num_tokens"]) == ("bool", "int32")


def test_tables_are_read_cell_by_cell() -> None:
    text = "words\n| a | b |\n|---|---|\n| 1 | `x` |\n| 2 |  |\n\n| lone |\n"
    assert list(tables(text)) == [(["a", "b"], [["1", "`x`"], ["2", ""]])]


# ---- what a release writes into a card

TEXTS = st.text(alphabet=st.characters(exclude_characters="<\r", exclude_categories=("Cs",)), min_size=1)


@given(st.dictionaries(st.sampled_from(sorted(STAMPS)), TEXTS), st.dictionaries(st.sampled_from(sorted(STAMPS)), TEXTS))
@pytest.mark.parametrize("card", ["# Card\n\ntext\n", f"# Card\n\n{place('changelog')}\n## End\n\n{place('release')}"])
def test_stamping_twice_is_stamping_once_and_can_be_undone(
    card: str, first: dict[str, str], second: dict[str, str]
) -> None:
    assert without_stamps(card) == card
    assert without_stamps(with_stamps(card, first)) == card
    assert with_stamps(with_stamps(card, first), second) == with_stamps(card, second)


def test_a_stamp_stands_in_its_place_or_at_the_end() -> None:
    card = f"# Card\n\n{place('changelog')}\nlast\n"
    stamped = with_stamps(card, {"changelog": "- one", "release": "v1"})
    assert stamped.index("- one") < stamped.index("last") < stamped.index("## Release") < stamped.index("v1")


@pytest.mark.parametrize(
    ("texts", "word"), [({"other": "x"}, "release, changelog"), ({"release": "<!-- x"}, "comment")]
)
def test_a_stamp_that_could_not_be_undone_is_refused(texts: dict[str, str], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        with_stamps("# Card\n", texts)
