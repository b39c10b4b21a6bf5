"""One file fetched whole or not at all: resumed after a kill, checked by size and SHA-256, safe for two at once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

import requests
from filelock import FileLock

from sources.disk import file_sha256
from sources.errors import SourceError
from sources.http import ATTEMPTS, Unreachable, backoff_s, host_of, reason_of, send

_CHUNK_BYTES = 1 << 18
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


class NotThere(SourceError):
    """The server has no such file, or does not give it out; `status` and `code` say which."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Progress(Protocol):
    """What is told of a download: bytes that are there and bytes in all, where that is known."""

    def __call__(self, file: str, done_bytes: int, total_bytes: int | None) -> None:
        """Take note of the state of one file."""
        ...


def no_progress(file: str, done_bytes: int, total_bytes: int | None) -> None:
    """Take no note."""


def download(
    session: requests.Session,
    url: str,
    target: Path,
    *,
    token: str = "",
    sha256: str = "",
    label: str = "",
    progress: Progress = no_progress,
) -> None:
    """Fetch a URL into a file, unless the file is there.

    Bytes gather in `.<name>.part` beside the target, which a later call continues by `Range`. They become the target
    only when all are there and the digest is the expected one; a wrong digest leaves nothing behind.

    Raises
    ------
    NotThere
        If the server answers 4xx.
    Unreachable
        If it cannot be reached, or breaks off again and again.
    SourceError
        If the bytes are not those of `sha256`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f".{target.name}.lock")):
        if target.is_file():
            return
        part = _Part(target)
        _gather(_Request(session, url, token, sha256, label or url, progress), part)
        found = file_sha256(part.path)
        if sha256 and found != sha256:
            part.discard()
            raise SourceError(
                f"{label or url}: SHA-256 is {found[:12]}…, expected {sha256[:12]}…; nothing was kept: "
                "try again, or find out who changed the file"
            )
        part.become(target)


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked for, and who is told."""

    session: requests.Session
    url: str
    token: str
    sha256: str
    label: str
    progress: Progress


class _Part:
    """The bytes that are there so far, and the ETag of the file that they are of."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f".{target.name}.part")
        self._etag_path = target.with_name(f".{target.name}.etag")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def etag(self) -> str:
        return self._etag_path.read_text("utf-8") if self._etag_path.exists() else ""

    def start_anew(self, etag: str) -> None:
        # The tag is gone before the bytes are, and there after: never the tag of one file beside the bytes of another.
        self._etag_path.unlink(missing_ok=True)
        self.path.write_bytes(b"")
        if etag and not etag.startswith("W/"):
            self._etag_path.write_text(etag, "utf-8")

    def discard(self) -> None:
        self._etag_path.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def become(self, target: Path) -> None:
        os.replace(self.path, target)
        self._etag_path.unlink(missing_ok=True)


def _gather(request: _Request, part: _Part) -> None:
    failures = 0
    while True:
        before = part.size
        try:
            if _continue(request, part):
                return
            reason = "the answer ended early"
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            reason = reason_of(error)
        failures = 0 if part.size > before else failures + 1
        if failures == ATTEMPTS:
            raise Unreachable(host_of(request.url), f"{request.label}: {reason}, {failures} times in a row")
        time.sleep(backoff_s(failures) if failures else 0)


def _continue(request: _Request, part: _Part) -> bool:
    """Fetch what is missing, and tell whether the file is now whole."""
    done = part.size
    with _opened(request, _headers(part, done, request.sha256)) as response:
        total = _total_bytes(response)
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            if total == done:
                return True
            part.discard()
            return False
        if response.status_code == HTTPStatus.PARTIAL_CONTENT and not _goes_on_at(response, done):
            part.discard()
            return False
        if response.status_code != HTTPStatus.PARTIAL_CONTENT:
            part.start_anew(response.headers.get("ETag", ""))
            done = 0
        with part.path.open("ab") as stream:
            request.progress(request.label, done, total)
            for chunk in response.iter_content(_CHUNK_BYTES):
                stream.write(chunk)
                done += len(chunk)
                request.progress(request.label, done, total)
    if total is not None and done > total:
        part.discard()
        return False
    return total is None or done == total


@contextmanager
def _opened(request: _Request, headers: dict[str, str]) -> Iterator[requests.Response]:
    url = request.url
    with send(request.session, "GET", url, token=request.token, headers=headers, stream=True) as response:
        status = response.status_code
        if status >= 400 and status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            code = response.headers.get("X-Error-Code", "")
            raise NotThere(f"{request.label}: {host_of(url)} answers {status} {code}".rstrip(), status, code)
        yield response


def _headers(part: _Part, done: int, sha256: str) -> dict[str, str]:
    # Identity: a compressed answer has another length, and its ranges are of other bytes.
    headers = {"Accept-Encoding": "identity"}
    if done and part.etag:
        headers |= {"Range": f"bytes={done}-", "If-Range": part.etag}
    elif done and sha256:
        headers["Range"] = f"bytes={done}-"  # without a tag only the digest can tell whether the two halves fit
    return headers


def _goes_on_at(response: requests.Response, done: int) -> bool:
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    return bool(match and match[1] is not None and int(match[1]) == done)


def _total_bytes(response: requests.Response) -> int | None:
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if match:
        return None if match[3] == "*" else int(match[3])
    if response.headers.get("Content-Encoding", "identity") != "identity":
        return None
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None
