"""Licences of sources, and whether each lets us publish the text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class License:
    """A licence: `id` as the Hub writes it, its SPDX id or "", where its text is, and what it lets us do."""

    id: str
    title: str
    url: str
    may_publish: bool
    reason: str
    spdx: str = ""


APACHE_2_0 = License(
    "apache-2.0",
    "Apache License 2.0",
    "https://www.apache.org/licenses/LICENSE-2.0",
    may_publish=True,
    reason="The licence permits redistribution with attribution.",
    spdx="Apache-2.0",
)
MIT = License(
    "mit",
    "MIT License",
    "https://opensource.org/license/mit",
    may_publish=True,
    reason="The licence permits redistribution with its notice.",
    spdx="MIT",
)
CC_BY_4_0 = License(
    "cc-by-4.0",
    "Creative Commons Attribution 4.0",
    "https://creativecommons.org/licenses/by/4.0/",
    may_publish=True,
    reason="The licence permits redistribution with attribution.",
    spdx="CC-BY-4.0",
)
CC_UNSPECIFIED = License(
    "cc",
    "Creative Commons, variant not stated",
    "https://creativecommons.org/licenses/",
    may_publish=False,
    reason="The card names no variant of the licence, so the text is given by reference.",
)
PUBLIC_DOMAIN = License(
    "public-domain",
    "Public domain in the United States",
    "https://www.gutenberg.org/policy/license.html",
    may_publish=True,
    reason="The text is in the public domain.",
)
UNKNOWN = License(
    "unknown",
    "No licence stated",
    "",
    may_publish=False,
    reason="The source states no licence, so the text is given by reference.",
)
OTHER = License(
    "other",
    "Terms of the source's own card",
    "",
    may_publish=False,
    reason="The source's own terms do not clearly permit redistribution, so the text is given by reference.",
)
PERMISSIVE_BY_REPOSITORY = License(
    "permissive-by-repository",
    "Permissive licences, by repository",
    "https://opensource.org/licenses",
    may_publish=True,
    reason="Only repositories under a licence that permits redistribution with its notice are kept; each row names it.",
    spdx="MIT OR Apache-2.0 OR BSD-2-Clause OR BSD-3-Clause OR PSF-2.0",
)
