"""`speedbench sources` and `speedbench pull`: tables on stdout, narration on stderr, refusals with status 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from sources.lock import is_locked, load_lock
from sources.origins import SamplesOrigin
from sources.registry import QUALITATIVE, SOURCES
from sources.tables import print_rows
from tests.hub.fakehub import FakeHub

Run = Callable[..., subprocess.CompletedProcess[str]]
HEAVY = {"numpy", "pyarrow", "huggingface_hub", "datasets", "faiss", "openai", "pydantic", "requests", "rich"}
NAMES = [source.spec.name for source in QUALITATIVE]


@pytest.fixture
def speedbench(hub: FakeHub, tmp_path: Path) -> Run:
    """The command in a process of its own, sent to the stand-in, with an empty lock and cache."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            **hub.environment(),
            "SPEEDBENCH_LOCK": str(tmp_path / "lock.toml"),
            "SPEEDBENCH_CACHE": str(tmp_path / "cache"),
            **variables,
        }
        command = [sys.executable, "-m", "speedbench", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


def serve_samples(hub: FakeHub) -> None:
    """Put the samples of the qualitative sources where their specs say that the sources are."""
    files: dict[tuple[str, str], dict[str, bytes]] = {}
    for source in QUALITATIVE:
        spec = source.spec
        there = {f.path: f.local.read_bytes() for f in SamplesOrigin().files(spec).files}
        files.setdefault((spec.host, spec.repo), {}).update(there)
    for spec in (source.spec for source in QUALITATIVE):
        repo = hub.dataset(spec.repo) if spec.host == "hub" else hub.project(spec.repo)
        if not repo.head:
            repo.commit(files[spec.host, spec.repo], spec.revision)
            repo.gated = spec.gated


def test_the_list_has_a_line_for_every_source(speedbench: Run) -> None:
    done = speedbench("sources", "list")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].split() == ["name", "id", "revision", "locked", "licence", "text", "feeds"]
    assert [line.split()[0] for line in lines[1:]] == list(SOURCES)
    hle = next(line for line in lines if line.startswith("hle "))
    assert "cais/hle" in hle
    assert "021a3d71f516" in hle
    assert "by reference" in hle
    humanevalpack = next(line for line in lines if line.startswith("humanevalpack "))
    assert "unlocked" in humanevalpack


def test_the_list_as_json_has_every_fact(speedbench: Run) -> None:
    listed = {facts["name"]: facts for facts in json.loads(speedbench("sources", "list", "--json").stdout)}
    assert list(listed) == list(SOURCES)
    for name, source in SOURCES.items():
        spec = source.spec
        assert listed[name]["license"]["id"] == spec.license.id
        assert listed[name]["publish_reason"] == spec.publish_reason
        assert listed[name]["files"].keys() == spec.files.keys()


def test_samples_on_a_local_hub_are_locked_checked_and_pulled_like_the_real_sources(
    hub: FakeHub, speedbench: Run, tmp_path: Path
) -> None:
    serve_samples(hub)
    before = speedbench("sources", "lock", "--check", *NAMES)
    assert before.returncode == 1
    assert f"{len(NAMES)} of {len(NAMES)} sources are not locked" in before.stderr
    assert hub.asked == [], "--check needs no network"

    locked = speedbench("sources", "lock", *NAMES)
    assert locked.returncode == 0, locked.stderr
    lock = load_lock(tmp_path / "lock.toml")
    assert all(is_locked(SOURCES[name].spec, lock) for name in NAMES)
    first = (tmp_path / "lock.toml").read_bytes()

    checked = json.loads(speedbench("sources", "check", "--json", *NAMES).stdout)
    assert {access["state"] for access in checked} <= {"ok", "cached"}

    pulled = speedbench("pull", "--json", *NAMES)
    assert pulled.returncode == 0, pulled.stderr
    assert "not locked" not in pulled.stderr
    for row in json.loads(pulled.stdout):
        assert lock.sources[row["source"]].by_path()[row["path"]].sha256 == row["sha256"]

    hub.asked.clear()
    again = speedbench("pull", "--json", *NAMES, HF_HUB_OFFLINE="1")
    assert (again.returncode, again.stdout) == (0, pulled.stdout)
    assert speedbench("sources", "lock", *NAMES).returncode == 0
    assert (tmp_path / "lock.toml").read_bytes() == first
    assert hub.asked == [], "what is locked and pulled needs no network"


def test_a_pull_checks_access_to_all_before_a_byte_of_data(hub: FakeHub, speedbench: Run, tmp_path: Path) -> None:
    serve_samples(hub)
    hub.denied |= {"cais/hle": 403, "TIGER-Lab/MMLU-Pro": 401}
    del hub.datasets["abisee/cnn_dailymail"]
    done = speedbench("pull", *NAMES)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"3 of {len(NAMES)} sources cannot be read, nothing was fetched:" in done.stderr
    assert "hle (cais/hle): terms not accepted; open " in done.stderr
    assert "mmlu_pro (TIGER-Lab/MMLU-Pro): no valid token; set HF_TOKEN" in done.stderr
    assert "cnn_dailymail (abisee/cnn_dailymail): moved, not found or private; look at " in done.stderr
    assert hub.data_requests() == []
    asked = [a.path for a in hub.asked if a.path.startswith("/_github/repos/hemingkx/Spec-Bench/commits")]
    assert len(asked) == 1, "sources that share a repository are asked for once"


def test_check_prints_its_table_and_fails_where_a_source_does(hub: FakeHub, speedbench: Run) -> None:
    serve_samples(hub)
    hub.denied["cais/hle"] = 403
    done = speedbench("sources", "check", "hle", "mmlu_pro")
    assert done.returncode == 1
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:]] == [
        ["hle", "cais/hle", "failed"],
        ["mmlu_pro", "TIGER-Lab/MMLU-Pro", "ok"],
    ]
    assert done.stderr == "speedbench: 1 of 2 sources cannot be read; the table says why and what to do\n"
    assert speedbench("sources", "check", "mmlu_pro").returncode == 0


def test_lock_names_what_it_cannot_pin_and_keeps_what_it_can(hub: FakeHub, speedbench: Run, tmp_path: Path) -> None:
    serve_samples(hub)
    hub.denied["cais/hle"] = 403
    del hub.github["hemingkx/Spec-Bench"]
    done = speedbench("sources", "lock", "hle", "mmlu_pro", "gsm8k")
    assert done.returncode == 1
    assert "1 of 3 sources cannot be pinned:" in done.stderr
    assert "gsm8k: moved, not found or private" in done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [
        ["hle", "yes"],
        ["mmlu_pro", "yes"],
        ["gsm8k", "no"],
    ]
    assert sorted(load_lock(tmp_path / "lock.toml").sources) == ["hle", "mmlu_pro"]


def test_a_mirror_is_read_in_place(speedbench: Run, hub: FakeHub, tmp_path: Path) -> None:
    spec = SOURCES["writingbench"].spec
    for file in SamplesOrigin().files(spec).files:
        target = tmp_path / "mirror" / spec.mirror_folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.local.read_bytes())
    pulled = speedbench("pull", "writingbench", "--mirror", str(tmp_path / "mirror"), "--json")
    assert {row["file"] for row in json.loads(pulled.stdout)} <= {str(p) for p in (tmp_path / "mirror").rglob("*")}
    assert speedbench("sources", "check", "writingbench", "--mirror", str(tmp_path / "mirror")).returncode == 0
    short = speedbench("pull", "writingbench", "hle", "--mirror", str(tmp_path / "mirror"))
    assert short.returncode == 1
    assert "hle (cais/hle): absent: data/test-*.parquet" in short.stderr
    assert hub.asked == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pull", "mmlu"), "speedbench: mmlu: no such source; did you mean mmlu_pro?\n"),
        (("sources", "check", "?"), "speedbench: ?: no such source; see: speedbench sources list\n"),
        (("pull", "hle", "--mirror", "nowhere"), "speedbench: --mirror nowhere: no such folder\n"),
    ],
)
def test_a_wrong_name_is_one_line_and_status_1(speedbench: Run, arguments: tuple[str, ...], message: str) -> None:
    done = speedbench(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_a_wrong_option_is_status_2(speedbench: Run) -> None:
    assert speedbench("pull", "--no-such-option").returncode == 2


@pytest.mark.parametrize("arguments", [(), ("sources",), ("sources", "list"), ("sources", "lock"), ("pull",)])
def test_help_is_there_and_needs_no_heavy_import(arguments: tuple[str, ...]) -> None:
    script = (
        "import sys\nfrom speedbench.cli import main\n"
        f"sys.argv = ['speedbench', *{list(arguments)!r}, '--help']\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        f"print('heavy:', sorted({HEAVY} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "Usage: speedbench" in done.stdout
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_the_registry_and_the_seam_cost_no_heavy_import() -> None:
    script = (
        "import sys, sources.registry, sources.origins, sources.reading\n"
        f"print(sorted(({HEAVY} | {{'click'}}) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_a_table_keeps_brackets_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": "[bold]x[/bold] :smile:", "long": "y" * 3000}]
    print_rows(rows, as_json=False)
    assert capsys.readouterr().out.split() == ["name", "long", "[bold]x[/bold]", ":smile:", "y" * 3000]


def test_a_terminal_folds_rather_than_cuts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = Console
    monkeypatch.setattr("rich.console.Console", lambda **_: real(width=40, force_terminal=True, color_system=None))
    print_rows([{"name": "x", "long": "y" * 90}], as_json=False)
    assert capsys.readouterr().out.count("y") == 90
