"""Files come from the pinned revision, are what the lock says, and survive whatever a network does to them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sources import http
from sources.base import FileSpec, SourceSpec
from sources.cache import SourceCache
from sources.disk import file_sha256
from sources.errors import SourceError
from sources.fetch import HubOrigin
from sources.http import Unreachable
from sources.licenses import MIT
from sources.lock import Lock, LockedFile, LockedSource
from sources.origins import resolve
from tests.hub.fakehub import FakeHub, Gate, running

OLD, NEW = b'{"q": "as it was"}\n', b'{"q": "as it is now"}\n'
BIG = bytes(range(256)) * 8192  # 2 MiB, no two of its pieces alike in place


@pytest.fixture(params=["hub", "github", "web"])
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def spec_at(host: str, path: str = "data/q.jsonl", revision: str = "", name: str = "demo") -> SourceSpec:
    repo = "https://files.example/sets" if host == "web" else "acme/questions"
    return SourceSpec(
        name=name,
        title="Demo",
        repo=repo,
        license=MIT,
        files={"rows": FileSpec(path, "jsonl", {"q": "string"})},
        feeds=("qa",),
        citation="@misc{demo}",
        host=host,  # type: ignore[arg-type]
        revision=revision,
    )


def put(hub: FakeHub, host: str, files: dict[str, bytes], revision: str = "") -> str:
    if host == "web":
        hub.web |= {f"files.example/sets/{path}": data for path, data in files.items()}
        return ""
    repo = hub.dataset("acme/questions") if host == "hub" else hub.project("acme/questions")
    return repo.commit(files, revision)


def locked(tmp_path: Path, data: bytes, path: str = "data/q.jsonl", revision: str = "") -> Lock:
    source = tmp_path / "as-locked"
    source.write_bytes(data)
    file = LockedFile(path=path, sha256=file_sha256(source), size=len(data))
    return Lock(sources={"demo": LockedSource(revision=revision, files=(file,))})


def origin(tmp_path: Path, lock: Lock | None = None) -> HubOrigin:
    return HubOrigin(cache=SourceCache(tmp_path / "cache"), lock=lock or Lock())


def content(origin: HubOrigin, spec: SourceSpec) -> list[bytes]:
    return [f.local.read_bytes() for f in resolve(origin, spec).files]


@pytest.mark.parametrize("host", ["hub", "github"])
def test_the_pinned_revision_is_read_although_the_repository_moved_on(hub: FakeHub, host: str, tmp_path: Path) -> None:
    pinned = put(hub, host, {"data/q.jsonl": OLD})
    put(hub, host, {"data/q.jsonl": NEW})
    assert content(origin(tmp_path), spec_at(host, revision=pinned)) == [OLD]


@pytest.mark.parametrize("host", ["hub", "github"])
def test_the_revision_of_the_lock_is_read_where_the_spec_names_none(hub: FakeHub, host: str, tmp_path: Path) -> None:
    pinned = put(hub, host, {"data/q.jsonl": OLD})
    put(hub, host, {"data/q.jsonl": NEW})
    assert content(origin(tmp_path, locked(tmp_path, OLD, revision=pinned)), spec_at(host)) == [OLD]


@pytest.mark.parametrize("host", ["hub", "github"])
def test_an_unpinned_source_stays_at_the_revision_that_its_first_pull_found(
    hub: FakeHub, host: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(hub, host, {"data/q.jsonl": OLD})
    first = content(origin(tmp_path), spec_at(host))
    put(hub, host, {"data/q.jsonl": NEW})
    asked = len(hub.asked)
    assert (first, content(origin(tmp_path), spec_at(host))) == ([OLD], [OLD])
    assert len(hub.asked) == asked, "a second run needs no network"
    assert "demo is not locked" in caplog.text
    assert "cannot be released" in caplog.text


def test_a_pattern_is_read_in_the_order_of_the_paths(hub: FakeHub, tmp_path: Path) -> None:
    files = {f"data/test-0000{i}.jsonl": str(i).encode() for i in (2, 0, 1)} | {"data/train.jsonl": b"no"}
    pinned = put(hub, "hub", files)
    assert content(origin(tmp_path), spec_at("hub", "data/test-*.jsonl", pinned)) == [b"0", b"1", b"2"]


def test_a_file_that_was_changed_on_its_way_is_refused_and_not_kept(hub: FakeHub, host: str, tmp_path: Path) -> None:
    revision = put(hub, host, {"data/q.jsonl": NEW})
    with pytest.raises(SourceError, match=r"demo: data/q\.jsonl: SHA-256 is .*expected.*nothing was kept"):
        origin(tmp_path, locked(tmp_path, OLD, revision=revision)).files(spec_at(host))
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and not p.name.endswith(".lock")]
    assert kept == []


def test_a_file_that_was_changed_in_the_cache_is_fetched_again(hub: FakeHub, host: str, tmp_path: Path) -> None:
    revision = put(hub, host, {"data/q.jsonl": OLD})
    mine, spec = origin(tmp_path, locked(tmp_path, OLD, revision=revision)), spec_at(host)
    mine.files(spec).files[0].local.write_bytes(NEW)
    assert content(mine, spec) == [OLD]


def test_a_broken_connection_is_taken_up_where_it_broke(hub: FakeHub, host: str, tmp_path: Path) -> None:
    revision = put(hub, host, {"data/q.jsonl": BIG})
    hub.cuts["q.jsonl"] = [1 << 20, 1 << 19]
    assert content(origin(tmp_path), spec_at(host, revision=revision)) == [BIG]
    ranges = [a.range for a in hub.data_requests()]
    assert ranges[0] == ""
    assert len(ranges) == 3
    assert all(r.startswith("bytes=") for r in ranges[1:])


@pytest.mark.parametrize("has_etags", [True, False])
def test_a_server_that_ignores_ranges_still_gives_the_right_bytes(
    hub: FakeHub, host: str, tmp_path: Path, has_etags: bool
) -> None:
    hub.ignores_range, hub.has_etags = True, has_etags
    revision = put(hub, host, {"data/q.jsonl": BIG})
    hub.cuts["q.jsonl"] = [1 << 20]
    assert content(origin(tmp_path, locked(tmp_path, BIG, revision=revision)), spec_at(host)) == [BIG]


def test_halves_of_two_files_are_never_joined(hub: FakeHub, tmp_path: Path) -> None:
    put(hub, "web", {"data/q.jsonl": BIG})
    hub.cuts["q.jsonl"] = [1 << 20] + [0] * http.ATTEMPTS
    with pytest.raises(Unreachable, match="broke"):
        origin(tmp_path).files(spec_at("web"))
    put(hub, "web", {"data/q.jsonl": BIG[::-1]})
    hub.cuts.clear()
    assert content(origin(tmp_path), spec_at("web")) == [BIG[::-1]]


def test_the_tag_of_a_file_never_stands_beside_bytes_of_another(hub: FakeHub, tmp_path: Path) -> None:
    def interrupt(file: str, done_bytes: int, total_bytes: int | None) -> None:
        if done_bytes >= 1 << 20:
            raise KeyboardInterrupt

    broken_off = HubOrigin(cache=SourceCache(tmp_path / "cache"), lock=Lock(), progress=interrupt)
    for data, has_etags in ((BIG, True), (BIG[::-1], False)):
        put(hub, "web", {"data/q.jsonl": data})
        hub.has_etags = has_etags
        with pytest.raises(KeyboardInterrupt):
            broken_off.files(spec_at("web"))
    put(hub, "web", {"data/q.jsonl": BIG})
    hub.has_etags = True
    assert content(origin(tmp_path), spec_at("web")) == [BIG]


def test_a_server_that_answers_a_range_with_a_shorter_one_is_asked_again(hub: FakeHub, tmp_path: Path) -> None:
    put(hub, "web", {"data/q.jsonl": BIG})
    hub.cuts["q.jsonl"] = [1 << 20]
    hub.longest_range_bytes = 400_000
    assert content(origin(tmp_path), spec_at("web")) == [BIG]
    assert len(hub.data_requests()) == 4


def test_a_part_that_is_whole_only_has_to_be_checked_and_named(hub: FakeHub, tmp_path: Path) -> None:
    put(hub, "web", {"data/q.jsonl": OLD})
    mine, spec = origin(tmp_path, locked(tmp_path, OLD)), spec_at("web")
    target = mine.cache.path(spec, "", "data/q.jsonl")
    target.parent.mkdir(parents=True)
    (target.parent / ".q.jsonl.part").write_bytes(OLD)
    assert content(mine, spec) == [OLD]
    (asked,) = hub.data_requests()
    assert asked.status == 416


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_failure_that_passes_is_waited_out(hub: FakeHub, host: str, tmp_path: Path, status: int) -> None:
    revision = put(hub, host, {"data/q.jsonl": OLD})
    hub.answers["q.jsonl"] = [(status, {"Retry-After": "0"}), (status, {})]
    assert content(origin(tmp_path), spec_at(host, revision=revision)) == [OLD]


def test_retry_after_is_obeyed_in_seconds_and_as_a_date(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("sources.http.time.sleep", waits.append)
    put(hub, "web", {"data/q.jsonl": OLD})
    past = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    hub.answers["q.jsonl"] = [(429, {"Retry-After": "7"}), (503, past), (503, {"Retry-After": "soon"})]
    assert content(origin(tmp_path), spec_at("web")) == [OLD]
    assert waits == [7.0, 0.0, http.backoff_s(3)]


def test_a_server_that_asks_for_too_long_a_wait_is_named(hub: FakeHub, tmp_path: Path) -> None:
    put(hub, "web", {"data/q.jsonl": OLD})
    hub.answers["q.jsonl"] = [(429, {"Retry-After": "86400"})]
    with pytest.raises(Unreachable, match="it answers 429 and asks to wait 86400 s"):
        origin(tmp_path).files(spec_at("web"))


def test_a_server_that_never_recovers_is_given_up(hub: FakeHub, tmp_path: Path) -> None:
    put(hub, "web", {"data/q.jsonl": OLD})
    hub.answers["q.jsonl"] = [(503, {})] * 99
    with pytest.raises(Unreachable, match="cannot be reached: it answers 503"):
        origin(tmp_path).files(spec_at("web"))
    assert len(hub.asked) == http.ATTEMPTS


def test_a_file_that_is_not_there_is_absent_and_names_its_address(hub: FakeHub, host: str, tmp_path: Path) -> None:
    revision = put(hub, host, {"data/other.jsonl": OLD})
    (absent,) = origin(tmp_path).files(spec_at(host, revision=revision)).absent
    assert (absent.source, absent.path) == ("demo", "data/q.jsonl")
    assert absent.remedy.startswith("not found at http")


def test_a_gated_file_is_a_refusal_and_not_an_absent_file(hub: FakeHub, tmp_path: Path) -> None:
    revision = put(hub, "hub", {"data/q.jsonl": OLD})
    hub.denied["acme/questions"] = 403
    with pytest.raises(SourceError, match=r"^demo: data/q\.jsonl: terms not accepted; open http"):
        origin(tmp_path).files(spec_at("hub", revision=revision))


def test_offline_a_file_in_the_cache_is_used(
    hub: FakeHub, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision = put(hub, host, {"data/q.jsonl": OLD})
    spec = spec_at(host, revision=revision)
    origin(tmp_path).files(spec)
    asked = len(hub.asked)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert content(origin(tmp_path), spec) == [OLD]
    assert len(hub.asked) == asked


def test_offline_a_file_that_is_not_in_the_cache_is_one_clear_line(
    hub: FakeHub, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceError, match=r"^demo: .* is not in the cache and HF_HUB_OFFLINE .*--mirror DIR$"):
        origin(tmp_path).files(spec_at(host))
    assert hub.asked == []


def test_without_a_network_the_host_is_named(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEEDBENCH_WEB_PROXY", "http://127.0.0.1:9")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9 cannot be reached: it refuses connections"):
        origin(tmp_path).files(spec_at("web"))


def test_the_token_goes_to_the_hub_and_to_no_other_host(hub: FakeHub, tmp_path: Path) -> None:
    with running() as elsewhere:
        revision = put(hub, "hub", {"data/q.jsonl": OLD})
        elsewhere.web["cdn/q.jsonl"] = OLD
        hub.redirects["/resolve/"] = elsewhere.url.replace("127.0.0.1", "localhost") + "/_web/cdn/q.jsonl"
        assert content(origin(tmp_path), spec_at("hub", revision=revision)) == [OLD]
        assert {a.authorization for a in hub.asked} == {"Bearer hf_tester"}
        assert [a.authorization for a in elsewhere.asked] == [""]


def test_no_token_goes_to_github_or_the_web(hub: FakeHub, tmp_path: Path) -> None:
    for host in ("github", "web"):
        put(hub, host, {"data/q.jsonl": OLD})
        origin(tmp_path).files(spec_at(host))
    assert {a.authorization for a in hub.asked} == {""}


def test_a_path_that_leads_out_of_its_repository_is_not_fetched(hub: FakeHub, tmp_path: Path) -> None:
    revision = put(hub, "hub", {"../../evil.jsonl": OLD})
    with pytest.raises(SourceError, match="leads out of its repository"):
        origin(tmp_path).files(spec_at("hub", "*evil.jsonl", revision))


def test_no_script_of_a_repository_is_fetched(hub: FakeHub, tmp_path: Path) -> None:
    revision = put(hub, "hub", {"questions.py": b"raise SystemExit", "data/q.jsonl": OLD})
    origin(tmp_path).files(spec_at("hub", revision=revision))
    assert [a.path.rpartition("/")[2] for a in hub.data_requests()] == ["q.jsonl"]


def test_two_pulls_at_once_give_one_whole_file(hub: FakeHub, host: str, tmp_path: Path) -> None:
    revision = put(hub, host, {"data/q.jsonl": BIG})
    spec, found = spec_at(host, revision=revision), []
    threads = [threading.Thread(target=lambda: found.extend(content(origin(tmp_path), spec))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [BIG] * 4
    assert len(hub.data_requests()) == 1


def test_one_file_that_fails_stops_the_others(hub: FakeHub, tmp_path: Path) -> None:
    revision = put(hub, "hub", {f"data/{i}.jsonl": BIG for i in range(9)})
    hub.answers["data/0.jsonl"] = [(403, {})]
    with pytest.raises(SourceError, match=r"data/0\.jsonl"):
        origin(tmp_path).files(spec_at("hub", "data/*.jsonl", revision))


def test_a_cache_that_cannot_be_written_is_one_line(hub: FakeHub, tmp_path: Path) -> None:
    put(hub, "web", {"data/q.jsonl": OLD})
    (tmp_path / "cache").write_bytes(b"a file where a folder is to be")
    with pytest.raises(SourceError, match=r"^demo: the cache .*cache fails \(Not a directory\); .*SPEEDBENCH_CACHE$"):
        origin(tmp_path).files(spec_at("web"))


PULL = """
import sys
from pathlib import Path
from sources.cache import SourceCache
from sources.fetch import HubOrigin
from sources.lock import Lock
from tests.sources.test_fetch import spec_at

def tell(file, done_bytes, total_bytes):
    print(done_bytes, flush=True)

host, cache, revision = sys.argv[1:]
HubOrigin(cache=SourceCache(Path(cache)), lock=Lock(), progress=tell).files(spec_at(host, revision=revision))
"""


def pull(hub: FakeHub, host: str, tmp_path: Path, revision: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **hub.environment(), "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", PULL, host, str(tmp_path / "cache"), revision]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_pull_that_was_killed_goes_on_where_it_was_and_gives_the_same_bytes(
    hub: FakeHub, host: str, tmp_path: Path
) -> None:
    revision = put(hub, host, {"data/q.jsonl": BIG})
    gate = hub.gates["q.jsonl"] = Gate(1 << 20)
    with pull(hub, host, tmp_path, revision) as killed:
        assert killed.stdout is not None
        reached = next(int(line) for line in killed.stdout if int(line) >= 1 << 20)
        killed.send_signal(signal.SIGKILL)
    gate.opened.set()
    assert killed.returncode == -signal.SIGKILL
    assert not list((tmp_path / "cache").rglob("q.jsonl")), "half a file is not a file"
    with pull(hub, host, tmp_path, revision) as again:
        assert again.stdout is not None
        first = int(next(again.stdout))
        again.communicate()
    assert again.returncode == 0
    assert [p.read_bytes() for p in (tmp_path / "cache").rglob("q.jsonl")] == [BIG]
    assert first == reached
    assert hub.data_requests()[-1].range == f"bytes={reached}-"


def test_an_interrupted_pull_says_where_the_next_one_goes_on(
    hub: FakeHub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    revision = put(hub, "hub", {"data/q.jsonl": BIG})

    def interrupt(file: str, done_bytes: int, total_bytes: int | None) -> None:
        if done_bytes:
            raise KeyboardInterrupt

    mine = HubOrigin(cache=SourceCache(tmp_path / "cache"), lock=Lock(), progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        mine.files(spec_at("hub", revision=revision))
    assert content(origin(tmp_path), spec_at("hub", revision=revision)) == [BIG]
    assert hub.data_requests()[-1].range.startswith("bytes=")
