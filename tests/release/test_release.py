"""A release is one commit and one tag, from whatever state an earlier try left; all refusals are one report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.errors import ReleaseError
from curation.release.flow import check_before_build, dry_run_rows, release_dist
from curation.release.plan import previous_release, releases, version_refusals
from curation.release.remote import Identity, State
from curation.store import write_json
from curation.verify.registry import verify_dist
from tests.hub.fakehub import FakeHub, Fault, Repo
from tests.release.tiny_build import ROWS, copy_of, tiny_build

# The Hub's own client uploads in a way that its HTTP library calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")

REPO = "acme/tiny"


def no_wait(_seconds: float) -> None:
    return None


@pytest.fixture(scope="session")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build like `built` in which the text of one row is another."""
    root = tmp_path_factory.mktemp("changed")
    rows = {config: list(listed) for config, listed in ROWS.items()}
    rows["qualitative"][0] = ("math", "gsm8k", "g1", ["A ferry takes 12 cars a crossing. How many crossings for 90?"])
    tiny_build(root, rows)
    return root


@pytest.fixture
def newer(changed: Path, tmp_path: Path) -> Path:
    return copy_of(changed, tmp_path / "newer")


def tree_of(repo: Repo, revision: str = "main") -> dict[str, bytes]:
    found = repo.tree(revision)
    assert found is not None
    return {path: entry.data for path, entry in found.items() if path != ".gitattributes"}


def files_of(dist: Path) -> dict[str, bytes]:
    return {p.relative_to(dist).as_posix(): p.read_bytes() for p in dist.rglob("*") if p.is_file()}


def releases_made(repo: Repo) -> list[str]:
    return [title for _, title in repo.history if title.startswith("Release")]


# ---- the way it goes


def test_the_first_release_is_one_commit_with_one_tag_and_dist_is_what_was_uploaded(hub: FakeHub, dist: Path) -> None:
    pushed = release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    repo = hub.dataset(REPO)
    assert (pushed.tag, pushed.revision, pushed.is_new) == ("v1.0.0", repo.head, True)
    assert repo.tags == {"v1.0.0": repo.head}
    assert releases_made(repo) == ["Release v1.0.0"]
    assert tree_of(repo) == files_of(dist)
    assert "## 1.0.0\n\n- The first release.\n- `qualitative`: 6 rows." in (dist / "CHANGELOG.md").read_text()
    card = (dist / "README.md").read_text()
    assert 'load_dataset("acme/tiny", "qualitative", split="test", revision="v1.0.0")' in card
    assert verify_dist(dist).faults == (), "what was written into it is in order"


def test_again_is_the_same_state_and_no_second_commit(hub: FakeHub, dist: Path) -> None:
    first = release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    before = files_of(dist)
    again = release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    assert (again.revision, again.is_new) == (first.revision, False)
    assert releases_made(hub.dataset(REPO)) == ["Release v1.0.0"]
    assert files_of(dist) == before


def test_the_next_release_deletes_stale_files_and_says_what_changed(hub: FakeHub, dist: Path, newer: Path) -> None:
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    repo = hub.dataset(REPO)
    repo.commit({**tree_of(repo), ".gitattributes": b"x", "data/old-00000.parquet": b"x"}, title="by hand")
    release_dist(str(newer), REPO, "1.1.0", wait=no_wait)
    assert "data/old-00000.parquet" not in tree_of(repo)
    assert repo.tree("main")[".gitattributes"].data == b"x", "the Hub's own file stays"
    assert tree_of(repo, "v1.1.0") == files_of(newer)
    assert tree_of(repo, "v1.0.0") == files_of(dist), "the old tag is where it was"
    log = (newer / "CHANGELOG.md").read_text()
    assert log.index("## 1.1.0") < log.index("## 1.0.0")
    changed_id = next(
        new["question_id"]
        for old, new in zip(
            *(pq.read_table(d / "data/qualitative.parquet").to_pylist() for d in (dist, newer)), strict=True
        )
        if old["turns"] != new["turns"]
    )
    assert f"1 row changed (num_tokens in 1, turns in 1, turns_sha256 in 1): {changed_id}" in log
    assert changed_id in (newer / "README.md").read_text()


@pytest.mark.parametrize("version", ["1.0.1", "1.0.0", "0.9.0"])
def test_a_version_that_is_too_small_a_step_is_refused(hub: FakeHub, dist: Path, newer: Path, version: str) -> None:
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    before = (dict(hub.dataset(REPO).tags), hub.dataset(REPO).head)
    with pytest.raises(ReleaseError) as error:
        release_dist(str(newer), REPO, version, wait=no_wait)
    wanted = {
        "1.0.1": "rows or their text changed since v1.0.0, so it is 1.1.0 at least",
        "1.0.0": "with other files, and a tag is never moved; release this under the next version",
        "0.9.0": "v1.0.0 is released already; a release is newer than all others",
    }
    assert wanted[version] in str(error.value)
    assert (dict(hub.dataset(REPO).tags), hub.dataset(REPO).head) == before


def test_a_dry_run_says_what_would_change_and_changes_nothing(hub: FakeHub, dist: Path, newer: Path) -> None:
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    num_asked = len(hub.asked)
    here, there = files_of(newer), (hub.dataset(REPO).head, dict(hub.dataset(REPO).tags))
    rows = {row["file"]: row["change"] for row in dry_run_rows(str(newer), REPO, "1.1.0")}
    assert rows == {
        "CHANGELOG.md": "replace",
        "LICENSE.md": "none",
        "README.md": "replace",
        "SHA256SUMS": "replace",
        "data/qualitative.parquet": "replace",
        "data/throughput_64.parquet": "none",
    }
    assert files_of(newer) == here
    assert (hub.dataset(REPO).head, hub.dataset(REPO).tags) == there
    assert all(asked.method in {"GET", "HEAD"} for asked in hub.asked[num_asked:])


# ---- what stands in the way


def test_every_refusal_is_in_one_report_and_nothing_is_sent(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = tiny_build(tmp_path, origin="mirror")
    (dist / "tiny.py").write_text("")
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(tmp_path / "none.toml"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_tester")
    with pytest.raises(ReleaseError) as error:
        release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    report = str(error.value)
    for part in (
        "acme/tiny: the token of tester (role read) may not write there",
        " sources are not pinned: ",
        "cais/hle",
        "OPENAI_API_KEY is not set",
        "files: tiny.py: ",
        "sources: ../manifest.json: built from mirror",
    ):
        assert part in report, part
    assert f"; {len(report.splitlines()) - 1} refusals:" in report
    assert hub.datasets == {}
    assert "hf_tester" not in report


@pytest.mark.parametrize(
    ("repo", "version", "message"),
    [
        ("tiny", "1.0.0", "no owner; name it ORG/NAME"),
        ("acme/ti--ny", "1.0.0", "--repo acme/ti--ny"),
        (REPO, "v1.0.0", "--version v1.0.0: not X.Y.Z"),
        (REPO, "1.0", "not X.Y.Z"),
        (REPO, "1.0.0-rc1", "not X.Y.Z"),
        (REPO, "01.0.0", "not X.Y.Z"),
    ],
)
def test_names_and_versions_are_checked_before_the_hub_is_asked(
    hub: FakeHub, dist: Path, repo: str, version: str, message: str
) -> None:
    with pytest.raises(ReleaseError, match="1 refusals") as error:
        release_dist(str(dist), repo, version, wait=no_wait)
    assert message in str(error.value)
    assert hub.asked == []


@pytest.mark.parametrize(("token", "message"), [("hf_gone", "token is not valid"), ("", "there is no token")])
def test_a_token_that_is_dead_or_absent_is_told(
    hub: FakeHub, dist: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, token: str, message: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(ReleaseError) as error:
        release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    assert message in str(error.value)
    assert "hf_gone" not in str(error.value)


@pytest.mark.parametrize(
    ("role", "organisations", "scopes", "repo", "may"),
    [
        ("write", {}, (), "ana/x", True),
        ("write", {"acme": "write"}, (), "acme/x", True),
        ("write", {"acme": "read"}, (), "acme/x", False),
        ("write", {}, (), "acme/x", False),
        ("read", {"acme": "admin"}, (), "acme/x", False),
        ("read", {}, (), "ana/x", False),
        ("fineGrained", {"acme": "admin"}, ("acme",), "acme/x", True),
        ("fineGrained", {}, ("acme/x",), "acme/x", True),
        ("fineGrained", {"acme": "admin"}, ("acme/y",), "acme/x", False),
    ],
)
def test_the_right_to_write(role: str, organisations: dict, scopes: tuple, repo: str, may: bool) -> None:
    assert Identity("ana", role, organisations, frozenset(scopes)).may_write(repo) is may


def test_before_a_build_its_needs_are_one_report(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(tmp_path / "none.toml"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ReleaseError) as error:
        check_before_build("v1", REPO, "1.0.0")
    report = str(error.value)
    assert "a build of v1 cannot be released as acme/tiny v1.0.0, nothing was sent" in report
    assert "OPENAI_API_KEY is not set, and text-embedding-3-large needs it" in report
    assert re.search(r"\d+ sources are not pinned: .*mmlu_pro.*; run: speedbench sources lock", report)
    assert "moved, not found or private" in report, "the sources are not on this Hub"


def test_a_dist_that_is_not_there_is_one_of_the_refusals(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"1 refusals:\n.*not a folder, and not ORG/NAME@REVISION"):
        release_dist(str(tmp_path / "nothing"), REPO, "1.0.0", wait=no_wait)


# ---- versions


def test_tags_that_are_no_versions_are_no_releases() -> None:
    state = State("a", {"v1.0.0": "a", "v1.10.0": "b", "v1.9.0": "c", "latest": "d", "2.0.0": "e", "v3": "f"})
    assert releases(state) == ["v1.0.0", "v1.9.0", "v1.10.0"]
    assert previous_release(state, "1.10.0") == "v1.9.0"
    assert previous_release(state, "1.10.1") == "v1.10.0"
    assert previous_release(state, "0.1.0") == ""
    assert version_refusals(state, "1.10.0", None) == [], "its own tag, from an earlier try"


# ---- faults

COMMIT, TAG = ("POST", "/commit/"), ("POST", "/tag/")
STEPS = [
    ("GET", "/whoami"),
    ("GET", "/refs"),
    ("GET", "/tree/"),
    ("GET", "/commits/"),
    ("GET", "/resolve/"),
    ("POST", "/repos/create"),
    ("POST", "/validate-yaml"),
    ("POST", "/preupload/"),
    ("POST", "objects/batch"),
    ("PUT", "/_lfs/"),
    COMMIT,
    TAG,
]
STATUSES = [409, 412, 429, 500, 503, None]


@pytest.mark.parametrize("is_late", [False, True], ids=["undone", "done"])
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("step", [COMMIT, TAG], ids=["commit", "tag"])
def test_a_commit_or_tag_that_fails_whether_or_not_it_was_done_ends_in_one_commit(
    hub: FakeHub, dist: Path, step: tuple[str, str], status: int | None, is_late: bool
) -> None:
    hub.faults.append(Fault(*step, status, is_late))
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    assert hub.faults == []
    repo = hub.dataset(REPO)
    assert releases_made(repo) == ["Release v1.0.0"]
    assert tree_of(repo, "v1.0.0") == files_of(dist)


def test_retries_wait_as_the_hub_asks_and_give_up_with_a_remedy(hub: FakeHub, dist: Path) -> None:
    waits: list[float] = []
    hub.faults += [Fault(*COMMIT, 429, headers={"Retry-After": "17"}), *[Fault(*COMMIT, 503)] * 4]
    with pytest.raises(ReleaseError, match=r"HTTP 503; .*nothing is half done, the same command goes on from here"):
        release_dist(str(dist), REPO, "1.0.0", wait=waits.append)
    assert waits == [17, 2, 4, 8]
    assert releases_made(hub.dataset(REPO)) == []
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    assert releases_made(hub.dataset(REPO)) == ["Release v1.0.0"]


def test_a_commit_of_somebody_else_during_the_push_is_not_built_upon(hub: FakeHub, dist: Path, newer: Path) -> None:
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    repo = hub.dataset(REPO)

    def meanwhile() -> None:
        repo.commit({**tree_of(repo), "README.md": b"vandal"}, title="by hand")

    hub.faults.append(Fault("POST", "/preupload/", 503, meanwhile=meanwhile))
    with pytest.raises(ReleaseError, match="was committed since the preflight saw"):
        release_dist(str(newer), REPO, "1.1.0", wait=no_wait)
    assert list(repo.tags) == ["v1.0.0"]
    release_dist(str(newer), REPO, "1.1.0", wait=no_wait)
    assert tree_of(repo, "v1.1.0") == files_of(newer), "run again, it goes on from what is there now"


def test_a_commit_that_was_buried_before_its_tag_is_found_again(hub: FakeHub, dist: Path) -> None:
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    repo = hub.dataset(REPO)
    released = repo.tags.pop("v1.0.0")
    repo.commit({**tree_of(repo), "README.md": b"# by hand"}, title="by hand")
    pushed = release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    assert pushed.revision == repo.tags["v1.0.0"] == released
    assert releases_made(repo) == ["Release v1.0.0"]


def test_a_hub_that_ignores_a_file_gets_no_tag(hub: FakeHub, dist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Repo.commit

    def lossy(self: Repo, files: dict[str, bytes], revision: str = "", title: str = "") -> str:
        return commit(self, {p: d for p, d in files.items() if p != "LICENSE.md"}, revision, title)

    monkeypatch.setattr(Repo, "commit", lossy)
    with pytest.raises(ReleaseError, match="holds other files than were sent, so it got no tag"):
        release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    assert hub.dataset(REPO).tags == {}


def test_a_tag_that_somebody_moved_is_not_moved_back(hub: FakeHub, dist: Path) -> None:
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    repo = hub.dataset(REPO)
    repo.tags["v1.0.0"] = moved = repo.commit({"README.md": b"# other"}, title="by hand")
    with pytest.raises(ReleaseError, match="a tag is never moved"):
        release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    assert repo.tags["v1.0.0"] == moved


def test_a_dist_that_was_stamped_halfway_is_stamped_whole(hub: FakeHub, dist: Path, newer: Path) -> None:
    release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
    fresh = {name: (newer / name).read_bytes() for name in ("README.md", "SHA256SUMS")}
    release_dist(str(newer), REPO, "1.1.0", wait=no_wait)
    whole = files_of(newer)
    (newer / "SHA256SUMS").write_bytes(fresh["SHA256SUMS"])  # killed before the last of the three was written
    hub.dataset(REPO).tags.pop("v1.1.0")
    release_dist(str(newer), REPO, "1.1.0", wait=no_wait)
    assert files_of(newer) == whole
    assert releases_made(hub.dataset(REPO)) == ["Release v1.0.0", "Release v1.1.0"]


FAULTS = st.builds(
    lambda step, status, is_late: Fault(*step, status, is_late),
    st.sampled_from(STEPS) | st.sampled_from([COMMIT, TAG]),
    st.sampled_from(STATUSES),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(faults=st.lists(FAULTS, min_size=1, max_size=8))
def test_whatever_goes_wrong_a_user_sees_the_old_release_or_the_new_one(
    hub_here: FakeHub, built: Path, changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: list[Fault]
) -> None:
    monkeypatch.setenv("SPEEDBENCH_LOCK", str(built / "lock.toml"))
    for name in ("old", "new"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    old, new = copy_of(built, tmp_path / "old"), copy_of(changed, tmp_path / "new")
    hub_here.reset()
    release_dist(str(old), REPO, "1.0.0", wait=no_wait)
    repo = hub_here.dataset(REPO)
    old_tree, old_tags = tree_of(repo), dict(repo.tags)

    hub_here.faults += faults
    for _ in range(len(faults) + 1):
        try:
            release_dist(str(new), REPO, "1.1.0", wait=no_wait)
        except ReleaseError:
            pass
        else:
            break
        new_tree = files_of(new)
        assert tree_of(repo) in (old_tree, new_tree)
        assert repo.tags.items() >= old_tags.items()
        assert "v1.1.0" not in repo.tags or tree_of(repo, "v1.1.0") == new_tree
    else:
        pytest.fail("as many runs as faults, and one more, were not enough")
    assert tree_of(repo, "v1.1.0") == tree_of(repo) == files_of(new)
    assert tree_of(repo, "v1.0.0") == old_tree
    assert releases_made(repo) == ["Release v1.0.0", "Release v1.1.0"]


# ---- a build that is in order stays so


def test_a_forged_manifest_does_not_pass_for_a_build_of_the_sources(hub: FakeHub, dist: Path) -> None:
    path = dist.parent / "manifest.json"
    document = json.loads(path.read_text())
    document["allow_short"] = True
    write_json(path, document)
    with pytest.raises(ReleaseError, match="built with --allow-short"):
        release_dist(str(dist), REPO, "1.0.0", wait=no_wait)
