"""Files that were cut, edited or come of another version: one line that names the file, and nothing written."""

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from bench.cli import bench
from bench.comparison.golden import parse_golden
from bench.config import VocabularyConfig, load_config, parse_config
from bench.errors import BenchError, ConfigError
from bench.finished import read_measured, read_side
from bench.lossless.runs import judge_runs
from bench.pruned import training_counts
from bench.report.page import write_report
from bench.report.results import read_results
from bench.result_shape import described_config, refuse_other_shape
from bench.results import RunFolder
from bench.sweeps.file import load_sweep
from bench.sweeps.rows import read_sweep
from tests.bench.report_runs import DRAFT, PLAIN, copy_run, edit, make_run

ENGINE = {"dialect": "vllm", "url": "http://127.0.0.1:9"}
TOML = 'name = "run"\n[engine]\ndialect = "vllm"\nurl = "http://127.0.0.1:9"\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("broken")
    return {
        "plain": make_run(root, "plain", PLAIN, ("math", "writing")),
        "draft": make_run(root, "draft", DRAFT, ("math", "writing")),
    }


def one_line(error: pytest.ExceptionInfo[BenchError], *named: object) -> None:
    assert "\n" not in str(error.value)
    assert all(str(name) in str(error.value) for name in named), str(error.value)


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "\udcff"], ids=repr)
def test_a_file_of_a_run_that_is_no_table_is_named(made, tmp_path, name, text):
    broken = copy_run(made["draft"], tmp_path / "broken")
    (broken / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    for read in (read_side, lambda path: read_results([path]), lambda path: judge_runs(made["plain"], path)):
        with pytest.raises(BenchError) as error:
            read(broken)
        one_line(error, broken / name)


def keys(values, path=()):
    """Yield the path of every key of nested tables; rows of a list are as their first."""
    for key, value in values.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from keys(value, (*path, key))


def changed(values, path, value):
    copy = json.loads(json.dumps(values))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def test_a_page_is_made_of_a_summary_or_the_key_that_is_wrong_is_named(made, tmp_path):
    """Whatever one value of a summary is replaced by, it is refused with its name, or every reader can live with it."""
    broken = copy_run(made["draft"], tmp_path / "broken")
    summary = RunFolder(broken).read_json("summary.json")
    sampled = [path for n, path in enumerate(keys(summary)) if n % 11 == 0]
    refused = list[str]()
    for path in sampled:
        RunFolder(broken).write_json("summary.json", changed(summary, path, ["x"]))
        try:
            write_report([made["plain"], broken], tmp_path / "page.html")
        except BenchError as error:
            refused.append(str(error))
    assert all(str(broken / "summary.json") in text and "\n" not in text for text in refused)
    assert len(refused) > len(sampled) // 2


def test_what_a_finished_run_wrote_is_of_the_shape_that_its_readers_ask_for(made):
    for folder in map(RunFolder, made.values()):
        refuse_other_shape(folder.read_json("summary.json"), "summary.json")
        config = described_config(folder.read_json("run.json"), "run.json")
        assert config.model_dump(mode="json") == folder.read_json("run.json")["config"]


def test_a_run_of_another_version_is_refused_with_the_key(made, tmp_path):
    other = copy_run(made["draft"], tmp_path / "other", sampling={"min_p": 0.1})
    for read in (read_side, lambda path: judge_runs(made["plain"], path), lambda path: read_results([path])):
        with pytest.raises(BenchError) as error:
            read(other)
        one_line(error, other / "run.json", "config.sampling.min_p", "another version")


@pytest.mark.parametrize("kept", [0, 5])
def test_traces_that_were_cut_are_no_ground_for_a_verdict(made, tmp_path, kept):
    cut = copy_run(made["draft"], tmp_path / "cut")
    lines = (cut / "traces.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "traces.jsonl").write_bytes(b"".join(lines[:kept]) + lines[kept][:30])
    for read in (
        lambda: read_measured(RunFolder(cut)),
        lambda: judge_runs(made["plain"], cut),
        lambda: write_report([cut], tmp_path / "page.html"),
    ):
        with pytest.raises(BenchError) as error:
            read()
        one_line(error, cut, f"holds {kept} requests", "counts 18")
    assert not (cut / "lossless.json").exists()
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda table: table.pop("sampling"), "sampling"),
        (lambda table: table.update(categories={}), "categories"),
        (lambda table: table.update(share=-1.0), "share"),
        (lambda table: table["categories"]["math"].pop("n"), "categories.math.n"),
        (lambda table: table["categories"]["math"].update(acceptance_length="long"), "acceptance_length"),
        (lambda table: table["categories"]["math"].update(n=0), "categories.math.n"),
    ],
)
def test_a_golden_table_that_would_let_all_pass_is_refused(change, named):
    table = {
        "share": 0.9,
        "split_sha256": "a",
        "sampling": {},
        "categories": {"math": {"acceptance_length": 2, "n": 9}},
    }
    assert parse_golden(json.dumps(table).encode(), "golden.json")["categories"]["math"] == {
        "acceptance_length": 2.0,
        "n": 9,
    }
    change(table)
    with pytest.raises(ConfigError) as error:
        parse_golden(json.dumps(table).encode(), "golden.json")
    one_line(error, "golden.json", named)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe"])
def test_a_golden_file_that_is_no_table_is_named(made, tmp_path, data):
    (tmp_path / "golden.json").write_bytes(data)
    result = CliRunner().invoke(bench, ["gate", str(made["draft"]), "--against", str(tmp_path / "golden.json")])
    assert isinstance(result.exception, ConfigError)
    assert "golden.json" in str(result.exception)


def test_a_gate_that_is_held_against_nothing_is_a_usage_error(made):
    result = CliRunner().invoke(bench, ["gate", str(made["draft"])])
    assert (result.exit_code, "--against" in result.stderr) == (2, True)


def test_a_byte_order_mark_is_no_part_of_a_configuration(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TOML.encode())
    assert load_config(path).engine.url == ENGINE["url"]
    path.write_bytes(b"\xef\xbb\xbf" + TOML.encode() + b"[sweep]\nconcurrency = [1]\n")
    assert load_sweep(str(path)).name == "run"


@pytest.mark.parametrize("data", ["# é".encode("latin-1"), TOML.encode("utf-16"), b"a = " + b"[" * 100_000])
def test_a_configuration_that_is_not_text_is_named(tmp_path, data):
    path = tmp_path / "run.toml"
    path.write_bytes(data)
    for read in (load_config, lambda given: load_sweep(str(given))):
        with pytest.raises(ConfigError) as error:
            read(path)
        one_line(error, path)


@pytest.mark.parametrize(
    ("sweep", "named"),
    [
        ({"concurrency": []}, "sweep.concurrency"),
        ({"concurrency": [1, 1]}, "sweep.concurrency has 1 twice"),
        ({"temperature": [0, 0.0]}, "sweep.temperature has 0.0 twice"),
        ({"config": ["a", "a"]}, "sweep.config has 'a' twice"),
        ({"servers": [{"name": "a"}, {"name": "A"}]}, "sweep.servers has 'a' twice"),
        ({"config": ["../../x"]}, "sweep.config"),
        ({"temperature": [float("inf")]}, "sweep.temperature"),
        ({"data": {"../x": {}}}, "sweep.data"),
        ({"pages": {"../../x.json": "/x"}}, "sweep.pages"),
        ({"pages": {"run.json": "/x"}}, "run.json"),
    ],
)
def test_a_grid_without_points_or_with_two_in_one_folder_is_refused(sweep, named):
    with pytest.raises(ConfigError) as error:
        parse_config({"engine": ENGINE, "sweep": sweep}, "sweep.toml")
    one_line(error, "sweep.toml", named)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sweep = 3", "[sweep]"),
        ("data = 3\n[sweep]", "data must be a table"),
        ("[sweep]\nexperiment = 'temprature'", "'temprature' is none of"),
        ("[sweep]\nservers = 5", "sweep.servers"),
        ("[sweep]\nservers = ['x']", "sweep.servers"),
        ("[sweep]\nservers = {a = 1}", "sweep.servers"),
        ("[sweep]\nservers = [{name = 'a', recipe = 3}]", "recipe must be a name"),
        ("[sweep]\nservers = [{name = 'a', recipe = 'toy-llamacpp-plain', paths = 3}]", "paths"),
    ],
)
def test_a_sweep_file_of_other_kinds_is_named(tmp_path, text, named):
    (tmp_path / "sweep.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as error:
        load_sweep(str(tmp_path / "sweep.toml"), data="rows")
    one_line(error, "sweep.toml", named)


@pytest.mark.parametrize("length", ["0", "-1", "²", "x", "1.5", ""])
def test_a_draft_length_is_a_whole_number_above_0(length):
    with pytest.raises(ConfigError, match="must be a number >= 1"):
        load_sweep("temperature", recipes=[f"toy-llamacpp-draft={length}"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("counts.json", '{"1": -5}'),
        ("counts.json", '{"-1": 5}'),
        ("counts.json", '{"1": 1e400}'),
        ("counts.json", "[]"),
        ("counts.json", "[" * 100_000),
        ("counts.npy", np.ones((2, 2), int)),
        ("counts.npy", np.array(5)),
        ("counts.npy", np.array([], int)),
        ("counts.npy", np.array([-3, 1])),
    ],
)
def test_counts_of_which_no_vocabulary_can_be_made_are_named(tmp_path, name, content):
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content, "utf-8")
    else:
        np.save(path, content)
    with pytest.raises(ConfigError) as error:
        training_counts(VocabularyConfig(counts=str(path)), "")
    one_line(error, path)


def test_the_run_that_is_compared_is_read_whole_or_not_at_all(made, tmp_path):
    gone = copy_run(made["draft"], tmp_path / "gone")
    shutil.copy(made["plain"] / "traces.jsonl", gone / "traces.jsonl")
    edit(gone / "summary.json", lambda summary: summary["counts"].update(requests=17))
    with pytest.raises(BenchError, match=r"holds 18 requests, summary\.json counts 17"):
        read_side(gone)


@pytest.mark.parametrize("name", ["sweep.json", "vocabulary.json", "answers.json", "experts.json"])
@pytest.mark.parametrize("text", ["", "[]", '{"points": [{}]}', '{"points": 5, "rows": 5, "answers": [], "after": 3}'])
def test_what_was_derived_of_a_run_is_whole_or_named(made, tmp_path, name, text):
    copy_run(made["draft"], tmp_path / "sweep" / "point")
    at = tmp_path / "sweep" if name == "sweep.json" else tmp_path / "sweep" / "point"
    experiment = {"experiment": "random_tokens", "points": []}
    RunFolder(tmp_path / "sweep").write_json("sweep.json", experiment)
    (at / name).write_text(text, "utf-8")
    try:
        write_report([tmp_path / "sweep"], tmp_path / "page.html")
    except BenchError as error:
        said = str(error)
    else:
        said = str(at / name) if (name, text) == ("experts.json", '{"points": [{}]}') else ""
    assert str(at / name) in said
    assert "\n" not in said


def test_a_point_whose_summary_was_edited_is_named(tmp_path):
    point = tmp_path / "plain-c1"
    point.mkdir()
    (point / "run.json").write_text('{"config": {}}', "utf-8")
    (point / "summary.json").write_text("{}", "utf-8")
    with pytest.raises(BenchError, match=r"plain-c1: run\.json or summary\.json lacks 'engine'"):
        read_sweep(tmp_path)
