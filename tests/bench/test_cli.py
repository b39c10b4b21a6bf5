"""The commands, against the simulator."""

import json
import sys
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from bench.cli import _remedy, bench
from bench.errors import UnlikeRuns, UnpublishedFigure
from bench.simulator.process import Process
from bench.simulator.server import Simulation
from sources.errors import Refusal

ENGINE = """
name = "{name}"
[engine]
dialect = "vllm"
url = "{url}"
draft_length = {k}
tokenizer = "{tokenizer}"
num_gpus = 2
[data]
format = "jsonl"
path = "{rows}"
{data}
[load]
concurrency = 6
warmup_requests = 0
{load}
[client]
workers = 1
[limits]
max_failed_share = {share}
ttft_s = 5.0
"""


@pytest.fixture
def written(rows, tokenizer, tmp_path):
    def write(
        url: str, name: str = "toy", k: int = 3, share: float = 0.05, load: str = "", more: str = "", data: str = ""
    ) -> str:
        path = tmp_path / f"{name}.toml"
        text = ENGINE.format(name=name, url=url, k=k, tokenizer=tokenizer, rows=rows, share=share, load=load, data=data)
        path.write_text(text + more, "utf-8")
        return str(path)

    return write


def call(*arguments: object):
    return CliRunner().invoke(bench, [str(argument) for argument in arguments], catch_exceptions=True)


def believe_the_client(folder) -> None:
    """Open the gate of the client's own lags, which a busy machine shuts; every other gate stays."""
    path = folder / "summary.json"
    summary = json.loads(path.read_text("utf-8"))
    summary["gates"] = [gate for gate in summary["gates"] if gate["name"] != "client"]
    summary["published"] = not summary["gates"]
    path.write_text(json.dumps(summary), "utf-8")


def test_every_command_has_help_that_is_a_sentence():
    context = click.Context(bench)
    names = bench.list_commands(context)
    assert set(names) >= {"probe", "calibrate", "simulate", "run", "sweep", "predict", "compare", "gate"}
    for name in names:
        assert call(name, "--help").exit_code == 0
        assert (bench.get_command(context, name).help or "").strip().endswith("."), name


def test_a_probe_says_what_is_told_and_what_is_absent(served, written, process):
    with served(Simulation("vllm", process)) as simulator:
        told = json.loads(call("probe", written(simulator.url)).stdout)["told"]
    assert told["acceptance_source"] == "per_step"
    assert told["server_counters"] is True
    with served(Simulation("vllm", Process(()))) as simulator:
        told = json.loads(call("probe", written(simulator.url)).stdout)["told"]
    assert told["request_counters"] is False


def test_a_run_is_compared_with_its_baseline_and_held_against_a_golden_table(served, written, process, tmp_path):
    with served(Simulation("vllm", replace(process, acceptance_rates=()), step_s=0.02)) as simulator:
        call("run", written(simulator.url, "base", k=0), "--out", tmp_path / "base", "--json")
    with served(Simulation("vllm", process, step_s=0.025)) as simulator:
        call("run", written(simulator.url, "spec"), "--out", tmp_path / "spec", "--json")
    for name in ("base", "spec"):
        believe_the_client(tmp_path / name)
    result = call("compare", tmp_path / "base", tmp_path / "spec", "--json")
    compared = json.loads(result.stdout)
    speed_up = compared["speed_up"]
    length = json.loads((tmp_path / "spec" / "summary.json").read_text())["overall"]["figures"]["tokens_per_step"][
        "pooled"
    ]
    assert speed_up["analytic"] == pytest.approx(length * 0.02 / 0.025, rel=0.25)
    assert speed_up["user_tps"]["ratio"]["value"] == pytest.approx(speed_up["analytic"], rel=0.25)
    assert set(compared["by"]) == {"math", "roleplay", "writing"}
    assert call("compare", tmp_path / "base", tmp_path / "spec").stdout.startswith("category\tpairs")

    golden = tmp_path / "golden.json"
    assert call("gate", tmp_path / "spec", "--write", golden).exit_code == 0
    assert call("gate", tmp_path / "spec", "--against", golden).exit_code == 0
    table = json.loads(golden.read_text())
    table["categories"]["math"]["acceptance_length"] *= 1.2
    golden.write_text(json.dumps(table))
    short = call("gate", tmp_path / "spec", "--against", golden)
    assert short.exit_code == 1
    assert "math" in str(short.exception)


def test_unlike_runs_are_refused_with_the_setting_that_differs(served, written, process, tmp_path):
    with served(Simulation("vllm", process, step_s=0.005)) as simulator:
        call("run", written(simulator.url, "one"), "--out", tmp_path / "one", "--json")
        call("run", written(simulator.url, "two", load="seed = 4"), "--out", tmp_path / "two", "--json")
    for name in ("one", "two"):
        believe_the_client(tmp_path / name)
    refused = call("compare", tmp_path / "one", tmp_path / "two")
    assert isinstance(refused.exception, UnlikeRuns)
    assert "config.load" in str(refused.exception)
    allowed = call("compare", tmp_path / "one", tmp_path / "two", "--allow", "config.load", "--json")
    assert json.loads(allowed.stdout)["speed_up"]["user_tps"]["pairs"] == 30


def test_a_run_that_a_gate_holds_back_prints_counts_and_no_figures(served, written, process, tmp_path):
    with served(Simulation("vllm", replace(process, failed_share=0.4))) as simulator:
        result = call("run", written(simulator.url), "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert isinstance(result.exception, UnpublishedFigure)
    assert "failures" in str(result.exception)
    assert "acceptance_length" not in result.stdout
    assert "succeeded" in result.stderr
    refused = call("compare", tmp_path / "run", tmp_path / "run")
    assert isinstance(refused.exception, UnpublishedFigure)


def test_a_run_without_one_success_reports_counts_and_no_traceback(served, written, process, tmp_path):
    with served(Simulation("vllm", process, fail_after=1)) as simulator:
        result = call("run", written(simulator.url), "--out", tmp_path / "run")
    assert result.exit_code == 1
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["overall"]["counts"]["succeeded"] == 0
    assert summary["overall"]["figures"]["ttft_s"]["mean"] is None
    assert summary["run"]["output_tps"]["value"] is None


def test_repeats_have_an_interval_over_runs_and_slices_their_tables(served, written, process, tmp_path):
    with served(Simulation("vllm", process, step_s=0.005)) as simulator:
        call("run", written(simulator.url, load="repeats = 3"), "--out", tmp_path / "run", "--by", "turn")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    throughput = summary["run"]["output_tps"]
    assert len(throughput["runs"]) == 3
    assert throughput["interval"]["method"] == "t-interval over runs"
    assert summary["overall"]["counts"]["conversations"] == 90
    assert set(summary["by"]) >= {"category", "turn", "difficulty", "multiturn", "isl"}
    assert list(summary["by"]["turn"]) == ["1", "2", "3"]
    assert summary["by"]["turn"]["1"]["counts"]["requests"] == 90
    assert summary["run"]["goodput_rps"]["value"] > 0
    assert summary["run"]["output_tps_per_gpu"]["value"] == pytest.approx(throughput["value"] / 2)


SWEEP = """
[sweep]
concurrency = [4, 8]
[[sweep.servers]]
name = "plain"
url = "{plain}"
draft_length = 0
[[sweep.servers]]
name = "k2"
url = "{k2}"
draft_length = 2
[[sweep.servers]]
name = "k3"
url = "{k3}"
draft_length = 3
"""


def test_a_sweep_and_one_run_predict_the_speed_up_of_every_category(served, written, process, tmp_path):
    plain, two = (replace(process, acceptance_rates=process.acceptance_rates[:k]) for k in (0, 2))
    with (
        served(Simulation("vllm", plain, step_s=0.01)) as a,
        served(Simulation("vllm", two, step_s=0.011)) as b,
        served(Simulation("vllm", process, step_s=0.016)) as c,
    ):
        config = written(c.url, data="limit = 4", more=SWEEP.format(plain=a.url, k2=b.url, k3=c.url))
        points = json.loads(call("sweep", config, "--out", tmp_path / "sweep", "--json").stdout)
        call("run", written(c.url, "qualitative", data="first_turn_only = true"), "--out", tmp_path / "run", "--json")
    assert len(points) == 6
    for point in points:
        if not point["published"]:  # by the gate of the client's own lags, which a busy machine shuts
            assert (point["output_tps"], point["acceptance_length"], point["speed_up"]) == (None, None, None)
        elif point["draft_length"] == 0:
            assert point["speed_up"] == 1.0
    command = ("predict", "--qualitative", tmp_path / "run", "--sweep", tmp_path / "sweep", "--allow", "client")
    rows = json.loads(call(*command, "--json").stdout)
    assert len(rows) == 3 * 2 * 2
    assert {row["category"] for row in rows} == {"math", "roleplay", "writing"}
    for row in rows:
        assert row["low"] <= row["speed_up"] <= row["high"]
        assert abs(row["error"]) < 0.5
        assert row["best"] == (row["draft_length"] == 2)


def test_the_simulator_can_be_run_from_the_command_line(tmp_path):
    import subprocess

    command = [
        sys.executable,
        "-m",
        "speedbench",
        "bench",
        "simulate",
        "--dialect",
        "llamacpp",
        "--tokenizer",
        tmp_path / "t",
    ]
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        url = child.stdout.readline().strip()
        from bench.server import fetch

        assert "llamacpp:spec_decode" in fetch(url + "/metrics")
        assert (tmp_path / "t" / "tokenizer.json").is_file()
    finally:
        child.terminate()
        child.communicate()


def test_help_needs_no_package_of_the_extra():
    import subprocess

    code = (
        "import sys\n"
        "for name in ('aiohttp', 'orjson', 'scipy', 'httptools', 'prometheus_client', 'numpy', 'pyarrow'):\n"
        "    sys.modules[name] = None\n"
        "from click.testing import CliRunner\nfrom bench.cli import bench\n"
        "assert CliRunner().invoke(bench, ['run', '--help']).exit_code == 0\n"
        "for name in ('numpy', 'pyarrow'):\n"
        "    del sys.modules[name]  # no part of the extra\n"
        "missing = CliRunner().invoke(bench, ['gate', '/tmp'])\n"
        "print(repr(missing.exception))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "install speedbench[bench]" in said


@pytest.mark.parametrize(
    ("replaced", "says"),
    [
        ((), "cannot connect"),
        (("http://", "https://"), "plain HTTP only"),
        (('dialect = "vllm"', 'dialect = "other"'), "no 'other'; known are vllm"),
        (('tokenizer = "', 'tokenizer = "/none'), "no tokenizer.json"),
        (("[limits]", "[sampling]\nignore_eos = true\n[limits]"), "ignore_eos is not a field"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_before_anything_is_written(written, replaced, says, tmp_path):
    from pathlib import Path

    path = Path(written("http://127.0.0.1:9"))
    text = path.read_text("utf-8")
    if "ignore_eos" in says:
        text = text.replace('dialect = "vllm"', 'dialect = "openai"')
    path.write_text(text.replace(*replaced) if replaced else text, "utf-8")
    result = call("run", path, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert isinstance(result.exception, Refusal)
    assert says in str(result.exception)
    assert not (tmp_path / "out" / "run.json").exists()


def test_gates_that_may_be_allowed_say_so_and_any_other_does_not():
    late, restarted = {"name": "client", "detail": "late"}, {"name": "restart", "detail": "a rank restarted"}
    assert 'limits.allow = ["client"] and run again: nothing is sent twice' in _remedy([late])
    assert _remedy([late, restarted]) == ""
