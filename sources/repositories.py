"""Which code repositories may be published: those whose licence is known to be permissive.

RepoBench and Long Code Arena take code from many repositories and name no licence a row. A repository counts as
permissive if it is listed here or in `repositories.json`, or if the licence file that came with it is one of these; any
other is rejected by name. `python -m sources.licensing` asks GitHub for those that are not listed yet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

PERMISSIVE = ("MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "PSF-2.0")
"""SPDX ids that let us pass code on with its notice."""

LICENSES: dict[str, str] = {
    "apache/commons-io": "Apache-2.0",
    "apache/commons-lang": "Apache-2.0",
    "encode/httpx": "BSD-3-Clause",
    "fastapi/fastapi": "MIT",
    "google/gson": "Apache-2.0",
    "google/guava": "Apache-2.0",
    "huggingface/transformers": "Apache-2.0",
    "pallets/click": "BSD-3-Clause",
    "pallets/flask": "BSD-3-Clause",
    "psf/black": "MIT",
    "psf/requests": "Apache-2.0",
    "pytest-dev/pytest": "MIT",
    "python/cpython": "PSF-2.0",
    "speedbench/samples": "Apache-2.0",  # our own samples
    "spring-projects/spring-boot": "Apache-2.0",
    "square/okhttp": "Apache-2.0",
}
"""Repository to SPDX id, in lower case as GitHub compares them; known without asking."""

_LICENSE_FILE = re.compile(r"(?i)(?:licen[cs]e|copying)(?:[.-](?:md|txt|rst|mit|apache))?")

# A phrase that only this licence's text has.
_PHRASES = (
    ("Apache-2.0", re.compile(r"Apache License\s+Version 2\.0")),
    ("MIT", re.compile(r"Permission is hereby granted, free of charge, to any person obtaining a copy")),
)

# A text with one of these is, or may be, under further terms, whatever else it says.
_COPYLEFT = re.compile(r"(?i)\bGNU (?:Affero |Lesser |Library )?General Public License\b|Commons Clause|Mozilla Public")


def repository_name(name: str) -> str:
    """Return `owner/name` in lower case; Long Code Arena writes `owner__name`."""
    return name.replace("__", "/", 1).lower()


def looked_up_path() -> Path:
    """Return the file that holds what GitHub says of other repositories; "" for one without a licence."""
    return Path(str(resources.files("sources"))) / "repositories.json"


@cache
def looked_up() -> Mapping[str, str]:
    """Return what GitHub says of other repositories: name in lower case to SPDX id."""
    path = looked_up_path()
    found: dict[str, str] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found


def license_of(repository: str, files: Iterable[tuple[str, str]] = ()) -> str:
    """Return the SPDX id of a repository's permissive licence; "" if none is known.

    Parameters
    ----------
    repository
        `owner/name` or `owner__name`.
    files
        Path and text of files that came with it; those at its root named like a licence are read.
    """
    name = repository_name(repository)
    listed = LICENSES.get(name, "") or looked_up().get(name, "")
    if listed:
        return listed if listed in PERMISSIVE else ""
    texts = [text for path, text in files if _LICENSE_FILE.fullmatch(path)]
    if not texts or any(_COPYLEFT.search(text) for text in texts):
        return ""
    found = {spdx for text in texts for spdx, phrase in _PHRASES if phrase.search(" ".join(text.split()))}
    return min(found) if len(found) == 1 or found == {"Apache-2.0", "MIT"} else ""


def unknown_license(repository: str) -> str:
    """Return the reason for which a repository's rows are rejected."""
    return f"the licence of {repository} is not known to be permissive; run: python -m sources.licensing"
