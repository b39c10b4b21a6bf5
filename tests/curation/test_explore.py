"""The page of `speedbench explore`: what it holds, what it says that it has not, and that texts stay texts."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cards.explore_page import as_json
from curation.errors import DistError
from curation.explore import HEAD_CHARS, MAX_DROPS, TAIL_CHARS, explore_dist, shortened
from curation.load import config_files
from curation.schema import SENTINEL
from curation.stages.base import Drop, ledger_table
from curation.store import write_table
from speedbench.cli import cli
from tests.curation.explore_build import CANDIDATES, HOSTILE, LONG, RIGHT_TO_LEFT, explore_build, id_of


class Page(HTMLParser):
    """The elements of a page, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1] += data

    @property
    def data(self) -> dict:
        """What the page's own script reads."""
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return explore_build(tmp_path_factory.mktemp("explore") / "out")


@pytest.fixture(scope="module")
def full(build, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("page") / "page.html"
    explore_dist(build.full, out)
    return out.read_text("utf-8")


def row_of(data: dict, question: str) -> dict:
    place = data["rows"]["id"].index(question)
    row = {column: values[place] for column, values in data["rows"].items()}
    return row | {facet: names[row[facet]] for facet, names in data["names"].items()}


def test_every_row_is_there_in_the_order_of_the_card(full, build):
    data = Page(full).data
    wanted = [
        (config, i)
        for config in ("qualitative", "spec_bench", "throughput_1k")
        for path in config_files(build.full)[config]
        for i in pq.read_table(path).column("question_id").to_pylist()
    ]
    configs = [data["names"]["config"][i] for i in data["rows"]["config"]]
    assert list(zip(configs, data["rows"]["id"], strict=True)) == wanted


def test_a_row_has_its_facts_and_what_the_pool_and_the_ledger_say_of_it(full):
    data = Page(full).data
    row = row_of(data, id_of("gsm8k:g1"))
    assert (row["category"], row["language"], row["difficulty"], row["status"]) == ("math", "en", "easy", "full")
    assert row["turns"] == ["How many legs have three hens?"]
    assert row["drops"] == [["gsm8k:copy", "dedup_near", "near_duplicate", 0.875]]
    near = [(data["candidates"][place], cosine) for place, cosine in row["neighbours"]]
    assert [c[0] for c, _ in near][:2] == ["gsm8k:g2", "gsm8k:g3"], "10 degrees away, then 90; not itself"
    assert [cosine for _, cosine in near][:2] == [0.985, 0.0]
    assert near[0][0][1:] == ["math", "", "Count the legs of four hens."], "not chosen"
    assert near[1][0][2] == id_of("gsm8k:g3"), "chosen, so it names its row"
    assert row_of(data, id_of("gsm8k:g3"))["drops"] == []


def test_spec_benchs_rows_have_neighbours_in_our_pool_and_no_place_in_its_pictures(full):
    data = Page(full).data
    row = row_of(data, id_of("spec_bench:s1", "spec_bench"))
    assert {data["candidates"][place][0] for place, _ in row["neighbours"][:2]} == {"gsm8k:g1", "gsm8k:g2"}
    assert row["point"] is None


def test_a_picture_a_category_shows_all_its_candidates_and_the_chosen_ones(full):
    figures = re.findall(r'<figure data-category="(\w+)">(.*?)</figure>', full, re.DOTALL)
    assert [name for name, _ in figures] == ["math", "reasoning"]
    for name, figure in figures:
        members = [facts for facts in CANDIDATES.values() if facts[0] == name]
        chosen = sum(facts[5] for facts in members)
        paths = dict(re.findall(r'<path class="(\w+)" d="([^"]*)"', figure))
        assert (paths["chosen"].count("M"), paths["candidates"].count("M")) == (chosen, len(members) - chosen)
        assert f"{chosen} of {len(members)} candidates chosen" in figure
    data = Page(full).data
    category, x, y = row_of(data, id_of("gsm8k:g1"))["point"]
    assert category == "math"
    assert f"M{x} {y}h0" in dict(figures)["math"], "the row lies where its dot is"


def test_no_text_of_a_row_becomes_markup(full):
    page = Page(full)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 3, "the data, the page's script, the tables' script"
    assert "img" not in tags
    assert all("onerror" not in attributes for _, attributes in page.elements)
    shown = row_of(page.data, id_of("mmlu_pro:p1"))["turns"]
    assert shown == [HOSTILE.replace("\u202e", ""), "And then?"], "whole, but for what would turn it round"


def test_the_page_needs_nothing_else(full):
    for _, attributes in Page(full).elements:
        assert not {"src", "href"} & set(attributes) or attributes["href"].startswith("#")
    assert "@import" not in full
    assert "url(" not in full


def test_long_turns_are_cut_with_the_number_of_what_is_left_out(full):
    (turn,) = row_of(Page(full).data, id_of("long_code_arena:c1", "throughput_1k"))["turns"]
    assert turn == [LONG[:HEAD_CHARS], len(LONG) - HEAD_CHARS - TAIL_CHARS, LONG[-TAIL_CHARS:]]
    assert f"the first {HEAD_CHARS:,} and the last {TAIL_CHARS:,}" in full


@given(st.text(max_size=2_000))
def test_what_is_shown_and_what_is_left_out_is_the_text(text):
    text = text * 3
    begin, left_out, end = shortened(text)
    assert len(begin) + left_out + len(end) == len(text)
    assert text.startswith(begin)
    assert text.endswith(end)
    assert left_out == 0 or (len(begin), len(end)) == (HEAD_CHARS, TAIL_CHARS)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_data_in_the_page_is_read_back_as_it_was_and_ends_no_element(value):
    text = as_json(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029]", text)


def test_dist_shows_no_text_that_it_may_not(build, tmp_path):
    explored = explore_dist(build.dist, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "Withheld" not in text
    row = row_of(Page(text).data, id_of("hle:h1"))
    assert (row["status"], row["turns"]) == ("placeholder", [SENTINEL])
    assert any("neighbours is not shown" in note for note in explored.notes)
    assert "not let be passed on: keep it to yourself" not in text


def test_full_says_that_it_is_not_to_be_passed_on(full):
    assert "Withheld" in full
    assert "keep it to yourself" in full


def test_without_a_pool_the_page_says_what_it_has_not(build, tmp_path):
    shutil.copytree(build.dist, tmp_path / "alone")
    explored = explore_dist(tmp_path / "alone", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<figure" not in text
    assert "No nearest neighbours, languages and pictures: there is no pool beside this folder" in text
    assert "no ledger.parquet beside alone" in text
    assert all(note in text for note in explored.notes)
    assert row_of(Page(text).data, id_of("gsm8k:g1"))["neighbours"] == []


def test_nvidias_set_has_a_page_too(tmp_path):
    """Its rows lack our columns, and its placeholders carry a template behind the sentinel."""
    shared = {"sub_category": None, "source": "x", "difficulty": None, "multiturn": False}
    rows = [
        shared | {"question_id": "q1", "category": "math", "turns": ["Add."], "src_id": "1"},
        shared | {"question_id": "q2", "category": "qa", "turns": [f"{SENTINEL}\n\n{{question}}"], "src_id": "2"},
    ]
    folder = tmp_path / "set"
    (folder / "qualitative").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "qualitative" / "test.parquet")
    explored = explore_dist(folder, tmp_path / "page.html")
    data = Page((tmp_path / "page.html").read_text("utf-8")).data
    assert explored.num_rows == 2
    assert [data["names"]["status"][i] for i in data["rows"]["status"]] == ["full", "placeholder"]
    assert data["rows"]["num_tokens"] == [None, None]


def test_many_dropped_records_are_counted(build, tmp_path):
    shutil.copytree(build.root, tmp_path / "out")
    drops = [Drop(f"gsm8k:d{i:03}", "dedup_near", "near_duplicate", "gsm8k:g1", 0.9) for i in range(MAX_DROPS + 7)]
    write_table(tmp_path / "out" / "ledger.parquet", ledger_table(drops))
    explore_dist(tmp_path / "out" / "full", tmp_path / "page.html")
    row = row_of(Page((tmp_path / "page.html").read_text("utf-8")).data, id_of("gsm8k:g1"))
    assert (len(row["drops"]), row["num_drops"]) == (MAX_DROPS, MAX_DROPS + 7)


def test_the_same_build_gives_the_same_page(build, tmp_path):
    for name in ("a.html", "b.html"):
        explore_dist(build.full, tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert str(tmp_path.parent) not in (tmp_path / "a.html").read_text("utf-8"), "no path of this machine"


def test_a_file_that_was_changed_is_refused_and_no_page_is_left(build, tmp_path):
    shutil.copytree(build.root, tmp_path / "out")
    path = tmp_path / "out" / "full" / "data" / "qualitative.parquet"
    write_table(path, pq.read_table(path).slice(1))
    with pytest.raises(DistError, match=r"qualitative\.parquet: its SHA-256 differs from SHA256SUMS"):
        explore_dist(tmp_path / "out" / "full", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_folder_without_splits_is_refused(tmp_path):
    with pytest.raises(DistError, match="no parquet file of a config"):
        explore_dist(tmp_path, tmp_path / "page.html")


def test_the_command_prints_the_page_and_says_the_size(build, tmp_path):
    out = tmp_path / "page.html"
    result = CliRunner().invoke(cli, ["explore", str(build.full), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out}\n"
    assert "6 rows, 0.0 MB" in result.stderr
    result = CliRunner().invoke(cli, ["explore", str(build.full), "--out", str(out), "--json"])
    document = json.loads(result.stdout)
    assert (document["page"], document["num_rows"], document["num_bytes"]) == (str(out), 6, out.stat().st_size)


def test_writing_of_the_other_direction_is_marked_by_its_own(full):
    assert RIGHT_TO_LEFT in full
    assert 'dir: "auto"' in full


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_a_broken_file_is_refused_by_name(tmp_path, content):
    folder = tmp_path / "set" / "data"
    folder.mkdir(parents=True)
    (folder / "qualitative.parquet").write_bytes(content)
    with pytest.raises(DistError, match=r"qualitative\.parquet"):
        explore_dist(tmp_path / "set", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
