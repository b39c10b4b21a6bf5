"""Ask GitHub for the licences of the repositories of RepoBench and Long Code Arena: `python -m sources.licensing`.

What it says goes into `repositories.json`, which decides which rows are kept, so the file is part of the package and is
reviewed like code. A repository that is listed is not asked for again; a run that stops can be taken up.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import requests

from sources.base import SourceSpec
from sources.disk import atomic
from sources.errors import SourceError
from sources.http import get_json
from sources.origins import Origin, open_source, resolve
from sources.repositories import LICENSES, looked_up_path, repository_name

logger = logging.getLogger(__name__)

_COLUMN = {"repobench_python": "repo_name", "repobench_java": "repo_name", "long_code_arena": "repo"}
"""Source to the column that names the repository."""

SAVE_EVERY = 50
"""Answers after which the file is written, so that a run that stops loses few."""


def repositories_of(spec: SourceSpec, origin: Origin) -> Iterator[str]:
    """Yield the repository of every row of a source."""
    files = open_source(spec, resolve(origin, spec, allow_short=True), lambda _rejected: None)
    for key in spec.files:
        for row in files.rows(key):
            yield row[_COLUMN[spec.name]]


def look_up(repository: str, session: requests.Session) -> str:
    """Return the SPDX id that GitHub states for a repository; "" if it states none, or there is no such repository.

    Raises
    ------
    SourceError
        If GitHub refuses to say, e.g. because too much was asked without a token.
    """
    root = os.environ.get("SPEEDBENCH_GITHUB_API", "") or "https://api.github.com"
    url = f"{root.rstrip('/')}/repos/{repository}/license"
    response, body = get_json(session, url, token=os.environ.get("GITHUB_TOKEN", ""))
    if response.status_code == requests.codes.not_found:
        return ""
    if not response.ok:
        raise SourceError(f"{url} answers {response.status_code}; set GITHUB_TOKEN, or go on later: answers are kept")
    spdx = str((body.get("license") or {}).get("spdx_id") or "")
    return "" if spdx == "NOASSERTION" else spdx


def look_up_all(repositories: Iterable[str], path: Path, session: requests.Session) -> Mapping[str, str]:
    """Look up what is not listed yet, and return the whole list, which is written to `path` as it grows."""
    known: dict[str, str] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    names = sorted({repository_name(name) for name in repositories} - {*LICENSES} - {*known})
    try:
        for i, name in enumerate(names, start=1):
            known[name] = look_up(name, session)
            if i % SAVE_EVERY == 0:
                _write(known, path)
                logger.info("%d of %d repositories", i, len(names))
    finally:
        _write(known, path)
    return known


def _write(known: Mapping[str, str], path: Path) -> None:
    with atomic(path) as scratch:
        scratch.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n", "utf-8")


def main() -> None:
    """Look up every repository of the three sources, from the cache or the Hub."""
    from sources.fetch import HubOrigin
    from sources.registry import SOURCES

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    origin = HubOrigin()
    names = {name for source in _COLUMN for name in repositories_of(SOURCES[source].spec, origin)}
    with requests.Session() as session:
        known = look_up_all(names, looked_up_path(), session)
    logger.info("%d repositories in %s", len(known), looked_up_path())


if __name__ == "__main__":
    main()
