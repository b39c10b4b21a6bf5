"""The folder of a build: whole or not there, of one process, and nothing of anyone else's is removed."""

from __future__ import annotations

import errno
import os
import signal

import pytest
from filelock import FileLock

from curation.building import LOCK, SCRATCH, whole_build
from curation.errors import BuildError, DistError
from curation.folder import new_folder
from curation.processes import one_thread_pool
from curation.store import BuildFolder, write_checksums, write_json, write_text


def _build(root, text: str) -> BuildFolder:
    with whole_build(root) as folder:
        write_text(folder.dist / "data" / "a.txt", text)
        write_checksums(folder.dist)
        write_text(folder.root / "ledger.parquet", text)
        write_json(folder.manifest, {"recipe": {}, "origin": "samples", "files": {}})
    return BuildFolder(root)


def _break_off(root, error: BaseException) -> None:
    with whole_build(root) as folder:
        write_text(folder.dist / "data" / "a.txt", "new")
        raise error


def _files(root) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


def test_a_build_takes_the_place_of_an_earlier_one_whole(tmp_path):
    with whole_build(tmp_path / "out") as folder:
        write_text(folder.full / "old.txt", "old")
    built = _build(tmp_path / "out", "new")
    assert set(_files(built.root)) == {LOCK, "dist/data/a.txt", "dist/SHA256SUMS", "ledger.parquet", "manifest.json"}


def test_a_build_that_fails_leaves_the_earlier_one_as_it_was(tmp_path):
    before = _files(_build(tmp_path / "out", "old").root)
    with pytest.raises(BuildError, match="too few"):
        _break_off(tmp_path / "out", BuildError("too few candidates"))
    assert _files(tmp_path / "out") == before


def test_a_first_build_that_fails_leaves_no_half_of_a_dist(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        _break_off(tmp_path / "out", KeyboardInterrupt())
    assert set(_files(tmp_path / "out")) == {LOCK}


def test_what_a_killed_build_left_is_gone_after_the_next(tmp_path):
    _build(tmp_path / "out", "old")
    write_text(tmp_path / "out" / SCRATCH / "dist" / "half.txt", "half")
    _build(tmp_path / "out", "new")
    assert not (tmp_path / "out" / SCRATCH).exists()


def test_two_builds_never_write_into_one_folder(tmp_path):
    built = _build(tmp_path / "out", "old")
    with (
        FileLock(built.root / LOCK),
        pytest.raises(BuildError, match="another build is writing there"),
        whole_build(built.root),
    ):
        raise AssertionError("it must not begin")


@pytest.mark.parametrize("name", ["dist/mine.whl", "pool/x", "full/x", "manifest.json"])
def test_files_that_no_build_wrote_are_never_removed(tmp_path, name):
    write_text(tmp_path / "project" / name, "mine")
    with pytest.raises(BuildError, match="no build wrote it"), whole_build(tmp_path / "project"):
        raise AssertionError("it must not begin")
    assert _files(tmp_path / "project") == {name: "mine"}


def test_a_build_of_a_version_without_a_lock_file_is_known_by_its_manifest(tmp_path):
    (_build(tmp_path / "out", "old").root / LOCK).unlink()
    assert (_build(tmp_path / "out", "new").dist / "data" / "a.txt").read_text() == "new"


@pytest.mark.parametrize("inside", ["dist", "dist/data", "dist/data/deeper"])
def test_no_build_goes_into_a_dist(tmp_path, inside):
    built = _build(tmp_path / "out", "old")
    before = _files(built.root)
    with pytest.raises(BuildError, match="lies in the DIST"), whole_build(built.root / inside):
        raise AssertionError("it must not begin")
    assert _files(built.root) == before


@pytest.mark.parametrize("name", ["file/out", "n" * 300, "file"])
def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match=f"{name}.*name another --out"), whole_build(tmp_path / name):
        raise AssertionError("it must not begin")


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_a_refusal_with_a_remedy():
    with pytest.raises(BuildError, match=r"1 worker processes was ended.*fewer --workers"), one_thread_pool(1) as pool:
        pool.submit(_end).result()


def test_a_copy_that_finds_no_space_names_the_file_that_was_written(tmp_path):
    with pytest.raises(DistError, match=r"^/there/b: cannot be written \(No space left on device\)"):
        _copy_to_a_full_disk(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def _copy_to_a_full_disk(out) -> None:
    with new_folder(out):
        raise OSError(errno.ENOSPC, "No space left on device", "/here/a", None, "/there/b")


def _ignores_interrupts() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_reaches_no_worker_from_its_first_moment_and_still_reaches_its_parent():
    with one_thread_pool(1) as pool:
        assert pool.submit(_ignores_interrupts).result()
        assert not _ignores_interrupts()
