import os
from pathlib import Path

import pytest

from sources.disk import atomic
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
