"""The page of a result: its numbers are the summary's, what must not be shown is not, what matters cannot be missed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from bench.cli import bench
from bench.comparison.compare import compare
from bench.errors import BenchError
from bench.experiments.tasks import tasks_of
from bench.finished import read_side
from bench.measured import by_conversation
from bench.recipes.shipped import find_recipe, list_recipes
from bench.report.comparisons import find_baseline
from bench.report.experiments.parts import requests_of
from bench.report.page import render_report, write_report
from bench.report.registry import SECTIONS
from bench.report.results import LOSSLESS, Results, read_results
from bench.report.sections.acceptance import acceptance, detailed
from bench.report.sections.headline import headline
from bench.report.sections.provenance import provenance
from bench.report.sections.sweeps import throughput
from bench.report.sections.trust import losslessness
from bench.report.words import KINDS, kind_of, times, with_interval
from cards.page import render_page
from tests.bench.report_runs import HOSTILE, copy_run, edit, make_results


class Structure(HTMLParser):
    """Balance of the tags, addresses that would be loaded, and the text of each kind of element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.loads: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.loads += [v or "" for k, v in attrs if k in ("src", "href") and not (v or "").startswith("#")]
        if tag not in ("meta", "br", "link"):
            self.stack.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag, attrs) -> None:
        self.loads += [v or "" for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data) -> None:
        for tag in set(self.stack):
            self.texts[tag][-1] += data


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_results(tmp_path_factory.mktemp("report"))


def results_of(made, *names: str) -> Results:
    return read_results([made[name] for name in names])


def page_of(made, *names: str) -> str:
    return render_report(results_of(made, *names))


def shown_text(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", page[page.index("<body") : page.rindex("<script>")]))


def summary_of(made, name: str) -> dict:
    return json.loads((made[name] / "summary.json").read_text())


def test_the_headline_is_that_of_the_summary_with_its_interval(made):
    text = shown_text(page_of(made, "plain", "draft"))
    length = summary_of(made, "draft")["overall"]["headline"]["acceptance_length"]
    assert length["interval"]["low"] is not None
    assert with_interval(length["value"], length["interval"]) in text
    output = summary_of(made, "draft")["run"]["output_tps"]
    assert with_interval(output["value"], output["interval"]) in text


def test_the_speed_up_is_that_of_the_comparison(made):
    found = results_of(made, "plain", "draft").comparisons
    assert [(c.run.name, c.baseline.name) for c in found] == [("draft", "plain")]
    expected = compare(read_side(made["plain"]), read_side(made["draft"]))["speed_up"]["user_tps"]["ratio"]
    assert found[0].speed_up == expected
    assert times(expected) in shown_text(page_of(made, "plain", "draft"))


def test_every_category_and_every_position_stands_on_the_page(made):
    text = shown_text(page_of(made, "plain", "draft"))
    summary = summary_of(made, "draft")
    for category, table in summary["by"]["category"].items():
        length = table["figures"]["acceptance_length"]
        assert category in text
        assert with_interval(length["request_mean"], length["request_mean_interval"]) in text
    for rate in summary["overall"]["positions"]["acceptance_rates"]:
        assert f"{rate:,.4g}" in text


def poisoned(values):
    """The same tables with one number in the place of all."""
    if isinstance(values, dict):
        return {key: poisoned(value) for key, value in values.items()}
    if isinstance(values, list):
        return [poisoned(value) for value in values]
    return 987654.25 if isinstance(values, float) else values


def test_a_run_that_is_held_back_shows_its_gates_and_no_figure(made, tmp_path):
    draft, failing = results_of(made, "draft", "failing").runs
    assert failing.held_back
    tables = {key: poisoned(failing.summary[key]) for key in ("overall", "run", "by")}
    hidden = replace(failing, summary={**failing.summary, **tables}, path=tmp_path / "no traces to be read")
    page = render_report(Results((draft, hidden)))
    assert failing.summary["gates"][0]["detail"].split(":")[0] in shown_text(page)
    assert not re.search(r"\b987,?654", page)
    assert re.search(r"\b987,?654", render_report(Results((replace(draft, summary={**draft.summary, **tables}),))))


def test_a_page_of_runs_that_are_all_held_back_has_no_figure_at_all(made):
    page = page_of(made, "failing")
    assert "No figure is shown" in page
    assert "<figure" not in page


def test_runs_that_are_not_alike_are_not_compared_and_the_setting_is_named(made):
    (refused,) = results_of(made, "plain", "random").comparisons
    assert refused.result is None
    assert "split.sha256" in refused.refused
    assert not re.search("[0-9a-f]{40}", refused.refused), "digests are cut"
    assert "--allow" not in shown_text(page_of(made, "plain", "random"))
    assert "split.sha256" in shown_text(page_of(made, "plain", "random"))


@pytest.mark.parametrize(("name", "mark"), [("random", "SYNTHETIC PROMPTS"), ("hostile", "TOY MODEL")])
def test_what_is_no_real_result_says_so_in_every_title(made, name, mark):
    found = Structure(page_of(made, name)).texts
    titles = [*found["h1"], *found["h2"], *found["figcaption"], found["title"][0]]
    assert len(titles) > 10
    assert all(mark in title for title in titles)
    pictures = re.findall(r'<svg role="img"[^>]*><title>([^<]*)', page_of(made, name))
    assert pictures
    assert all(f"[{mark}]" in title for title in pictures)


def test_a_caution_stands_above_everything_and_names_its_runs(made):
    page = page_of(made, "draft", "random")
    assert page.index('class="banner"') < page.index("<h1")
    assert "(holds for random)" in page
    assert 'class="banner"' not in page_of(made, "plain", "draft")


def test_a_gate_that_was_allowed_to_be_shut_is_named_and_marked(made, tmp_path):
    folder = copy_run(made["draft"], tmp_path / "slow")
    gate = {"name": "client", "detail": "loop lag p99 0.06 is over 0.002"}
    edit(folder / "summary.json", lambda summary: summary.update(allowed_gates=[gate]))
    page = render_report(read_results([made["plain"], folder]))
    assert "slow [CLIENT GATE SHUT]" in shown_text(page) or "draft [CLIENT GATE SHUT]" in shown_text(page)
    assert gate["detail"] in page
    assert "The gate client is shut" in page[page.index('class="banner"') : page.index("<h1")]
    assert all("CLIENT GATE SHUT" in title for title in Structure(page).texts["h2"])


def test_marks_of_all_runs_stand_in_the_headings_and_those_of_one_in_its_rows(made):
    both = results_of(made, "random", "draft").runs
    assert [run.title for run in both] == ["random [SYNTHETIC PROMPTS]", "draft"]
    alone = results_of(made, "random")
    assert [run.title for run in alone.runs] == ["random"]
    assert "run random [SYNTHETIC PROMPTS]" in shown_text(render_report(alone)), "a citation carries it always"


def test_a_toy_model_is_one_even_if_nobody_noted_it(made):
    (run,) = results_of(made, "draft").runs
    toy = replace(run, recipe=find_recipe("toy-llamacpp-draft"))
    assert toy.marks == ("TOY MODEL",)
    assert Results((toy,)).banner.startswith("Toy model")
    assert replace(run, recipe=find_recipe("toy-experts-plain")).marks == ("TOY MODEL",)


@pytest.mark.parametrize(("verdict", "shown"), [("equal", "equal"), ("differs", "DIFFERS"), ("not shown", "not shown")])
def test_the_verdict_on_the_outputs_stands_beside_the_speed(made, verdict, shown):
    t0 = {
        "verdict": verdict,
        "reason": "14 of 14 conversations",
        "conversations": 14,
        "output_tokens": 99,
        "by": "text",
    }
    (made["draft"] / LOSSLESS).write_text(json.dumps({"verdict": verdict, "t0": t0, "t1": None}), "utf-8")
    try:
        results = results_of(made, "draft")
    finally:
        (made["draft"] / LOSSLESS).unlink()
    section = headline(results)
    column = section.tables[0].head.index("output against no drafts")
    assert section.tables[0].rows[0][column] == shown
    assert "14 of 14 conversations" in render_page("", "", [losslessness(results)])
    assert headline(results_of(made, "draft")).tables[0].rows[0][column] == "not checked"


def test_each_kind_of_verification_has_a_table_of_its_own(made):
    plain, draft = results_of(made, "plain", "draft").runs
    kinds = {r.method.verification: r for r in list_recipes() if r.speculative}
    assert len(kinds) > 1
    runs = [replace(draft, name=kind, recipe=recipe) for kind, recipe in kinds.items()]
    section = headline(Results((*runs, plain, draft)))
    assert len(section.tables) == len(kinds) + 2
    assert "not ranked" in section.paragraphs[0]
    for table in section.tables:
        assert len(table.rows) == 1
    assert {kind_of(run) for run in (*runs, plain, draft)} <= set(KINDS)
    page = render_page("", "", [throughput(Results((*runs, plain, draft)))])
    assert page.count("<figure") == len(kinds) + 1, "no chart holds two kinds, the baseline apart"


def test_rows_stand_in_the_order_in_which_they_were_given(made):
    (run,) = results_of(made, "draft").runs
    runs = [replace(run, name=name) for name in ("z", "a", "m")]
    assert [row[0] for row in headline(Results(tuple(runs))).tables[0].rows] == ["z", "a", "m"]


def test_published_figures_stand_beside_ours_as_other_rows_unless_the_rows_are_the_same(made):
    (run,) = results_of(made, "draft").runs
    recipe = next(r for r in list_recipes() if any(p.acceptance_length_mean and not p.temperature for p in r.published))
    published = next(p for p in recipe.published if p.acceptance_length_mean and not p.temperature)
    published = published.model_copy(update={"acceptance_length": {"math": 2.5}, "acceptance_length_mean": 2.25})
    same = published.model_copy(update={"split_sha256": run.described["split"]["sha256"]})
    for figures, rows in ((published, "other rows"), (same, "same rows")):
        known = replace(run, recipe=recipe.model_copy(update={"published": (figures,)}))
        cell = headline(Results((known,))).tables[0].rows[0][-1]
        assert "acceptance length 2.250" in cell
        assert rows in cell
        page = render_page("", "", [acceptance(Results((known,)))])
        assert f"published, {rows}" in page
        assert 'data-v="2.5"' in page
    warm = replace(run, recipe=recipe.model_copy(update={"published": (same.model_copy(update={"temperature": 1.0}),)}))
    assert headline(Results((warm,))).tables[0].rows[0][-1] is None, "of another temperature"
    unstated = same.model_copy(update={"temperature": None})
    known = replace(run, recipe=recipe.model_copy(update={"published": (unstated,)}))
    assert "2.250" in headline(Results((known,))).tables[0].rows[0][-1], "as `bench run` prints it"


def test_starts_of_one_server_are_further_repeats_of_its_conversations(made):
    (run,) = results_of(made, "draft").runs
    both = requests_of([run, run])
    assert len(by_conversation(both)) == 2 * len(by_conversation(run.requests))
    assert {m.trace.repeat for m in both} == {0, 1, 2, 3}
    (task,) = tasks_of(both, "multiturn")
    assert (task.incomplete, task.acceptance_length.n) == (0, 27)


def test_a_baseline_of_the_same_engine_comes_before_a_nearer_one_of_another(made):
    results = results_of(made, "sweep")
    by_name = {run.name: run for run in results.runs}
    other = {**by_name["plain-c2"].described["config"]["engine"], "dialect": "sglang"}
    described = {**by_name["plain-c2"].described}
    described["config"] = {**described["config"], "engine": other}
    runs = [run for run in results.runs if run.name != "plain-c2"] + [replace(by_name["plain-c2"], described=described)]
    assert find_baseline(by_name["draft-c2"], runs).name == "plain-c1"


def test_a_sweep_shows_every_point_what_failed_and_what_was_not_run(made):
    results = results_of(made, "sweep")
    (sweep,) = results.sweeps
    assert [run.place["concurrency"] for run in sweep.runs] == [1, 2, 8, 1, 2, 4, 8]
    assert [place["point"] for place in sweep.unfinished] == ["plain-c4"]
    section = throughput(results)
    text = shown_text(render_page("", "", [section]))
    assert "held back: failures" in text
    assert "plain-c4" in text
    assert "not run here: sglang is not installed" in text
    lengths = [len(re.findall("[ML]", d)) for d in re.findall(r'class="line s\d" d="([^"]*)"', str(section.pieces[0]))]
    assert lengths == [2, 2], "1 and 2 streams are joined, 8 stands alone behind the point that failed"


def test_of_a_sweep_one_point_of_each_series_gets_charts_of_its_own(made):
    results = results_of(made, "draft", "sweep")
    assert [run.place["point"] for run in detailed(results)] == ["draft", "plain-c1", "draft-c1"]


def test_a_baseline_is_the_nearest_run_without_speculation_of_the_same_sweep(made):
    results = results_of(made, "plain", "draft", "sweep")
    by_name = {run.name: run for run in results.runs}
    assert find_baseline(by_name["draft"], results.runs).name == "plain"
    assert find_baseline(by_name["draft-c2"], results.runs).name == "plain-c2"
    assert find_baseline(by_name["plain"], results.runs) is None
    other = replace(by_name["draft"], name="other")
    assert find_baseline(other, (by_name["draft"], other)).name == "draft", "two drafters are compared in their order"
    assert find_baseline(by_name["draft"], (by_name["draft"], other)) is None


def test_runs_of_one_name_are_told_apart_by_their_folders(made, tmp_path):
    again = copy_run(made["draft"], tmp_path / "again" / "draft")
    names = [run.name for run in read_results([made["draft"], again]).runs]
    assert len(set(names)) == 2
    assert names[1] == "again/draft"
    assert len(read_results([made["draft"], made["draft"]]).runs) == 1, "one folder given twice is one run"


def test_names_that_are_hostile_are_shown_and_never_markup(made):
    page = page_of(made, "hostile", "draft")
    structure = Structure(page)
    assert structure.stack == []
    assert structure.loads == []
    assert len(structure.texts["script"]) == 1, "the page's own"
    assert "img" not in structure.texts
    assert "\u202e" not in page
    assert len(page) < 600_000, "a megabyte of a name is not on it"
    assert "&lt;script&gt;window.pwned" in page
    assert "xxx…" in page


def test_no_secret_of_the_configuration_is_on_the_page(made):
    page = page_of(made, "hostile")
    assert "--api-key …" in shown_text(page)
    assert "s3cret" not in page


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["serve", "--hf-token", "abc"], "serve --hf-token …"),
        (["serve", "--api_key=abc"], "serve --api_key=…"),
        (["serve", "--tokenizer", "dir", "--max-tokens", "5"], "serve --tokenizer dir --max-tokens 5"),
        (["serve", "--config", '{"k": 3}'], """serve --config '{"k": 3}'"""),
    ],
)
def test_flags_are_shown_as_they_were_but_for_keys(made, flags, shown):
    (run,) = results_of(made, "plain").runs
    engine = {**run.config["engine"], "flags": flags}
    run = replace(run, described={**run.described, "config": {**run.config, "engine": engine}})
    rows = {row[0]: row[1] for row in provenance(Results((run,))).tables[0].rows}
    assert rows["server command or flags"] == shown


def test_what_runs_share_stands_once_and_what_differs_by_run(made):
    section = provenance(results_of(made, "plain", "draft"))
    shared, apart = ({row[0]: row[1:] for row in table.rows} for table in section.tables)
    assert not shared.keys() & apart.keys()
    assert apart["draft length"] == ["0", "3"]
    digest = json.loads((made["plain"] / "run.json").read_text())["split"]["sha256"]
    assert f">{digest}<" in shared["split sha256"][0], "whole, not cut"
    assert str(made["plain"].parent) not in render_page("", "", [section]), (
        "folders of this machine are nobody's business"
    )


def test_every_section_of_the_registry_is_on_a_full_page_in_its_order(made):
    results = results_of(*[made], *made)
    sections = [build(results) for build in SECTIONS]
    titles = [section.title for section in sections if section is not None]
    found = Structure(render_report(results)).texts["h2"]
    assert all(heading.startswith(title) for heading, title in zip(found, titles, strict=True))
    core = {"Figures", "Gates", "Comparison", "Acceptance", "How to cite"}
    core |= {"Throughput against latency", "Latency and throughput", "Active streams", "Losslessness", "Failures"}
    assert core | {"Self-audit of the client", "Provenance", "Definitions"} <= set(titles)


def test_each_chart_states_a_definition(made):
    page = page_of(made, "plain", "draft", "sweep")
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert len(figures) > 8
    for figure in figures:
        assert re.search(r'<p class="definition">[^<]{20,}</p>', figure)
        assert re.search(r'class="label[^>]*>[^<]+</text>', figure), "axes are labelled"


def test_the_same_results_give_the_same_bytes(made):
    assert page_of(made, "plain", "draft", "failing") == page_of(made, "plain", "draft", "failing")


def test_a_folder_that_is_neither_run_nor_sweep_is_refused_and_nothing_is_written(made, tmp_path):
    out = tmp_path / "page.html"
    with pytest.raises(BenchError, match="neither a finished run"):
        write_report([made["draft"], tmp_path], out)
    assert not out.exists()
    broken = copy_run(made["draft"], tmp_path / "broken")
    edit(broken / "summary.json", lambda summary: summary.pop("overall"))
    with pytest.raises(BenchError, match=r"summary\.json: overall: .* another version"):
        write_report([broken], out)


def test_the_command_writes_one_page_and_says_where(made, tmp_path):
    out = tmp_path / "deep" / "page.html"
    result = CliRunner().invoke(bench, ["report", str(made["plain"]), str(made["draft"]), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out}\n"
    assert out.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in out.parent.iterdir()] == ["page.html"]


def test_hostile_names_are_those_of_the_run(made):
    assert set(summary_of(made, "hostile")["by"]["category"]) == set(HOSTILE)
