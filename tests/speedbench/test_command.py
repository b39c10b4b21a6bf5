"""The command as a whole: every sub-command has help, and a refusal is one line."""

from __future__ import annotations

import errno
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from speedbench.cli import COMMANDS, LazyGroup, cli, main

ROOT = Path(__file__).resolve().parents[2]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "speedbench", *arguments], capture_output=True, text=True, check=False)


def _commands() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        found.append((name,))
        if isinstance(command, click.Group):
            found += [(name, inner) for inner in command.list_commands(context)]
    return found


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_every_command_has_a_sentence_of_help(words):
    result = CliRunner().invoke(cli, [*words, "--help"])
    assert result.exit_code == 0, result.output
    description = result.output.split("\n\n")[1].strip()
    assert description[0].isupper()
    assert "." in description


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_every_option_says_what_it_is_for(words):
    context, command = click.Context(cli), cli.get_command(click.Context(cli), words[0])
    for word in words[1:]:
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
    assert command is not None
    silent = [p.opts[-1] for p in command.params if isinstance(p, click.Option) and not p.help]
    assert silent == []


def test_the_readme_names_every_command():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"speedbench {name}" not in readme] == []


def test_a_refusal_is_one_line_on_stderr_and_exit_status_1():
    done = _run("build", "no-such-recipe", "--samples", "--out", "/nonexistent/out")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line == "speedbench: recipe no-such-recipe: not a file and not one of demo, v1, v1-offline"


def test_what_the_system_refuses_is_one_line_on_stderr_and_exit_status_1(tmp_path):
    (tmp_path / "file").write_text("")
    done = _run("build", "demo", "--samples", "--only", "throughput", "--out", str(tmp_path / "file" / "out"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Not a directory" in done.stderr.splitlines()[-1]


def test_an_error_of_the_system_that_no_code_foresaw_is_one_line_too(monkeypatch, capsys):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/data.parquet")

    monkeypatch.setattr("speedbench.cli.cli", full)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("speedbench: /somewhere/data.parquet: No space left on device; ")


def test_an_interrupt_is_one_line_and_exit_status_130(monkeypatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: click.Command("build", callback=interrupted))
    result = CliRunner().invoke(cli, ["build"])
    assert result.exit_code == 130
    assert result.output == "speedbench: interrupted; what was finished is kept\n"


def test_wrong_usage_is_exit_status_2():
    assert _run("build", "demo").returncode == 2
    assert _run("build", "demo", "--samples", "--mirror", "x", "--out", "y").returncode == 2
    assert _run("no-such-command").returncode == 2


def test_v1_without_a_key_stops_before_it_reads_and_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("SPEEDBENCH_CACHE", str(tmp_path / "cache"))
    done = _run("build", "v1", "--samples", "--only", "qualitative", "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_the_plain_package_names_are_this_checkouts_and_no_one_elses():
    owners = metadata.packages_distributions()
    for package in ("bench", "cards", "curation", "sources", "speedbench"):
        module = __import__(package)
        assert Path(module.__path__[0]).resolve() == ROOT / package
        assert set(owners.get(package, ["speedbench"])) == {"speedbench"}
