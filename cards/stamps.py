"""The places of a card that a release writes into: what is not known when a DIST is built."""

from __future__ import annotations

import re
from collections.abc import Mapping

STAMPS = {"release": "Release", "changelog": "Changelog"}
"""Names of the places, and the heading under which one is added to a card that has none."""

_ADDED = "\n<!-- added by the release -->\n"
_PLACE = re.compile(r"<!-- (?P<name>[a-z]+) -->\n(?P<text>.*?)<!-- /(?P=name) -->\n", re.DOTALL)


def place(name: str) -> str:
    """Return the empty place of a stamp, as a card's template holds it on lines of its own."""
    return f"<!-- {name} -->\n<!-- /{name} -->\n"


def with_stamps(card: str, texts: Mapping[str, str]) -> str:
    """Return a card with its places filled; a place that it lacks is added at its end, under a heading.

    Whatever the places held before is gone, so stamping twice is stamping once.

    Raises
    ------
    ValueError
        If a name is none of `STAMPS`, or a text holds the mark of a place.
    """
    card = without_stamps(card)
    for name, text in texts.items():
        if name not in STAMPS:
            raise ValueError(f"a stamp is one of {', '.join(STAMPS)}, got {name!r}")
        if "<!--" in text:
            raise ValueError(f"the text of {name} holds a comment mark")
        filled = f"<!-- {name} -->\n{text.rstrip()}\n<!-- /{name} -->\n"
        if place(name) in card:
            card = card.replace(place(name), filled, 1)
        else:
            marker = "" if _ADDED in card else _ADDED
            card = f"{card}{marker}\n## {STAMPS[name]}\n\n{filled}"
    return card


def without_stamps(card: str) -> str:
    """Return a card as it was built: its places empty, what was added gone."""
    own = card.partition(_ADDED)[0]
    return _PLACE.sub(lambda match: place(match["name"]) if match["name"] in STAMPS else match[0], own)
