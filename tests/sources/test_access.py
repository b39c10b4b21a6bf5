"""What cannot be read is found out for all sources, with reason and remedy, before a byte of data is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.access import Access, check_access, check_mirror, require_access
from sources.base import FileSpec, SourceSpec
from sources.cache import SourceCache
from sources.errors import SourceError
from sources.fetch import HubOrigin
from sources.licenses import MIT
from sources.lock import Lock
from sources.origins import MirrorOrigin
from tests.hub.fakehub import FakeHub

BASE = {"title": "t", "license": MIT, "feeds": ("qa",), "citation": "c"}


def spec(name: str, repo: str = "", path: str = "q.jsonl", **facts: object) -> SourceSpec:
    files = {"rows": FileSpec(path, "jsonl", {"q": "string"})}
    return SourceSpec(name=name, repo=repo or f"demo/{name}", files=files, **{**BASE, **facts})  # type: ignore[arg-type]


def origin(tmp_path: Path) -> HubOrigin:
    return HubOrigin(cache=SourceCache(tmp_path / "cache"), lock=Lock())


def by_name(accesses: list[Access]) -> dict[str, Access]:
    return {a.source: a for a in accesses}


def test_three_bad_sources_among_good_ones_are_one_report_before_any_data(hub: FakeHub, tmp_path: Path) -> None:
    names = ["big", "small", "wants-token", "middling", "wants-terms", "gone"]
    for name in names[:5]:
        hub.dataset(f"demo/{name}").commit({"q.jsonl": b'{"q": "a"}\n'})
    hub.denied |= {"demo/wants-token": 401, "demo/wants-terms": 403}
    accesses = check_access([spec(n, gated=n.startswith("wants")) for n in names], origin(tmp_path))
    assert hub.data_requests() == []
    assert [a.source for a in accesses] == names, "in the order given"
    assert [a.state for a in accesses] == ["ok", "ok", "failed", "ok", "failed", "failed"]
    reasons = {a.source: a.reason for a in accesses if not a.is_readable}
    assert reasons == {
        "wants-token": "no valid token",
        "wants-terms": "terms not accepted",
        "gone": "moved, not found or private",
    }
    remedies = {a.source: a.remedy for a in accesses}
    assert "HF_TOKEN" in remedies["wants-token"]
    assert f"{hub.url}/datasets/demo/wants-terms" in remedies["wants-terms"]
    assert f"{hub.url}/datasets/demo/gone" in remedies["gone"]
    with pytest.raises(SourceError) as error:
        require_access(accesses)
    report = str(error.value)
    assert report.startswith("3 of 6 sources cannot be read, nothing was fetched:")
    assert all(f"demo/{name}): {reason}; " in report for name, reason in reasons.items())
    assert hub.data_requests() == []


@pytest.mark.parametrize("token", ["", "hf_expired"])
def test_without_a_token_or_with_a_dead_one_the_remedy_is_a_token(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    hub.dataset("demo/gated").commit({"q.jsonl": b""})
    hub.dataset("demo/gated").gated = True
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    (access,) = check_access([spec("gated", gated=True)], origin(tmp_path))
    assert access.reason == "no valid token"
    assert "set HF_TOKEN" in access.remedy
    assert f"accept its terms at {hub.url}/datasets/demo/gated" in access.remedy


def test_a_pinned_revision_that_is_gone_is_named(hub: FakeHub, tmp_path: Path) -> None:
    hub.dataset("demo/moved").commit({"q.jsonl": b""})
    (access,) = check_access([spec("moved", revision="0" * 40)], origin(tmp_path))
    assert (access.state, access.reason) == ("failed", "revision not found")


def test_files_that_a_revision_lacks_are_named(hub: FakeHub, tmp_path: Path) -> None:
    hub.dataset("demo/a").commit({"other.jsonl": b""})
    hub.project("demo/b").commit({"q.jsonl": b""})
    specs = [spec("a"), spec("a2", "demo/a", "data/*.jsonl"), spec("b", host="github")]
    found = by_name(check_access(specs, origin(tmp_path)))
    assert (found["a"].state, found["a"].reason) == ("incomplete", "absent: q.jsonl")
    assert (found["a2"].state, found["a2"].reason) == ("incomplete", "absent: data/*.jsonl")
    assert found["b"].state == "ok"
    with pytest.raises(SourceError, match="2 of 3"):
        require_access(list(found.values()))
    require_access(list(found.values()), allow_short=True)


def test_github_and_web_files_are_looked_for_by_their_heads(hub: FakeHub, tmp_path: Path) -> None:
    hub.project("demo/b").commit({"q.jsonl": b""})
    hub.web["files.example/q.jsonl"] = b""
    hub.answers["no-head"] = [(405, {})]
    specs = [
        spec("there", "demo/b", host="github"),
        spec("gone", "demo/c", host="github"),
        spec("web", "https://files.example", host="web"),
        spec("webgone", "https://files.example", "r.jsonl", host="web"),
        spec("headless", "https://files.example", "no-head.jsonl", host="web"),
    ]
    found = by_name(check_access(specs, origin(tmp_path)))
    assert {n: (a.state, a.reason) for n, a in found.items()} == {
        "there": ("ok", ""),
        "gone": ("failed", "moved, not found or private"),
        "web": ("ok", ""),
        "webgone": ("failed", "moved, not found or private"),
        "headless": ("ok", ""),
    }
    assert hub.data_requests() == []


def test_githubs_rate_limit_is_not_taken_for_a_missing_repository(hub: FakeHub, tmp_path: Path) -> None:
    hub.answers["_github"] = [(403, {})]
    (access,) = check_access([spec("b", host="github")], origin(tmp_path))
    assert (access.reason, access.remedy[:16]) == ("refused with HTTP 403", "set GITHUB_TOKEN")


def test_what_is_in_the_cache_is_not_asked_for(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.dataset("demo/a").commit({"q.jsonl": b'{"q": "a"}\n'})
    mine = origin(tmp_path)
    mine.files(spec("a"))
    hub.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = by_name(check_access([spec("a"), spec("b")], mine))
    assert found["a"].state == "cached"
    assert found["b"].reason == "not in the cache, and HF_HUB_OFFLINE is set"
    assert hub.asked == []


def test_without_a_network_every_source_says_so(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    accesses = check_access([spec("a"), spec("b")], origin(tmp_path))
    assert {a.reason for a in accesses} == {"network unreachable: 127.0.0.1:9: it refuses connections"}
    assert all("--mirror DIR" in a.remedy for a in accesses)


def test_a_web_source_needs_exact_names(hub: FakeHub, tmp_path: Path) -> None:
    (access,) = check_access([spec("w", "https://files.example", "*.jsonl", host="web")], origin(tmp_path))
    assert "must be named, or have urls" in access.reason


def test_a_mirror_is_looked_through_without_reading_it(tmp_path: Path) -> None:
    (tmp_path / "demo" / "a").mkdir(parents=True)
    (tmp_path / "demo" / "a" / "q.jsonl").write_bytes(b"")
    found = by_name(check_mirror([spec("a"), spec("b")], MirrorOrigin(tmp_path)))
    assert found["a"].state == "ok"
    assert (found["b"].state, found["b"].reason) == ("incomplete", "absent: q.jsonl")
    assert str(tmp_path / "demo" / "b") in found["b"].remedy
