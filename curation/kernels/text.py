"""What a text is before anything compares it: one policy of normalisation, and the key of exact equality.

The policy, in the order in which it acts: surrogate pairs are joined and lone surrogates become U+FFFD; NUL is removed;
CR LF and CR become LF; NFC. Nothing else changes: no stripping, no case, no width; a genuine U+FFFD stays, and so does
text that spells a special token of some tokenizer.
"""

from __future__ import annotations

import re
import unicodedata

SURROGATE_JOINED = "surrogate_pair_joined"
SURROGATE_REPLACED = "lone_surrogate_replaced"
NUL_REMOVED = "nul_removed"
LINE_END_CHANGED = "line_end_changed"
COMPOSED = "composed_nfc"

_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")


def normalize_text(text: str) -> str:
    """Return the text as it is stored; a second pass changes nothing.

    Parameters
    ----------
    text
        Any Python string, surrogates included.

    Returns
    -------
    str
        Valid UTF-8 when encoded, in NFC, without NUL and CR.
    """
    return normalize_and_tell(text)[0]


def normalize_and_tell(text: str) -> tuple[str, tuple[str, ...]]:
    """Return `normalize_text(text)` and the names of the changes it made, in the order in which they were made."""
    changes: list[str] = []
    if not text.isascii():
        text = _without_surrogates(text, changes)
    # Before the line ends: CR NUL LF is one line end, and a second pass must find nothing to join.
    if "\0" in text:
        text = text.replace("\0", "")
        changes.append(NUL_REMOVED)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        changes.append(LINE_END_CHANGED)
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
        changes.append(COMPOSED)
    return text, tuple(changes)


def storable(text: str) -> str:
    """Return the text without surrogates and NUL, otherwise untouched: for ids, which must still find their record."""
    return _without_surrogates(text, []).replace("\0", "")


def exact_key(text: str) -> str:
    """Return what two texts share if they are exact duplicates: the text without trailing blanks and outer blank lines.

    Indentation, case and line breaks count, since they can carry the meaning of code and verse. Texts that differ only
    in these are near-duplicates of Jaccard 1. The key of a blank text is "", which equals no other.
    """
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def is_blank(text: str) -> bool:
    """Tell whether nothing of the text can be seen: only separators, control and format characters."""
    return not text or all(unicodedata.category(c)[0] in "ZC" and unicodedata.category(c) != "Co" for c in text)


def _without_surrogates(text: str, changes: list[str]) -> str:
    if _SURROGATE.search(text) is None:
        return text
    joined = _SURROGATE_PAIR.sub(_join_pair, text)
    if len(joined) != len(text):
        changes.append(SURROGATE_JOINED)
    replaced = _SURROGATE.sub("\ufffd", joined)
    if replaced != joined:
        changes.append(SURROGATE_REPLACED)
    return replaced


def _join_pair(pair: re.Match[str]) -> str:
    high, low = (ord(half) for half in pair.groups())
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
