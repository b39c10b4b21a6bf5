"""A loopback stand-in for the hosts of sources: the Hub, GitHub's API and raw files, and plain web files.

What writes to the Hub (repositories, uploads, commits, tags) is in `tests/hub/publishing.py`.

In memory, no network, nothing of it is fast or safe enough for anything but tests. It can misbehave on demand:

- `hub.answers[path pattern] = [(status, headers), ...]`: the next answers to matching paths, one each;
- `hub.cuts[path pattern] = [bytes, ...]`: break the connection after so many bytes of a body, once each;
- `hub.gates[path pattern] = Gate(bytes)`: send so many bytes of a body, then wait until the gate opens;
- `hub.ignores_range = True`: always send whole files;
- `hub.faults.append(Fault(...))`: the next matching request fails, before or after it did its work, once.

Tokens: `hf_tester` may read all but what `denied` says, `hf_writer` may also write to its own repositories and to those
of the organisation `acme`; any other is invalid. Clients need HF_HUB_DISABLE_XET=1.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

TOKEN = "hf_tester"
WRITE_TOKEN = "hf_writer"
USERS = {
    f"Bearer {TOKEN}": ("tester", (), "read"),
    f"Bearer {WRITE_TOKEN}": ("writer", ("acme",), "write"),
}
"""Authorization -> name, organisations, role of the token."""

LFS_SUFFIXES = (".parquet", ".arrow", ".zip", ".gz")


@dataclass(frozen=True)
class Entry:
    """One file of a tree. On the Hub, large and binary files carry a SHA-256; others only git's digest of the blob."""

    data: bytes
    is_lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def blob_id(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.data) + self.data).hexdigest()

    @property
    def etag(self) -> str:
        return f'"{self.sha256 if self.is_lfs else self.blob_id}"'


@dataclass
class Repo:
    """A repository: trees by revision, of which `head` is the newest."""

    revisions: dict[str, dict[str, Entry]] = field(default_factory=dict)
    head: str = ""
    gated: bool = False
    tags: dict[str, str] = field(default_factory=dict)
    history: list[tuple[str, str]] = field(default_factory=list)
    """Revision and title of each commit, the oldest first."""

    def commit(self, files: Mapping[str, bytes], revision: str = "", title: str = "") -> str:
        """Add a revision that holds exactly these files, and return its 40 hex digits."""
        tree = {path: Entry(data, path.endswith(LFS_SUFFIXES)) for path, data in sorted(files.items())}
        if not revision:
            listing = "".join(f"{path} {entry.blob_id}\n" for path, entry in tree.items())
            revision = hashlib.sha1(f"{self.head}\n{listing}".encode()).hexdigest()
        self.revisions[revision] = tree
        self.head = revision
        self.history.append((revision, title))
        return revision

    def sha(self, revision: str) -> str:
        """Return the revision that a branch, tag or revision names; "" if there is none."""
        name = unquote(revision).removeprefix("refs/heads/").removeprefix("refs/tags/")
        if name in {"main", "HEAD", ""}:
            return self.head
        return self.tags.get(name, name if name in self.revisions else "")

    def tree(self, revision: str) -> dict[str, Entry] | None:
        return self.revisions.get(self.sha(revision))


@dataclass
class Gate:
    """Holds back the rest of a body after `sent_bytes` of it, until it is opened."""

    sent_bytes: int
    opened: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Fault:
    """What goes wrong with the next request to a matching path, once.

    `status` None breaks the connection. With `is_late` the request does its work first. `meanwhile` is called when the
    request comes in.
    """

    method: str
    path: str
    status: int | None = None
    is_late: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    meanwhile: Callable[[], None] | None = None


@dataclass(frozen=True)
class Asked:
    """One request that was answered. `is_data`: it asked for bytes of a file."""

    method: str
    path: str
    range: str
    authorization: str
    status: int
    is_data: bool


@dataclass
class FakeHub:
    """The state of all three hosts, what was asked of them, and what they are to do wrong."""

    url: str = ""
    datasets: dict[str, Repo] = field(default_factory=dict)
    github: dict[str, Repo] = field(default_factory=dict)
    web: dict[str, bytes] = field(default_factory=dict)
    denied: dict[str, int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[tuple[int, dict[str, str]]]] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    gates: dict[str, Gate] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    lfs: dict[str, bytes] = field(default_factory=dict)
    ignores_range: bool = False
    longest_range_bytes: int = 1 << 40
    has_etags: bool = True

    def dataset(self, repo: str) -> Repo:
        """Return a dataset of the Hub, made if need be."""
        return self.datasets.setdefault(repo, Repo())

    def project(self, repo: str) -> Repo:
        """Return a repository of GitHub, made if need be."""
        return self.github.setdefault(repo, Repo())

    def environment(self, token: str = TOKEN) -> dict[str, str]:
        """Return the variables that send a client here, for a process of its own: they are read at import."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_TOKEN": token,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "SPEEDBENCH_GITHUB_RAW": f"{self.url}/_raw",
            "SPEEDBENCH_GITHUB_API": f"{self.url}/_github",
            "SPEEDBENCH_WEB_PROXY": f"{self.url}/_web",
            "NO_PROXY": "127.0.0.1",
        }

    def reset(self) -> None:
        """Forget everything, so that the next test may use the same server."""
        for gate in self.gates.values():
            gate.opened.set()
        for table in (self.datasets, self.github, self.web, self.denied, self.answers, self.cuts, self.gates):
            table.clear()
        for each in (self.redirects, self.lfs, self.asked, self.faults):
            each.clear()
        self.ignores_range, self.has_etags, self.longest_range_bytes = False, True, 1 << 40

    def data_requests(self) -> list[Asked]:
        """Return the requests that were answered with bytes of a file, or would have been."""
        return [a for a in self.asked if a.is_data]


class BrokenConnection(StreamingResponse):
    """An answer that never comes: the connection ends where its body should begin."""

    def __init__(self) -> None:
        super().__init__(self._nothing(), 200, headers={"Content-Length": "1"})

    def _nothing(self) -> Iterator[bytes]:
        yield b""
        raise ConnectionAbortedError("as the test asked")


def _matching(table: Mapping[str, Any], path: str) -> str | None:
    return next((pattern for pattern in table if re.search(pattern, path)), None)


def refusal(status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None) -> Response:
    named = {"X-Error-Code": code} if code else {}
    return JSONResponse({"error": message}, status, headers={"X-Error-Message": message, **named, **(headers or {})})


class Endpoints:
    """What each address answers."""

    def __init__(self, hub: FakeHub) -> None:
        self._hub = hub

    def routes(self) -> list[Route]:
        hub_repo = "/api/datasets/{org}/{name}"
        table = [
            ("/api/whoami-v2", self.whoami),
            (hub_repo + "/auth-check", self.auth_check),
            (hub_repo + "/revision/{revision}", self.info),
            (hub_repo, self.info),
            ("/datasets/{org}/{name}/resolve/{revision}/{path:path}", self.resolve),
            ("/_github/repos/{org}/{name}/commits/{revision}", self.github_commit),
            ("/_github/repos/{org}/{name}/git/trees/{revision}", self.github_tree),
            ("/_raw/{org}/{name}/{revision}/{path:path}", self.github_raw),
            ("/_web/{path:path}", self.web),
        ]
        return [Route(path, self.logged(answer), methods=["GET", "HEAD"]) for path, answer in table]

    def logged(self, answer: Any) -> Any:
        """Wrap what an address answers: faults, and the list of what was asked."""

        async def answered(request: Request) -> Response:
            await request.body()  # kept by the request, so that answers need not wait for it
            response = self._prepared(request) or await run_in_threadpool(self._faulty, answer, request)
            is_data = request.method == "GET" and request.url.path.startswith(("/datasets/", "/_raw/", "/_web/"))
            headers = request.headers
            self._hub.asked.append(
                Asked(
                    request.method,
                    request.url.path,
                    headers.get("range", ""),
                    headers.get("authorization", ""),
                    response.status_code,
                    is_data,
                )
            )
            return response

        return answered

    def _faulty(self, answer: Any, request: Request) -> Response:
        fault = self._next_fault(request)
        if fault is None:
            return answer(request)
        if fault.meanwhile is not None:
            fault.meanwhile()
        if fault.is_late:
            answer(request)
        if fault.status is None:
            return BrokenConnection()
        return refusal(fault.status, "as the test asked", headers=fault.headers)

    def _next_fault(self, request: Request) -> Fault | None:
        faults = self._hub.faults
        for i, fault in enumerate(faults):
            if request.method == fault.method and re.search(fault.path, request.url.path):
                return faults.pop(i)
        return None

    def _prepared(self, request: Request) -> Response | None:
        pattern = _matching(self._hub.answers, request.url.path)
        if pattern and self._hub.answers[pattern]:
            status, headers = self._hub.answers[pattern].pop(0)
            return refusal(status, "as the test asked", headers=headers)
        target = _matching(self._hub.redirects, request.url.path)
        if target:
            return Response(status_code=302, headers={"Location": self._hub.redirects[target]})
        return None

    # ---- the Hub

    def whoami(self, request: Request) -> Response:
        user = USERS.get(request.headers.get("authorization", ""))
        if user is None:
            return refusal(401, "Invalid user token.")
        name, organisations, role = user
        orgs = [{"type": "org", "name": org, "roleInOrg": role} for org in organisations]
        token = {"displayName": "t", "role": role}
        return JSONResponse({"type": "user", "name": name, "orgs": orgs, "auth": {"accessToken": token}})

    def auth_check(self, request: Request) -> Response:
        _, denial = self.repo(request)
        return denial or JSONResponse({})

    def info(self, request: Request) -> Response:
        repo, denial = self.repo(request, terms_needed=False)
        if repo is None:
            return denial or refusal(500, "no repository")
        revision = request.path_params.get("revision", "main")
        tree = repo.tree(revision)
        if tree is None:
            return refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        siblings = []
        for path, entry in tree.items():
            facts: dict[str, Any] = {"rfilename": path}
            if request.query_params.get("blobs"):
                facts |= {"size": len(entry.data), "blobId": entry.blob_id}
                if entry.is_lfs:
                    facts["lfs"] = {"sha256": entry.sha256, "size": len(entry.data), "pointerSize": 132}
            siblings.append(facts)
        name = f"{request.path_params['org']}/{request.path_params['name']}"
        return JSONResponse(
            {"_id": "0", "id": name, "sha": repo.sha(revision), "gated": repo.gated, "tags": [], "siblings": siblings}
        )

    def resolve(self, request: Request) -> Response:
        repo, denial = self.repo(request)
        if repo is None:
            return denial or refusal(500, "no repository")
        sha = repo.sha(request.path_params["revision"])
        if not sha:
            return refusal(404, "Invalid rev id", "RevisionNotFound")
        commit = {"X-Repo-Commit": sha}
        entry = repo.revisions[sha].get(request.path_params["path"])
        if entry is None:
            return refusal(404, "Entry not found", "EntryNotFound", commit)
        if entry.is_lfs:
            commit |= {"X-Linked-Etag": entry.etag, "X-Linked-Size": str(len(entry.data))}
        return self._file(request, entry.data, entry.etag, commit)

    def repo(self, request: Request, *, terms_needed: bool = True) -> tuple[Repo | None, Response | None]:
        # As the Hub: 401 without a token for what is missing too, so that private names do not leak; 403 while the
        # terms are not accepted, though the list of files is open to all.
        name = f"{request.path_params['org']}/{request.path_params['name']}"
        repo = self._hub.datasets.get(name)
        denied = self._hub.denied.get(name)
        given = request.headers.get("authorization", "")
        if given and given not in USERS:
            return None, refusal(401, "Invalid credentials in Authorization header")
        if repo is None or denied == 404:
            return None, refusal(404 if given else 401, "Repository not found", "RepoNotFound")
        if terms_needed and denied is not None:
            return None, refusal(denied, "Access to this dataset is restricted", "GatedRepo")
        if terms_needed and repo.gated and not given:
            return None, refusal(401, "Access to this dataset is restricted", "GatedRepo")
        return repo, None

    # ---- GitHub and the web

    def github_commit(self, request: Request) -> Response:
        repo = self._hub.github.get(f"{request.path_params['org']}/{request.path_params['name']}")
        return refusal(404, "Not Found") if repo is None else JSONResponse({"sha": repo.head})

    def github_tree(self, request: Request) -> Response:
        repo = self._hub.github.get(f"{request.path_params['org']}/{request.path_params['name']}")
        tree = repo.tree(request.path_params["revision"]) if repo else None
        if tree is None:
            return refusal(404, "Not Found")
        blobs = [{"path": p, "type": "blob", "size": len(e.data), "sha": e.blob_id} for p, e in tree.items()]
        return JSONResponse({"sha": "0" * 40, "tree": blobs, "truncated": False})

    def github_raw(self, request: Request) -> Response:
        repo = self._hub.github.get(f"{request.path_params['org']}/{request.path_params['name']}")
        tree = repo.tree(request.path_params["revision"]) if repo else None
        entry = (tree or {}).get(request.path_params["path"])
        return refusal(404, "Not Found") if entry is None else self._file(request, entry.data, entry.etag, {})

    def web(self, request: Request) -> Response:
        data = self._hub.web.get(request.path_params["path"])
        if data is None:
            return refusal(404, "Not Found")
        return self._file(request, data, f'"{hashlib.sha1(data).hexdigest()}"', {})

    # ---- bytes

    def _file(self, request: Request, data: bytes, etag: str, headers: Mapping[str, str]) -> Response:
        named = {**headers, "Accept-Ranges": "bytes", **({"ETag": etag} if self._hub.has_etags else {})}
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if request.method == "HEAD":
            return Response(status_code=200, headers={**named, "Content-Length": str(len(data))})
        start, stop = 0, len(data)
        if match and request.headers.get("if-range", etag) == etag and not self._hub.ignores_range:
            start, stop = _range(match[1], match[2], len(data))
            stop = min(stop, start + self._hub.longest_range_bytes)
        if start and start >= len(data):
            return refusal(416, "Range", headers={"Content-Range": f"bytes */{len(data)}"})
        status = 200 if (start, stop) == (0, len(data)) else 206
        if status == 206:
            named["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
        body = self._body(request.url.path, data[start:stop])
        return StreamingResponse(body, status, headers={**named, "Content-Length": str(stop - start)})

    def _body(self, path: str, data: bytes) -> Iterator[bytes]:
        cut, gate = _matching(self._hub.cuts, path), _matching(self._hub.gates, path)
        if cut and self._hub.cuts[cut]:
            yield data[: self._hub.cuts[cut].pop(0)]
            raise ConnectionAbortedError("as the test asked")
        if gate and not self._hub.gates[gate].opened.is_set():
            yield data[: self._hub.gates[gate].sent_bytes]
            self._hub.gates[gate].opened.wait()
            yield data[self._hub.gates[gate].sent_bytes :]
            return
        yield data


def _range(first: str, last: str, size: int) -> tuple[int, int]:
    if not first:  # the last so many bytes
        return max(0, size - int(last or 0)), size
    return int(first), min(int(last) + 1, size) if last else size


@contextlib.contextmanager
def running() -> Generator[FakeHub]:
    """Yield a hub that listens on a free port of 127.0.0.1 until the block ends."""
    from tests.hub.publishing import publishing_routes

    hub = FakeHub()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        hub.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        endpoints = Endpoints(hub)
        app = Starlette(routes=[*publishing_routes(hub, endpoints), *endpoints.routes()])
        # Our own broken answers are no news: only what is worse than an error is logged.
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        listener.listen(128)  # from here on a request waits rather than fails, so nobody has to await the server
        thread.start()
        try:
            yield hub
        finally:
            hub.reset()
            server.should_exit = True
            thread.join(10)
