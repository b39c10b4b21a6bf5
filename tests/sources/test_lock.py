"""The lock pins revisions, names and digests, found out at the origin alone; the same pins are the same bytes."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.base import FileSpec, SourceSpec
from sources.cache import SourceCache
from sources.errors import SourceError
from sources.fetch import HubOrigin
from sources.licenses import MIT
from sources.lock import (
    Lock,
    LockedFile,
    LockedSource,
    effective_revision,
    is_locked,
    load_lock,
    lock_path,
    lock_text,
    missing_pins,
    source_revision,
    write_lock,
)
from sources.pinning import pin, pin_all
from sources.registry import SOURCES
from tests.hub.fakehub import FakeHub

A, B = b'{"q": "a"}\n', b'{"q": "b"}\n'
REVISION = "5" * 40


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file(path: str, data: bytes = A) -> LockedFile:
    return LockedFile(path=path, sha256=digest(data), size=len(data))


def spec(*paths: str, name: str = "demo", host: str = "hub", revision: str = "") -> SourceSpec:
    files = {f"k{i}": FileSpec(path, "jsonl", {"q": "string"}) for i, path in enumerate(paths or ("q.jsonl",))}
    repo = "https://files.example" if host == "web" else "acme/demo"
    return SourceSpec(name, "t", repo, MIT, files, ("qa",), "c", host=host, revision=revision)  # type: ignore[arg-type]


def origin(tmp_path: Path, lock: Lock | None = None) -> HubOrigin:
    return HubOrigin(cache=SourceCache(tmp_path / "cache"), lock=lock or Lock())


def lock_of(*files: LockedFile, revision: str = REVISION) -> Lock:
    return Lock(sources={"demo": LockedSource(revision=revision, files=files)})


hexes = st.text("0123456789abcdef", min_size=40, max_size=40)
names = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=20)
locked_files = st.builds(LockedFile, path=names, sha256=hexes.map(lambda h: h + h[:24]), size=st.integers(0, 2**62))
locks = st.dictionaries(
    names, st.builds(LockedSource, revision=hexes | st.just(""), files=st.lists(locked_files, max_size=3).map(tuple))
).map(lambda sources: Lock(sources=sources))


@given(locks)
def test_a_lock_that_is_written_and_read_again_is_the_same(lock: Lock) -> None:
    read = Lock.model_validate(tomllib.loads(lock_text(lock)))
    assert lock_text(read) == lock_text(lock)
    for name, source in lock.sources.items():
        assert read.sources[name].revision == source.revision
        assert sorted(read.sources[name].files, key=str) == sorted(source.files, key=str)


def test_the_order_in_which_pins_were_found_does_not_show() -> None:
    one = Lock(sources={"a": LockedSource(files=(file("x"), file("y"))), "b": LockedSource(revision=REVISION)})
    two = Lock(sources={"b": LockedSource(revision=REVISION), "a": LockedSource(files=(file("y"), file("x")))})
    assert lock_text(one) == lock_text(two)


def test_the_text_of_a_lock_is_as_documented() -> None:
    text = lock_text(lock_of(file("data/q.jsonl")))
    assert text.splitlines()[2:] == [
        '[sources."demo"]',
        f'revision = "{REVISION}"',
        "",
        '[[sources."demo".files]]',
        'path = "data/q.jsonl"',
        f'sha256 = "{digest(A)}"',
        "size = 11",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sources", "not TOML"),
        ("[sources.demo]\nrevision = 'main'", r"sources\.demo\.revision"),
        ("[sources.demo]\nrevison = ''", r"sources\.demo\.revison"),
        ("[[sources.demo.files]]\npath = 'q'\nsha256 = 'abc'\nsize = 1", r"files\.0\.sha256"),
    ],
)
def test_a_lock_that_is_no_lock_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "lock.toml"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as error:
        load_lock(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_another_lock_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(tmp_path / "mine.toml"))
    assert load_lock() == Lock()
    write_lock(lock_of(file("q.jsonl")), lock_path())
    assert load_lock() == lock_of(file("q.jsonl"))
    assert [p.name for p in tmp_path.iterdir()] == ["mine.toml"]


def test_what_is_not_pinned_is_named() -> None:
    two = spec("q.jsonl", "data/*.jsonl")
    assert missing_pins(two, Lock()) == ("revision", "q.jsonl", "data/*.jsonl")
    assert missing_pins(two, lock_of(file("q.jsonl"))) == ("data/*.jsonl",)
    assert is_locked(two, lock_of(file("q.jsonl"), file("data/1.jsonl")))
    assert missing_pins(spec(revision=REVISION), Lock()) == ("q.jsonl",)
    assert missing_pins(spec(host="web"), Lock()) == ("q.jsonl",)


def test_digests_of_another_revision_pin_nothing() -> None:
    moved = spec(revision="6" * 40)
    assert missing_pins(moved, lock_of(file("q.jsonl"))) == ("q.jsonl",)
    assert effective_revision(moved, lock_of(file("q.jsonl"))) == "6" * 40


def test_the_published_revision_is_that_of_spec_or_lock_and_of_web_files_their_digest() -> None:
    pinned = lock_of(file("q.jsonl"))
    assert source_revision(spec(), Lock()) == ""
    assert source_revision(spec(), pinned) == REVISION
    assert source_revision(spec(revision="6" * 40), Lock()) == "6" * 40
    web = spec("q.jsonl", host="web")
    assert source_revision(web, Lock()) == ""
    assert source_revision(web, lock_of(file("q.jsonl"), revision="")) == digest(A)
    two, half = spec("q.jsonl", "r.jsonl", host="web"), lock_of(file("q.jsonl"), revision="")
    assert source_revision(two, half) == ""
    both = lock_of(file("r.jsonl", B), file("q.jsonl"), revision="")
    assert source_revision(two, both) == digest(f"{digest(A)}  q.jsonl\n{digest(B)}  r.jsonl\n".encode())


def test_the_hub_is_pinned_with_exact_names_and_digests(hub: FakeHub, tmp_path: Path) -> None:
    files = {"data/test-0.parquet": A, "data/test-1.parquet": B, "notes.jsonl": A, "data/train.parquet": A}
    revision = hub.dataset("acme/demo").commit(files)
    pins = pin(spec("data/test-*.parquet", "notes.jsonl"), origin(tmp_path))
    assert pins.revision == revision
    expected = (file("data/test-0.parquet", A), file("data/test-1.parquet", B), file("notes.jsonl", A))
    assert pins.files == expected
    assert [a.path.rpartition("/")[2] for a in hub.data_requests()] == ["notes.jsonl"], "the list tells the others"


def test_github_is_pinned_by_its_newest_commit(hub: FakeHub, tmp_path: Path) -> None:
    revision = hub.project("acme/demo").commit({"data/a.jsonl": A, "data/b.jsonl": B, "README.md": b""})
    pins = pin(spec("data/*.jsonl", host="github"), origin(tmp_path))
    assert pins == LockedSource(revision=revision, files=(file("data/a.jsonl", A), file("data/b.jsonl", B)))


def test_web_files_are_pinned_by_their_digests_alone(hub: FakeHub, tmp_path: Path) -> None:
    hub.web |= {"files.example/q.jsonl": A, "files.example/r.jsonl": B}
    pins = pin(spec("r.jsonl", "q.jsonl", host="web"), origin(tmp_path))
    assert pins == LockedSource(revision="", files=(file("q.jsonl", A), file("r.jsonl", B)))


def test_web_files_that_have_addresses_of_their_own_are_pinned_and_fetched_from_there(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = {"1.jsonl": "https://one.example/a/1?x", "2.jsonl": "https://two.example/2"}
    entry = FileSpec("*.jsonl", "jsonl", {"q": "string"}, urls=urls)
    books = SourceSpec("demo", "t", "https://files.example", MIT, {"k": entry}, ("qa",), "c", host="web")
    hub.web |= {"one.example/a/1": A, "two.example/2": B}
    lock, failures = pin_all([books], origin(tmp_path))
    assert (failures, lock.sources["demo"].files) == ([], (file("1.jsonl", A), file("2.jsonl", B)))
    assert missing_pins(books, lock_of(file("1.jsonl"), revision="")) == ("*.jsonl",)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert origin(tmp_path, lock).is_cached(books)
    assert [f.path for f in origin(tmp_path, lock).files(books).files] == ["1.jsonl", "2.jsonl"]


def test_a_revision_that_the_spec_pins_is_kept(hub: FakeHub, tmp_path: Path) -> None:
    pinned = hub.dataset("acme/demo").commit({"q.jsonl": A})
    hub.dataset("acme/demo").commit({"q.jsonl": B})
    assert pin(spec(revision=pinned), origin(tmp_path)).files == (file("q.jsonl", A),)


@pytest.mark.parametrize("host", ["hub", "github", "web"])
def test_what_is_pinned_stays_unless_an_update_is_asked_for(hub: FakeHub, tmp_path: Path, host: str) -> None:
    def put(data: bytes) -> None:
        hub.dataset("acme/demo").commit({"q.jsonl": data})
        hub.project("acme/demo").commit({"q.jsonl": data})
        hub.web["files.example/q.jsonl"] = data

    demo = spec(host=host)
    put(A)
    first, _ = pin_all([demo], origin(tmp_path))
    put(B)
    again, _ = pin_all([demo], origin(tmp_path, first))
    assert again == first
    newest, failures = pin_all([demo], origin(tmp_path, first), update=True)
    assert failures == []
    assert newest.sources["demo"].files == (file("q.jsonl", B),)


def test_a_pattern_that_matches_more_than_the_lock_names_is_pinned_whole(hub: FakeHub, tmp_path: Path) -> None:
    revision = hub.dataset("acme/demo").commit({"d/1.jsonl": A, "d/2.jsonl": B, "q.jsonl": A})
    half = lock_of(file("d/1.jsonl", A), revision=revision)
    lock, _ = pin_all([spec("d/*.jsonl", "q.jsonl")], origin(tmp_path, half))
    assert [f.path for f in lock.sources["demo"].files] == ["d/1.jsonl", "d/2.jsonl", "q.jsonl"]


def test_a_pinned_file_that_changed_under_its_revision_is_not_pinned_anew(hub: FakeHub, tmp_path: Path) -> None:
    revision = hub.dataset("acme/demo").commit({"q.jsonl": B, "r.jsonl": A})
    before = lock_of(file("q.jsonl", A), revision=revision)
    lock, failures = pin_all([spec("q.jsonl", "r.jsonl")], origin(tmp_path, before))
    assert lock == before
    assert "demo: q.jsonl is locked as" in failures[0]


def test_sources_that_cannot_be_pinned_are_all_named_and_the_others_are_pinned(hub: FakeHub, tmp_path: Path) -> None:
    hub.dataset("acme/demo").commit({"q.jsonl": A})
    hub.dataset("acme/gated").commit({"q.jsonl": A})
    hub.denied["acme/gated"] = 403
    gated = SourceSpec("gated", "t", "acme/gated", MIT, {"k": FileSpec("q.jsonl", "jsonl")}, ("qa",), "c", gated=True)
    missing = spec("other.jsonl", name="missing")
    lock, failures = pin_all([gated, missing, spec()], origin(tmp_path))
    assert sorted(lock.sources) == ["demo"]
    assert failures[0].startswith("gated: q.jsonl: terms not accepted; open ")
    assert failures[1].startswith("missing: other.jsonl is absent; not found at ")


def test_the_locks_of_the_package_fit_its_specs() -> None:
    lock = load_lock()
    assert set(lock.sources) <= set(SOURCES)
    for name, pins in lock.sources.items():
        spec = SOURCES[name].spec
        assert spec.revision in {"", pins.revision}, f"{name}: spec and lock name different revisions"
        assert all(any(f.matches(p.path) for f in spec.files.values()) for p in pins.files), name
