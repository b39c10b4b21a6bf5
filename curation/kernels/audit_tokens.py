"""Fold and tokenise a batch of texts on their bytes, vectorised over the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.kernels.audit_fold import (
    FILL,
    OWN_LEAD,
    SPECIAL,
    four_byte_code,
    prepare,
    three_byte_codes,
    two_byte_table,
)
from curation.kernels.audit_hash import token_hashes

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

PADDING = 16
"""Zero bytes behind a folded buffer, so that a word can be loaded at any token."""

_TWO, _THREE, _FOUR = 2, 3, 4


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a batch.

    Attributes
    ----------
    hashes
        Token hashes, shape ``(t,)``.
    start, end
        Half-open spans of the tokens in the folded buffer, shape ``(t,)``.
    first
        First token of each document and one entry more, shape ``(d + 1,)``.
    deleted
        Where bytes of the batch were left out, as places in the folded buffer, ascending.
    lead
        First folded byte of each token, shape ``(t,)``.
    """

    hashes: NDArray[np.uint64]
    start: Ints | NDArray[np.int32]
    end: Ints | NDArray[np.int32]
    first: Ints
    deleted: Ints
    lead: Bytes

    def spans(self, tokens: Ints) -> tuple[Ints, Ints]:
        """Half-open byte spans of some tokens in the batch as it was given."""
        # Only hits are ever asked for, so the way back through the deleted bytes is not paid for every token.
        start, end = self.start[tokens].astype(np.int64), self.end[tokens].astype(np.int64)
        if not len(self.deleted):
            return start, end
        return _unshift(start, self.deleted), _unshift(end - 1, self.deleted) + 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents and their tokens.

    Attributes
    ----------
    raw
        Their bytes; documents that had to be prepared are in their prepared form.
    begin, end
        Half-open byte span of each document, shape ``(d,)``.
    origins
        For each prepared document, the place in its original text of every character (see `audit_fold.prepare`).
    """

    raw: Bytes
    begin: Ints
    end: Ints
    tokens: Tokens
    origins: dict[int, list[int]]

    def byte_span(self, begin: int, end: int) -> tuple[int, int]:
        """Half-open byte span in `raw` of the tokens from `begin` to before `end`, whole characters."""
        first, last = int(self.tokens.start[begin]), int(self.tokens.end[end - 1])
        if len(self.tokens.deleted):
            a, b = self.tokens.spans(np.array([begin, end - 1]))
            first, last = int(a[0]), int(b[1])
        # The folded bytes of a character may be fewer than its own, which follow.
        while last < len(self.raw) and self.raw[last] & 0xC0 == 0x80:
            last += 1
        return first, last

    def text(self, begin: int, end: int) -> str:
        """Return the text of the tokens from `begin` to before `end`, as it is in `raw`."""
        first, last = self.byte_span(begin, end)
        return self.raw[first:last].tobytes().decode("utf-8", "replace")

    def character_span(self, document: int, begin: int, end: int) -> tuple[int, int]:
        """Half-open character span in the original text of the tokens from `begin` to before `end` of the batch."""
        a, b = self.byte_span(begin, end)
        first = count_characters(self.raw[int(self.begin[document]) : a])
        last = first + count_characters(self.raw[a:b])
        origin = self.origins.get(document)
        if origin is None:
            return first, last
        return origin[first], max(origin[last], origin[last - 1] + 1)


class NeedsPreparationError(ValueError):
    """Some documents hold characters that cannot be folded in place; `documents` are their indices."""

    def __init__(self, documents: Ints) -> None:
        super().__init__(f"{len(documents)} documents must be prepared first")
        self.documents = documents


def tokenize_batch(raw: Bytes, offsets: Ints) -> Tokens:
    """Tokenise documents that lie one behind the other.

    Parameters
    ----------
    raw
        UTF-8 bytes, shape ``(n,)``; one byte below 0x30 between any two documents.
    offsets
        Where each document begins, and the length of `raw` plus that one byte; shape ``(d + 1,)``.

    Raises
    ------
    NeedsPreparationError
        If a document holds a character for which `audit_fold.prepare` is needed.
    """
    folded = fold_ascii(raw)
    deleted = np.zeros(0, np.int64)
    has_own = False
    if len(raw) and raw.max() >= 0x80:
        specials = _fold_rest(raw, folded)
        if len(specials):
            raise NeedsPreparationError(np.unique(np.searchsorted(offsets, specials, "right") - 1))
        fill = folded == FILL
        if fill.any():
            deleted = np.flatnonzero(fill)
            folded = folded[~fill]
        has_own = bool(folded.max() >= OWN_LEAD)
    start, end = _own_spans(folded) if has_own else _word_spans(folded)
    first = np.searchsorted(start, offsets - np.searchsorted(deleted, offsets))
    deleted -= np.arange(len(deleted))
    return Tokens(token_hashes(folded, start, end), start, end, first, deleted, folded[start])


def join_texts(texts: Sequence[str]) -> tuple[Bytes, Ints]:
    """Return texts as `tokenize_batch` takes them."""
    parts = [text.encode("utf-8", "replace") for text in texts]
    raw = np.frombuffer(b"\n".join(parts), np.uint8)
    return raw, np.cumsum([0, *(len(part) + 1 for part in parts)])


def tokenize_prepared(raw: Bytes, offsets: Ints) -> Batch:
    """Tokenise documents as `tokenize_batch` takes them, first rewriting those that cannot be folded in place."""
    try:
        return Batch(raw, offsets[:-1], offsets[1:] - 1, tokenize_batch(raw, offsets), {})
    except NeedsPreparationError as error:
        documents = error.documents
    parts = [raw[a : b - 1].tobytes() for a, b in pairwise(offsets)]
    origins = {}
    for i in documents:
        text, origins[int(i)] = prepare(parts[i].decode("utf-8", "replace"))
        parts[i] = text.encode("utf-8", "replace")
    raw = np.frombuffer(b"\n".join(parts), np.uint8)
    offsets = np.cumsum([0, *(len(part) + 1 for part in parts)])
    return Batch(raw, offsets[:-1], offsets[1:] - 1, tokenize_batch(raw, offsets), origins)


def count_characters(raw: Bytes) -> int:
    """Count the characters of UTF-8 bytes: all bytes but those that continue one."""
    if raw.tobytes().isascii():
        return len(raw)
    return int(np.count_nonzero((raw & 0xC0) != 0x80))


def fold_ascii(raw: Bytes) -> Bytes:
    """Fold ASCII letters and digits, make every other ASCII byte a separator, keep the rest; adds `PADDING`."""
    folded = np.zeros(len(raw) + PADDING, np.uint8)
    body = folded[: len(raw)]
    # `| 0x20` lowers a letter and leaves a digit as it is; unsigned wrap makes each range one comparison.
    np.bitwise_or(raw, 0x20, out=body)
    keep = (body - np.uint8(97)) < 26
    keep |= (raw - np.uint8(48)) < 10
    body *= keep.view(np.uint8)
    high = raw >= 0x80
    body |= raw * high.view(np.uint8)
    return folded


def _fold_rest(raw: Bytes, folded: Bytes) -> Ints:
    """Fold the characters beyond ASCII in place; return where characters stand that need preparation."""
    specials = []
    at = np.flatnonzero((raw - np.uint8(0xC2)) < 0x1E)
    if len(at):
        at = _complete(at, raw, _TWO)
        pair = raw[at] | (raw[at + 1].astype(np.uint16) << np.uint16(8))
        specials.append(_scatter(folded, at, two_byte_table()[pair], _TWO))
    # E4-E9 and EB-ED are Han and Hangul throughout: folded as they stand.
    at = np.flatnonzero(((raw - np.uint8(0xE0)) < 4) | (raw == 0xEA) | (raw >= 0xEE) & (raw < 0xF0))
    if len(at):
        at = _complete(at, raw, _THREE)
        specials.append(_scatter(folded, at, three_byte_codes(_code_points(raw, at)), _THREE))
    at = np.flatnonzero(raw >= 0xF0)
    if len(at):
        at = _complete(at, raw, _FOUR)
        point = ((_code_points(raw, at) & 0xFFFF) << 6) | (raw[at + 3] & 63)
        point &= 0x1FFFFF
        distinct, inverse = np.unique(point, return_inverse=True)
        codes = np.array([four_byte_code(int(c)) for c in distinct], np.uint32)[inverse]
        specials.append(_scatter(folded, at, codes, _FOUR))
    return np.sort(np.concatenate(specials)) if specials else np.zeros(0, np.int64)


def _complete(at: Ints, raw: Bytes, width: int) -> Ints:
    # Bytes that are not UTF-8 may end in the middle of a character.
    return at if at[-1] + width <= len(raw) else at[at + width <= len(raw)]


def _code_points(raw: Bytes, at: Ints) -> NDArray[np.uint32]:
    point = (raw[at] & 15).astype(np.uint32) << np.uint32(12)
    point |= (raw[at + 1] & 63).astype(np.uint32) << np.uint32(6)
    point |= raw[at + 2] & 63
    return point


def _scatter(folded: Bytes, at: Ints, code: NDArray[np.unsignedinteger[Any]], width: int) -> Ints:
    first = (code & 255).astype(np.uint8)
    folded[at] = first
    for i in range(1, width):
        folded[at + i] = (code >> (8 * i)) & 255
    special = first == SPECIAL
    return at[special] if special.any() else at[:0]


def _word_spans(folded: Bytes) -> tuple[Ints, Ints]:
    """Spans of the runs of bytes that are no separator."""
    word = folded != 0
    edges = np.flatnonzero(word[1:] != word[:-1])
    edges += 1
    if len(word) and word[0]:
        edges = np.concatenate([[0], edges])
    return edges[0::2], edges[1::2]


def _own_spans(folded: Bytes) -> tuple[Ints, Ints]:
    """Spans of words and of characters that are tokens of their own."""
    word = folded != 0
    own = folded >= OWN_LEAD
    start = own.copy()
    start[0] |= word[0]
    start[1:] |= word[1:] & ~word[:-1]
    start[3:] |= own[:-3] & word[3:]
    event = start.copy()
    event[1:] |= word[:-1] & ~word[1:]
    at = np.flatnonzero(event)
    begins = start[at]
    begins[-1:] = False  # the padding ends the last token
    which = np.flatnonzero(begins)
    return at[which], at[which + 1]


def _unshift(at: Ints, deleted: Ints) -> Ints:
    """Places in the buffer before the deleted bytes were taken out."""
    return at + np.searchsorted(deleted, at, "right")
