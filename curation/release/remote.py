"""The dataset repository that a release goes to: what it holds, and the three ways to change it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile

from curation.errors import ReleaseError
from sources.disk import file_sha256

REPO_TYPE = "dataset"

# The class that all failures of the client's HTTP library share; which library that is depends on the client's version.
_HTTP_ERROR: type[Exception] = HfHubHTTPError.__bases__[0]

_PASSING = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.CONFLICT,
        HTTPStatus.PRECONDITION_FAILED,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)


class Unsettled(ReleaseError):
    """A request failed in a way that may pass, and that does not tell whether it did its work."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose token it is, its role (`read`, `write`, `fineGrained`) and where it may write, by name."""

    name: str
    role: str
    organisations: Mapping[str, str]
    scopes: frozenset[str]

    def may_write(self, repo: str) -> bool:
        """Tell whether the token may write to a repository."""
        owner = repo.partition("/")[0]
        if self.role == "fineGrained":
            return bool({owner, repo} & self.scopes)
        member = owner == self.name or self.organisations.get(owner, "read") != "read"
        return self.role != "read" and member


@dataclass(frozen=True, slots=True)
class State:
    """What the repository is now: its newest commit ("" while there is no repository) and the commit of each tag."""

    head: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Digest:
    """Identity of a file's bytes as the Hub states it: SHA-256 of large files, git's SHA-1 of the blob of others."""

    sha256: str
    blob_id: str

    @classmethod
    def of(cls, data: bytes) -> Digest:
        """Return both digests of bytes."""
        return cls(hashlib.sha256(data).hexdigest(), _blob_id(len(data), [data]))

    @classmethod
    def of_file(cls, path: Path) -> Digest:
        """Return both digests of a file, read a piece at a time."""
        with path.open("rb") as stream:
            pieces = iter(lambda: stream.read(1 << 20), b"")
            return cls(file_sha256(path), _blob_id(path.stat().st_size, pieces))

    def is_of(self, stated: str) -> bool:
        """Tell whether the Hub states these bytes."""
        return stated in (self.sha256, self.blob_id)


@dataclass(frozen=True)
class Remote:
    """One dataset repository. Every method raises `Unsettled` where trying again may help, else `ReleaseError`."""

    repo: str
    api: HfApi = field(default_factory=HfApi)

    @property
    def url(self) -> str:
        """The page of the repository."""
        return f"{self.api.endpoint}/datasets/{self.repo}"

    def identity(self) -> Identity:
        """Return who the token is."""
        with self._asking("whoami"):
            found = self.api.whoami()
        token = found.get("auth", {}).get("accessToken", {})
        scoped = token.get("fineGrained", {}).get("scoped", [])
        scopes = (s["entity"].get("name", "") for s in scoped if "repo.write" in s.get("permissions", ()))
        organisations = {org["name"]: org.get("roleInOrg", "write") for org in found.get("orgs", [])}
        return Identity(found["name"], token.get("role", "write"), organisations, frozenset(scopes))

    def state(self) -> State:
        """Return the newest commit and the tags."""
        with self._asking("refs"):
            try:
                refs = self.api.list_repo_refs(self.repo, repo_type=REPO_TYPE)
            except RepositoryNotFoundError:
                return State()
        head = next((b.target_commit for b in refs.branches if b.name == "main"), "")
        return State(head, {tag.name: tag.target_commit for tag in refs.tags})

    def tree(self, revision: str) -> dict[str, str]:
        """Return path -> digest of all files of a revision: SHA-256 of large files, git's of the others."""
        with self._asking("tree"):
            listed = list(self.api.list_repo_tree(self.repo, recursive=True, revision=revision, repo_type=REPO_TYPE))
        files = (entry for entry in listed if isinstance(entry, RepoFile))
        return {f.path: f.lfs.sha256 if f.lfs else f.blob_id for f in files}

    def commits(self, title: str) -> list[str]:
        """Return the commits of the main branch that bear a title, the newest first."""
        with self._asking("commits"):
            listed = self.api.list_repo_commits(self.repo, repo_type=REPO_TYPE)
        return [commit.commit_id for commit in listed if commit.title == title]

    def create(self) -> None:
        """Make the repository, if it is not there."""
        with self._asking("create"):
            self.api.create_repo(self.repo, repo_type=REPO_TYPE, exist_ok=True)

    def commit(self, files: Mapping[str, bytes | Path], stale: Iterable[str], parent: str, title: str) -> None:
        """Make one commit on top of `parent`: it adds or replaces files and deletes stale ones, all or nothing."""
        operations: list[Any] = [CommitOperationAdd(path, data) for path, data in sorted(files.items())]
        operations += [CommitOperationDelete(path) for path in sorted(stale)]
        with self._asking("commit"):
            self.api.create_commit(
                self.repo, operations, commit_message=title, repo_type=REPO_TYPE, parent_commit=parent
            )

    def tag(self, name: str, revision: str) -> None:
        """Put a tag on a commit; one that exists is never moved."""
        with self._asking("tag"):
            self.api.create_tag(self.repo, tag=name, revision=revision, repo_type=REPO_TYPE, exist_ok=False)

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        try:
            yield
        except LocalTokenNotFoundError:
            raise ReleaseError("there is no token; set HF_TOKEN, or run: hf auth login") from None
        except HfHubHTTPError as error:
            raise _explained(error, what, self.repo) from None
        except ValueError as error:
            raise ReleaseError(f"{self.repo} ({what}): {_first_line(error)}; mend it and run again") from None
        except (_HTTP_ERROR, OSError, RuntimeError) as error:
            # RuntimeError: what the client makes of an upload that broke; what broke it is its cause.
            reason = _first_line(error if error.__cause__ is None else error.__cause__)
            where = f"{self.api.endpoint} ({what})"
            raise Unsettled(f"{where}: {reason}; check the network and HF_ENDPOINT, and run again") from None


def _explained(error: HfHubHTTPError, what: str, repo: str) -> ReleaseError:
    response = getattr(error, "response", None)
    status = 0 if response is None else int(response.status_code)
    if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR or not status:
        asked = "" if response is None else str(response.headers.get("Retry-After", ""))
        return Unsettled(
            f"{repo} ({what}): HTTP {status}; run again in a while", float(asked) if asked.isdecimal() else 0.0
        )
    if status == HTTPStatus.UNAUTHORIZED:
        return ReleaseError(f"{repo} ({what}): the token is not valid; set HF_TOKEN, or run: hf auth login")
    if status == HTTPStatus.FORBIDDEN:
        return ReleaseError(f"{repo} ({what}): the token may not write here; use one that may")
    return ReleaseError(f"{repo} ({what}): HTTP {status}: {_first_line(error)}; look at it and run again")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _blob_id(size: int, pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
