import os
from pathlib import Path

import pytest

from sources.disk import atomic, made_once
from sources.errors import Refusal


def test_a_file_takes_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    with pytest.raises(UnicodeEncodeError), atomic(target) as scratch:
        scratch.write_text("half \ud800", "utf-8")
    assert list(tmp_path.iterdir()) == []
    with atomic(target) as scratch:
        scratch.write_text("whole", "utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_what_is_no_file_is_never_replaced_by_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(Refusal, match="pipe: is a device or pipe"), atomic(pipe):
        pass
    assert pipe.is_fifo()
    with pytest.raises(Refusal, match="is a folder"), atomic(tmp_path):
        pass


def test_what_a_cache_holds_is_made_once_and_whole(tmp_path: Path) -> None:
    made = []

    def folder(scratch: Path) -> None:
        made.append(scratch)
        scratch.mkdir()
        (scratch / "weights").write_bytes(b"1")

    for _ in range(2):
        assert (made_once(tmp_path / "cache" / "pair", folder) / "weights").read_bytes() == b"1"
    assert len(made) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["pair"]


def test_another_process_may_have_made_the_folder_meanwhile(tmp_path: Path) -> None:
    target = tmp_path / "pair"

    def late(scratch: Path) -> None:
        scratch.mkdir()
        target.mkdir()
        (target / "theirs").touch()

    assert [path.name for path in made_once(target, late).iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["pair"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match="give a cache folder that can be written"):
        made_once(tmp_path / "file" / "pair", lambda scratch: scratch.mkdir())
