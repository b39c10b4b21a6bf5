"""Ids and digests of published rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence


def question_id(config: str, source: str, src_id: str) -> str:
    r"""Return the id of a published row: 32 hex digits.

    The first half of the SHA-256 of config, source and src_id (UTF-8), joined by ``\x1f``: it depends on no text and on
    no order, so a row keeps its id for as long as its source keeps its own.
    """
    return hashlib.sha256("\x1f".join((config, source, src_id)).encode()).hexdigest()[:32]


def turns_sha256(turns: Sequence[str]) -> str:
    """Return the SHA-256 (64 hex digits) of the compact JSON of the turns, UTF-8, not escaped to ASCII.

    Raises
    ------
    UnicodeEncodeError
        If a turn holds a lone surrogate, which no UTF-8 text can.
    """
    text = json.dumps(list(turns), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
