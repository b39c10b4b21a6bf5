"""The card: golden files byte for byte, YAML that parses back to what was meant, and no figure from anywhere else."""

from __future__ import annotations

import dataclasses
import re
import string

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cards.columns import MEANINGS
from cards.facts import CardFacts
from cards.render import canary, cell, front_matter, render_card
from cards.stamps import STAMPS, place, with_stamps
from curation.schema import SENTINEL, SPLIT_SCHEMA
from curation.verify.card import tables
from tests.cards.golden_files import GOLDEN, rendered
from tests.cards.made_up_facts import EXAMPLES, FACTS

CARD = render_card(FACTS)
MATTER, BODY = re.fullmatch(r"---\n(.*?)\n---\n\n(.*)", CARD, re.DOTALL).groups()


@pytest.mark.parametrize("name", ["README.md", "LICENSE.md"])
def test_the_golden_file_is_met_byte_for_byte(name):
    wanted = (GOLDEN / name).read_bytes()
    assert rendered()[name].encode() == wanted, "if the change is meant: `make golden`, and read the difference"


def test_the_first_line_says_that_it_is_not_nvidias_set():
    heading, first, *_ = [line for line in BODY.splitlines() if line]
    assert heading.startswith("# ")
    assert first.startswith("An independent re-curation in the manner of SPEED-Bench, not NVIDIA's set")
    assert "acceptance lengths measured on it are not comparable" in first


def test_the_front_matter_parses_back_to_what_was_meant():
    wanted = front_matter(FACTS)
    assert yaml.safe_load(MATTER) == wanted
    assert wanted["language"] == ["en", "no", "zh"], "codes that the Hub knows"
    assert "- 'no'" in MATTER, "unquoted it would be false"
    assert [c["config_name"] for c in wanted["configs"] if c.get("default")] == ["qualitative"]
    assert wanted["configs"][1]["data_files"] == [{"split": "test", "path": "data/throughput_1k.parquet"}]
    assert wanted["dataset_info"][0]["splits"] == [{"name": "test", "num_bytes": 12345, "num_examples": 5}]
    assert wanted["source_datasets"] == ["acme/open"]


def test_every_section_is_there_in_its_order():
    assert re.findall(r"^## (.*)$", BODY, re.MULTILINE) == [
        "What it is, and what it is not",
        "Quick start",
        "Configs",
        "Columns",
        "How it was made",
        "Sources and licences",
        "Placeholders",
        "Statistics",
        "Self-audit",
        "Limits",
        "Checksums",
        "Changelog",
        "Citation",
        "Contact",
        "Canary",
    ]


def test_no_number_is_typed_by_hand():
    """Without its facts the template holds no number but those that are part of a name."""
    from importlib import resources

    words = (resources.files("cards") / "dataset_card.md").read_text("utf-8")
    words = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", words, flags=re.DOTALL)
    words = words.replace("SHA-256", "").replace("SHA256", "").replace("sha256", "").replace("2604.09557", "")
    words = re.sub(r"^\d\. ", "", words, flags=re.MULTILINE)  # places of a list
    words = words.replace("Table 1 of that paper", "").replace("rows[0]", "").replace("8-grams", "")
    assert re.findall(r"\d+", words) == []


def test_every_column_has_a_meaning_and_an_example():
    assert set(MEANINGS) == set(SPLIT_SCHEMA.names)
    (columns,) = [rows for head, rows in tables(BODY) if head[0] == "column"]
    assert [row[0].strip("`") for row in columns] == [name for name, _ in FACTS.main.columns]
    assert len(EXAMPLES) == len(FACTS.main.columns)


def test_reasons_beyond_the_first_are_counted_in_one_line():
    assert "| read | reason 7 | 13 |" in BODY
    assert "| read | 3 other reasons | 33 |" in BODY, "12 + 11 + 10"
    assert "reason 8" not in BODY


def test_a_release_finds_its_places():
    for name in STAMPS:
        assert CARD.count(place(name)) == 1
    stamped = with_stamps(CARD, dict.fromkeys(STAMPS, "words"))
    assert "added by the release" not in stamped


def test_the_canary_is_the_same_in_every_release_and_another_for_another_recipe():
    assert canary("v1") == canary("v1") != canary("v2")
    assert canary("made-up") in BODY


def test_no_turn_of_the_card_could_be_taken_for_a_placeholder():
    assert SENTINEL not in CARD


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"throughput": None}, "### Exact lengths"),
        ({"categories": ()}, "### The choice, and its certificate"),
        ({"plots": ()}, "!["),
        ({"notes": ()}, "Built for a test."),
        ({"versions": ()}, "Made with"),
        ({"settings": (), "throughput": None}, "Remove copies"),
    ],
)
def test_what_was_not_measured_is_not_stated(changes, words):
    assert words in CARD
    assert words not in render_card(dataclasses.replace(FACTS, **changes))


def test_a_build_without_self_audit_says_how_to_make_one():
    text = render_card(dataclasses.replace(FACTS, self_audit=None))
    assert "Not part of this build. Run `speedbench audit self DIST`." in text
    assert "| faults |" not in text


def test_a_build_without_placeholders_says_so():
    open_only = dataclasses.replace(FACTS, sources=FACTS.sources[1:])
    assert "This build has none." in render_card(open_only)


def cells_of(markdown: str) -> list[list[str]]:
    """The cells of a table as a reader of Markdown sees them."""
    rows, tokens = [], MarkdownIt("commonmark").enable("table").parse(markdown)
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline":
            rows[-1].append("".join(child.content for child in token.children if child.type != "softbreak"))
    return rows


@given(
    st.text(st.one_of(st.sampled_from(string.punctuation + " \n\ta"), st.characters(exclude_categories=["Cs", "Cc"])))
)
@example("a &lt; b &amp;&amp; [c](d) <e> ~~f~~ `g` **h** \\| i")
def test_a_cell_shows_its_text_and_nothing_of_it_is_markup(text):
    rows = cells_of(f"| a | b |\n|---|---|\n| {cell(text)} | end |\n")
    assert len(rows[1]) == 2
    assert rows[1][1] == "end"
    assert " ".join(rows[1][0].split()) == " ".join(text.split())


def test_facts_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FACTS.recipe = "other"  # type: ignore[misc]
    assert isinstance(hash(FACTS), int), "nothing in them can change"
    assert isinstance(FACTS, CardFacts)
