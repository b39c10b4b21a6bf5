"""Writes the golden files of the card anew: `make golden`, then read the difference."""

from __future__ import annotations

from pathlib import Path

from cards.render import render_card, render_licenses
from tests.cards.made_up_facts import FACTS

GOLDEN = Path(__file__).parent / "golden"


def rendered() -> dict[str, str]:
    """Name of each golden file -> what the code makes of the facts now."""
    return {"README.md": render_card(FACTS), "LICENSE.md": render_licenses(FACTS)}


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (GOLDEN / name).write_bytes(text.encode())
