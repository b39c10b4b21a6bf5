"""The side of the stand-in Hub that writes: repositories, uploads, commits and tags, and what lists them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any
from urllib.parse import parse_qs, unquote

import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.hub.fakehub import LFS_SUFFIXES, USERS, Endpoints, Entry, FakeHub, Repo, refusal

FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n---", re.DOTALL)


def publishing_routes(hub: FakeHub, reading: Endpoints) -> list[Route]:
    """Return the routes of the writing side, with the faults and the log of the reading side."""
    return Publishing(hub, reading).routes()


def _body(request: Request) -> bytes:
    # The wrapper has read it already.
    body: bytes = request._body
    return body


def _json(request: Request) -> Any:
    return json.loads(_body(request) or b"{}")


class Publishing:
    """What each address answers."""

    def __init__(self, hub: FakeHub, reading: Endpoints) -> None:
        self._hub = hub
        self._reading = reading

    def routes(self) -> list[Route]:
        repo = "/api/datasets/{org}/{name}"
        table = [
            ("POST", "/api/repos/create", self.create),
            ("POST", "/api/validate-yaml", self.validate_yaml),
            ("GET", repo + "/refs", self.refs),
            ("POST", repo + "/tag/{revision}", self.tag),
            ("DELETE", repo + "/tag/{revision}", self.untag),
            ("GET", repo + "/commits/{revision}", self.commits),
            ("GET", repo + "/tree/{revision}", self.tree),
            ("GET", repo + "/tree/{revision}/{path:path}", self.tree),
            ("POST", repo + "/paths-info/{revision}", self.paths_info),
            ("POST", repo + "/preupload/{revision}", self.preupload),
            ("POST", repo + "/commit/{revision}", self.commit),
            ("POST", "/datasets/{org}/{name}.git/info/lfs/objects/batch", self.lfs_batch),
            ("PUT", "/_lfs/{oid}", self.lfs_put),
            ("POST", "/_lfs_verify", self.lfs_verify),
        ]
        return [Route(path, self._reading.logged(answer), methods=[method]) for method, path, answer in table]

    # ---- who may, and where

    def _may_write(self, request: Request, organisation: str) -> bool:
        name, organisations, role = USERS.get(request.headers.get("authorization", ""), ("", (), "read"))
        return role == "write" and organisation in {name, *organisations}

    def _writable(self, request: Request) -> tuple[Repo | None, Response]:
        repo, denial = self._reading.repo(request)
        if repo is None:
            return None, denial or refusal(500, "no repository")
        if not self._may_write(request, request.path_params["org"]):
            return None, refusal(403, "You don't have the rights to write to this repo.")
        return repo, Response()

    def create(self, request: Request) -> Response:
        asked = _json(request)
        organisation = asked.get("organization") or "writer"
        if not self._may_write(request, organisation):
            return refusal(403, f"You don't have the rights to create a dataset under {organisation}")
        name = f"{organisation}/{asked['name']}"
        url = f"{self._hub.url}/datasets/{name}"
        if name in self._hub.datasets:
            return JSONResponse({"error": "You already created this dataset repo", "url": url}, 409)
        self._hub.dataset(name).commit({".gitattributes": b"*.parquet filter=lfs\n"}, title="initial commit")
        return JSONResponse({"url": url, "name": name, "id": "0"})

    # ---- what is there

    def refs(self, request: Request) -> Response:
        repo, denial = self._reading.repo(request)
        if repo is None:
            return denial or refusal(500, "no repository")
        branches = [{"name": "main", "ref": "refs/heads/main", "targetCommit": repo.head}]
        tags = [{"name": n, "ref": f"refs/tags/{n}", "targetCommit": sha} for n, sha in repo.tags.items()]
        return JSONResponse({"branches": branches, "tags": tags, "converts": [], "pullRequests": []})

    def commits(self, request: Request) -> Response:
        repo, denial = self._reading.repo(request)
        if repo is None:
            return denial or refusal(500, "no repository")
        date = "2026-01-01T00:00:00.000Z"
        listed = [
            {"id": sha, "title": title, "message": "", "authors": [{"user": "writer"}], "date": date}
            for sha, title in reversed(repo.history)
        ]
        return JSONResponse(listed)

    def tree(self, request: Request) -> Response:
        found, denial = self._tree(request)
        if found is None:
            return denial
        base = unquote(request.path_params.get("path", "")).strip("/")
        prefix = f"{base}/" if base else ""
        if base and not any(path.startswith(prefix) for path in found):
            return refusal(404, f"{base} does not exist", "EntryNotFound")
        recursive = request.query_params.get("recursive", "").lower() in {"true", "1"}
        inside = [p for p in [*_folders(found), *found] if p.startswith(prefix)]
        return JSONResponse([_listed(found, p) for p in inside if recursive or "/" not in p[len(prefix) :]])

    def paths_info(self, request: Request) -> Response:
        found, denial = self._tree(request)
        if found is None:
            return denial
        paths = [p.strip("/") for p in parse_qs(_body(request).decode()).get("paths", [])]
        return JSONResponse([_listed(found, p) for p in paths if p in found or p in _folders(found)])

    def _tree(self, request: Request) -> tuple[dict[str, Entry] | None, Response]:
        repo, denial = self._reading.repo(request)
        if repo is None:
            return None, denial or refusal(500, "no repository")
        found = repo.tree(request.path_params["revision"])
        return found, refusal(404, "Invalid rev id", "RevisionNotFound")

    # ---- what is written

    def validate_yaml(self, request: Request) -> Response:
        match = FRONT_MATTER.match(_json(request)["content"])
        try:
            matter = yaml.safe_load(match[1]) if match else {}
        except yaml.YAMLError as error:
            return JSONResponse({"errors": [{"message": f"YAML: {error}"}], "warnings": []}, 400)
        bad = [x for x in matter.get("language") or [] if not isinstance(x, str)]
        errors = [{"message": f"language must be strings, got {bad}"}] if bad else []
        return JSONResponse({"errors": errors, "warnings": []}, 400 if errors else 200)

    def preupload(self, request: Request) -> Response:
        repo, denial = self._writable(request)
        if repo is None:
            return denial
        tree = repo.tree(request.path_params["revision"]) or {}
        files = []
        for asked in _json(request)["files"]:
            old = tree.get(asked["path"])
            mode = "lfs" if asked["path"].endswith(LFS_SUFFIXES) else "regular"
            known = {"oid": old.sha256 if old.is_lfs else old.blob_id} if old else {}
            files.append({"path": asked["path"], "uploadMode": mode, "shouldIgnore": False, **known})
        return JSONResponse({"files": files})

    def lfs_batch(self, request: Request) -> Response:
        objects = []
        for asked in _json(request)["objects"]:
            entry = {"oid": asked["oid"], "size": asked["size"]}
            if asked["oid"] not in self._hub.lfs:  # what is stored already gets no actions, and is not sent again
                upload = {"href": f"{self._hub.url}/_lfs/{asked['oid']}"}
                entry |= {"actions": {"upload": upload, "verify": {"href": f"{self._hub.url}/_lfs_verify"}}}
            objects.append(entry)
        return JSONResponse({"transfer": "basic", "objects": objects})

    def lfs_put(self, request: Request) -> Response:
        data = _body(request)
        if hashlib.sha256(data).hexdigest() != request.path_params["oid"]:
            return refusal(400, "sha256 mismatch")
        self._hub.lfs[request.path_params["oid"]] = data
        return Response(status_code=200)

    def lfs_verify(self, request: Request) -> Response:
        asked = _json(request)
        stored = self._hub.lfs.get(asked["oid"])
        good = stored is not None and len(stored) == asked["size"]
        return JSONResponse({}) if good else refusal(404, "object not found or of another size")

    def commit(self, request: Request) -> Response:
        repo, denial = self._writable(request)
        if repo is None:
            return denial
        lines = [json.loads(line) for line in _body(request).splitlines()]
        header = lines[0]["value"]
        if header.get("parentCommit", repo.head) != repo.head:
            return refusal(412, "A commit has happened since. Please refresh and try again.")
        files = {path: entry.data for path, entry in (repo.tree("main") or {}).items()}
        for line in lines[1:]:
            value = line["value"]
            match line["key"]:
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile" if value["oid"] in self._hub.lfs:
                    files[value["path"]] = self._hub.lfs[value["oid"]]
                case "deletedFile" if value["path"] in files:
                    del files[value["path"]]
                case _:
                    return refusal(400, f"cannot do {line}")
        sha = repo.commit(files, title=header.get("summary", ""))
        url = f"{self._hub.url}/datasets/{request.path_params['org']}/{request.path_params['name']}/commit/{sha}"
        return JSONResponse({"success": True, "commitOid": sha, "commitUrl": url})

    def tag(self, request: Request) -> Response:
        repo, denial = self._writable(request)
        if repo is None:
            return denial
        name, sha = _json(request)["tag"], repo.sha(request.path_params["revision"])
        if not sha:
            return refusal(404, "Invalid rev id", "RevisionNotFound")
        if name in repo.tags:
            return refusal(409, f"Tag reference exists already: {name}")
        repo.tags[name] = sha
        return JSONResponse({})

    def untag(self, request: Request) -> Response:
        repo, denial = self._writable(request)
        if repo is None:
            return denial
        gone = repo.tags.pop(unquote(request.path_params["revision"]), None)
        return JSONResponse({}) if gone else refusal(404, "Tag not found", "RevisionNotFound")


def _folders(tree: dict[str, Entry]) -> list[str]:
    found = {"/".join(path.split("/")[:depth]) for path in tree for depth in range(1, path.count("/") + 1)}
    return sorted(found)


def _listed(tree: dict[str, Entry], path: str) -> dict[str, Any]:
    entry = tree.get(path)
    if entry is None:
        return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}
    listed = {"type": "file", "oid": entry.blob_id, "size": len(entry.data), "path": path}
    if entry.is_lfs:
        listed["lfs"] = {"oid": entry.sha256, "size": len(entry.data), "pointerSize": 132}
    return listed
