from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import requests

from sources import repositories
from sources.errors import SourceError
from sources.licensing import look_up_all, repositories_of
from sources.origins import SamplesOrigin
from sources.registry import SOURCES
from sources.repositories import LICENSES, PERMISSIVE, license_of, repository_name

MIT = "Permission is hereby granted, free of charge,\n to any person obtaining a copy"
APACHE = "                                 Apache License\n                           Version 2.0, January 2004"


def test_every_listed_licence_is_permissive_and_every_name_in_lower_case() -> None:
    assert {*LICENSES.values()} <= {*PERMISSIVE}
    assert all(repository_name(name) == name for name in LICENSES)


@pytest.mark.parametrize("name", ["psf/requests", "PSF/Requests", "psf__requests"])
def test_a_listed_repository_under_any_spelling(name: str) -> None:
    assert license_of(name) == "Apache-2.0"


@pytest.mark.parametrize(
    ("files", "spdx"),
    [
        ([("LICENSE", MIT)], "MIT"),
        ([("license.txt", APACHE)], "Apache-2.0"),
        ([("LICENSE-MIT", MIT), ("LICENSE-APACHE", APACHE)], "Apache-2.0"),
        ([("docs/LICENSE", MIT)], ""),
        ([("LICENSE", "GNU General Public License\n" + MIT)], ""),
        ([("LICENSE", MIT), ("COPYING", "GNU Lesser General Public License")], ""),
        ([("LICENSE", "All rights reserved.")], ""),
        ([], ""),
    ],
)
def test_an_unlisted_repository_by_its_licence_file(files: list[tuple[str, str]], spdx: str) -> None:
    assert license_of("some/one", files) == spdx


class Github(BaseHTTPRequestHandler):
    """Answers as GitHub's licence endpoint does."""

    answers: ClassVar[dict[str, tuple[int, Any]]] = {
        "/repos/a/mit/license": (200, {"license": {"spdx_id": "MIT"}}),
        "/repos/b/odd/license": (200, {"license": {"spdx_id": "NOASSERTION"}}),
        "/repos/c/gpl/license": (200, {"license": {"spdx_id": "GPL-3.0"}}),
        "/repos/e/limit/license": (403, {}),
    }
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status, body = self.answers.get(self.path, (404, {}))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Github) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("SPEEDBENCH_GITHUB_API", f"http://127.0.0.1:{server.server_port}")
        Github.asked.clear()
        try:
            yield Github.asked
        finally:
            server.shutdown()
            thread.join()


def test_what_github_says_is_kept_and_not_asked_for_again(github: list[str], tmp_path: Path) -> None:
    path = tmp_path / "repositories.json"
    names = ["a/MIT", "b/odd", "c__gpl", "d/gone", "psf/requests", "a/mit"]
    with requests.Session() as session:
        first = look_up_all(names, path, session)
        again = look_up_all(names, path, session)
    assert (
        first
        == again
        == json.loads(path.read_text())
        == {"a/mit": "MIT", "b/odd": "", "c/gpl": "GPL-3.0", "d/gone": ""}
    )
    assert len(github) == 4


def test_a_refusal_names_the_token_and_loses_nothing(github: list[str], tmp_path: Path) -> None:
    path = tmp_path / "repositories.json"
    with requests.Session() as session, pytest.raises(SourceError, match="GITHUB_TOKEN"):
        look_up_all(["a/mit", "e/limit"], path, session)
    assert json.loads(path.read_text()) == {"a/mit": "MIT"}


def test_a_licence_that_github_states_counts_if_it_is_permissive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repositories, "looked_up", lambda: {"a/mit": "MIT", "c/gpl": "GPL-3.0", "d/gone": ""})
    assert [license_of(name) for name in ("A/mit", "c__gpl", "d/gone")] == ["MIT", "", ""]


def test_the_repositories_of_our_samples() -> None:
    names = set(repositories_of(SOURCES["repobench_java"].spec, SamplesOrigin()))
    assert names == {"speedbench/samples", "unlisted/repository"}
    assert "sample__medium-0" in set(repositories_of(SOURCES["long_code_arena"].spec, SamplesOrigin()))
