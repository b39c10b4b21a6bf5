"""The three kinds of host: where a file of a source is, which token it takes, and what a repository lists.

Environment: `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE` as huggingface_hub reads them; `GITHUB_TOKEN` for GitHub's
API; `SPEEDBENCH_GITHUB_RAW`, `SPEEDBENCH_GITHUB_API` and `SPEEDBENCH_WEB_PROXY` name mirrors of the other hosts (the
last gets `<proxy>/<host>/<path>`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from sources.base import SourceSpec
from sources.errors import SourceError
from sources.http import get_json


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a repository: bytes, and the SHA-256 where the host tells it (the Hub does for large files)."""

    size: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a repository at one revision, by path."""

    revision: str
    files: Mapping[str, ListedFile]


class Refused(SourceError):
    """A host refuses a source: status and error code, which `sources.access` turns into a reason and a remedy."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def offline() -> bool:
    """Tell whether `HF_HUB_OFFLINE` asks to stay off the network."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def file_url(spec: SourceSpec, revision: str, path: str) -> str:
    """Return where a file of a source is."""
    match spec.host:
        case "hub":
            return f"{hub_endpoint()}/datasets/{spec.repo}/resolve/{revision}/{quote(path)}"
        case "github":
            root = _base("SPEEDBENCH_GITHUB_RAW", "https://raw.githubusercontent.com")
            return f"{root}/{spec.repo}/{revision}/{quote(path)}"
        case "web":
            named = {p: url for file in spec.files.values() for p, url in file.urls.items()}
            return _by_proxy(named.get(path, f"{spec.repo.rstrip('/')}/{quote(path)}"))


def page_url(spec: SourceSpec) -> str:
    """Return the page of a source that a person opens: where terms are accepted."""
    return f"{hub_endpoint()}/datasets/{spec.repo}" if spec.host == "hub" else spec.source


def file_token(spec: SourceSpec) -> str:
    """Return the token that the host of a source's files takes; "" for none."""
    return hub_token() if spec.host == "hub" else ""


def hub_endpoint() -> str:
    """Return the address of the Hub."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def hub_token() -> str:
    """Return the token of the environment or of `hf auth login`; "" if there is none."""
    from huggingface_hub import get_token

    return get_token() or ""


def list_files(session: requests.Session, spec: SourceSpec, revision: str) -> Listing:
    """Return the files of a repository; the newest revision where `revision` is "".

    Raises
    ------
    Refused
        If the host does not give it out.
    SourceError
        For a web source: a plain folder of a web server lists nothing.
    """
    match spec.host:
        case "hub":
            return _hub_listing(session, spec, revision)
        case "github":
            return _github_listing(session, spec, revision)
        case "web":
            raise SourceError(f"{spec.name}: a web server lists nothing, so its files must be named, or have urls")


def hub_access(session: requests.Session, spec: SourceSpec) -> None:
    """Ask the Hub whether our token may read a dataset; no byte of data is asked for.

    Raises
    ------
    Refused
        If it may not.
    """
    _answer(session, f"{hub_endpoint()}/api/datasets/{spec.repo}/auth-check", spec, hub_token())


def explain(spec: SourceSpec, status: int, code: str = "") -> tuple[str, str]:
    """Return the reason of a refusal and its remedy, from the status and the Hub's error code.

    The Hub answers 401 without a valid token, for gated, private and missing repositories alike; 403 where the token is
    good and the terms are not accepted; 404 for what does not exist, or is private and not for this token.
    """
    page = page_url(spec)
    if spec.host != "hub":
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
            return "moved, not found or private", f"look at {page} and mend the spec"
        if spec.host == "github" and status == HTTPStatus.FORBIDDEN:
            return "refused with HTTP 403", "set GITHUB_TOKEN: GitHub answers few requests an hour without one"
        return f"refused with HTTP {status}", f"look at {page}, or use --mirror DIR"
    if status == HTTPStatus.UNAUTHORIZED:
        return "no valid token", _token_remedy(spec, page)
    if status == HTTPStatus.FORBIDDEN:
        return "terms not accepted", f"open {page} while logged in, accept its terms, and try again"
    if code == "RevisionNotFound":
        return (
            "revision not found",
            f"the pinned revision is gone from {page}: mend the spec, then: speedbench sources lock",
        )
    if status == HTTPStatus.NOT_FOUND:
        return "moved, not found or private", f"look at {page}: mend the spec, or use a token that may read it"
    return f"refused with HTTP {status}", f"look at {page}, or use --mirror DIR"


def _token_remedy(spec: SourceSpec, page: str) -> str:
    terms = f" and accept its terms at {page}" if spec.gated else ""
    return f"set HF_TOKEN to a token of {hub_endpoint()}/settings/tokens, or run: hf auth login{terms}"


def _hub_listing(session: requests.Session, spec: SourceSpec, revision: str) -> Listing:
    at = f"/revision/{revision}" if revision else ""
    info = _answer(session, f"{hub_endpoint()}/api/datasets/{spec.repo}{at}?blobs=true", spec, hub_token())
    files = {
        str(f["rfilename"]): ListedFile(int(f.get("size") or 0), str((f.get("lfs") or {}).get("sha256") or ""))
        for f in info["siblings"]
    }
    return Listing(str(info["sha"]), files)


def _github_listing(session: requests.Session, spec: SourceSpec, revision: str) -> Listing:
    api = f"{_base('SPEEDBENCH_GITHUB_API', 'https://api.github.com')}/repos/{spec.repo}"
    token = os.environ.get("GITHUB_TOKEN", "")
    revision = revision or str(_answer(session, f"{api}/commits/HEAD", spec, token)["sha"])
    tree = _answer(session, f"{api}/git/trees/{revision}?recursive=1", spec, token)
    if tree.get("truncated"):
        raise SourceError(f"{spec.name}: GitHub cuts the list of files of {spec.repo}; name its files exactly")
    files = {str(e["path"]): ListedFile(int(e.get("size") or 0)) for e in tree["tree"] if e["type"] == "blob"}
    return Listing(revision, files)


def _answer(session: requests.Session, url: str, spec: SourceSpec, token: str) -> Any:
    response, body = get_json(session, url, token=token)
    if not response.ok:
        code = response.headers.get("X-Error-Code", "")
        raise Refused(f"{spec.name}: {url} answers {response.status_code}", response.status_code, code)
    return body


def _base(variable: str, default: str) -> str:
    return (os.environ.get(variable, "") or default).rstrip("/")


def _by_proxy(url: str) -> str:
    proxy = _base("SPEEDBENCH_WEB_PROXY", "")
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{proxy}/{parts.netloc}{parts.path}{query}" if proxy else url
