"""Behind one seam, a mirror and the samples give what the Hub would give, and say what they lack."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import pytest

from sources.base import FileSpec, Rejected, SourceSpec
from sources.cache import SourceCache
from sources.errors import SourceError
from sources.fetch import HubOrigin
from sources.licenses import MIT
from sources.lock import Lock
from sources.origins import MirrorOrigin, Origin, SamplesOrigin, open_source, resolve
from sources.registry import SOURCES
from tests.hub.fakehub import FakeHub

Q = {"q": "string"}
FILES = {"test": FileSpec("data/test-*.jsonl", "jsonl", Q), "names": FileSpec("names.json", "json", Q)}


def spec(**facts: object) -> SourceSpec:
    base = {
        "name": "demo",
        "title": "t",
        "repo": "acme/demo",
        "license": MIT,
        "files": FILES,
        "feeds": ("qa",),
        "citation": "c",
    }
    return SourceSpec(**{**base, **facts})  # type: ignore[arg-type]


CONTENT = {
    "data/test-00001.jsonl": b'{"q": "c"}\n{"q": 1}\n',
    "data/test-00000.jsonl": b'{"q": "a"}\nnot a row\n{"q": "b"}\n',
    "data/train-00000.jsonl": b'{"q": "no"}\n',
    "names.json": b'[{"q": "n"}]',
}


def write(folder: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


@pytest.fixture(params=["mirror", "hub"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Origin:
    """The same files in a mirror and on a hub."""
    if request.param == "mirror":
        write(tmp_path / "acme" / "demo", CONTENT)
        return MirrorOrigin(tmp_path)
    hub: FakeHub = request.getfixturevalue("hub")
    hub.dataset("acme/demo").commit(CONTENT)
    return HubOrigin(cache=SourceCache(tmp_path / "cache"), lock=Lock())


def test_rows_come_by_key_in_the_order_of_path_and_line_from_wherever(anywhere: Origin) -> None:
    rejected: list[Rejected] = []
    files = open_source(spec(), resolve(anywhere, spec()), rejected.append)
    assert [(r["q"], r.file, r.line) for r in files.rows("test")] == [
        ("a", "data/test-00000.jsonl", 1),
        ("b", "data/test-00000.jsonl", 3),
        ("c", "data/test-00001.jsonl", 1),
    ]
    assert [r["q"] for r in files.rows("names")] == ["n"]
    assert [(r.file, r.line) for r in rejected] == [("data/test-00000.jsonl", 2), ("data/test-00001.jsonl", 2)]


def test_every_file_that_was_read_is_identified_by_its_digest(anywhere: Origin) -> None:
    resolved = resolve(anywhere, spec())
    wanted = {p: hashlib.sha256(CONTENT[p]).hexdigest() for p in sorted(CONTENT) if "train" not in p}
    assert list(resolved.digests.items()) == list(wanted.items())
    assert [f.size for f in resolved.files if f.path == "names.json"] == [len(CONTENT["names.json"])]


def test_an_absent_file_is_a_refusal_that_names_it_and_the_remedy(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "demo", {"names.json": b"[]"})
    with pytest.raises(SourceError) as error:
        resolve(MirrorOrigin(tmp_path), spec())
    folder = tmp_path / "acme" / "demo"
    expected = f"demo: data/test-*.jsonl is absent; put it under {folder}, or go on without with --allow-short"
    assert str(error.value) == expected


def test_with_allow_short_an_absent_file_is_a_warning_and_the_rest_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    write(tmp_path / "acme" / "demo", {"names.json": CONTENT["names.json"]})
    resolved = resolve(MirrorOrigin(tmp_path), spec(), allow_short=True)
    assert [a.path for a in resolved.absent] == ["data/test-*.jsonl"]
    assert "demo: data/test-*.jsonl is absent" in caplog.text
    files = open_source(spec(), resolved, lambda _: None)
    assert list(files.rows("test")) == []
    assert [r["q"] for r in files.rows("names")] == ["n"]


def test_all_absent_files_of_a_source_are_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "acme" / "demo").mkdir(parents=True)
    resolved = resolve(MirrorOrigin(tmp_path), spec(), allow_short=True)
    (record,) = caplog.records
    assert len(resolved.absent) == 2
    assert record.getMessage().startswith("demo: data/test-*.jsonl is absent; put it under ")
    assert record.getMessage().endswith(" (and 1 more of its files)")


def test_what_another_program_keeps_in_a_mirror_under_a_dot_is_not_read(tmp_path: Path) -> None:
    files = {"a.jsonl": b'{"q": "a"}', ".cache/b.jsonl": b"no", "data/.c.jsonl": b"no", "data/d.jsonl": b"{}"}
    write(tmp_path / "acme" / "demo", files)
    everything = spec(files={"k": FileSpec("*.jsonl", "jsonl", Q)})
    assert [f.path for f in resolve(MirrorOrigin(tmp_path), everything).files] == ["a.jsonl", "data/d.jsonl"]


def test_a_mirror_that_is_not_there_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"--mirror .*nowhere: no such folder"):
        MirrorOrigin(tmp_path / "nowhere").files(spec())


@pytest.mark.parametrize(
    ("facts", "folder"),
    [
        ({}, "acme/demo"),
        ({"host": "github"}, "_web/acme/demo"),
        ({"host": "web", "repo": "https://files.example/x", "mirror": "_web/files"}, "_web/files"),
    ],
)
def test_a_source_lies_in_a_mirror_where_the_interface_says(
    tmp_path: Path, facts: dict[str, object], folder: str
) -> None:
    write(tmp_path / folder, CONTENT)
    assert len(resolve(MirrorOrigin(tmp_path), spec(**facts)).files) == 3


def test_a_file_that_cannot_be_read_names_its_source(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "demo", {**CONTENT, "names.json": b"{"})
    files = open_source(spec(), resolve(MirrorOrigin(tmp_path), spec()), lambda _: None)
    with pytest.raises(SourceError, match=r"^demo: names\.json:1: not JSON"):
        list(files.rows("names"))


def test_a_bad_file_before_a_good_one_does_not_hide_rows_of_another_key(tmp_path: Path) -> None:
    write(tmp_path / "acme" / "demo", {**CONTENT, "names.json": b"{"})
    files = open_source(spec(), resolve(MirrorOrigin(tmp_path), spec()), lambda _: None)
    assert len(list(files.rows("test"))) == 3


def test_sources_of_one_file_share_its_samples() -> None:
    one, other = (SamplesOrigin().files(SOURCES[name].spec) for name in ("mt_bench", "gsm8k"))
    assert [f.local for f in one.files] == [f.local for f in other.files]
    assert one.absent == ()
