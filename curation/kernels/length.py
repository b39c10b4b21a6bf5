"""Texts of an exact token length: head and tail whole, the body a prefix of its source.

Counts of parts do not add up: a token may span a join, and the first n ids of a text may end inside a character. So
a text is right when its own encoding says so. To encode a long text only once, the kernel counts it in blocks that end
where the tokenizer always splits (`Encoder.splits`), and then tries cuts in a window that begins at such a place.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

FILLERS = (" ok", " the", " a", "\n", ".", " 0", "!", " of")
"""Padding, one of them repeated; each is one token in most places, and none is trusted to be."""

LAST_FILLERS = ("\n", ".", "!")
"""What may end the padding where a filler would join the first letters of the tail."""

BLOCK_CHARS = 2_048
"""Code points counted at a time: enough that the call costs little, few enough that a window is cheap."""

_REACH_CHARS = 12
"""How far from the estimated cut a better one is looked for: a word or an emoji sequence, rarely more."""

_COSTLY_WINDOW_CHARS = 8_192
_COSTLY_REACH_CHARS = 6


class Encoder(Protocol):
    """What the kernel needs of a tokenizer."""

    @property
    def splits(self) -> re.Pattern[str] | None:
        """Pattern of the places where the ids of both sides never depend on one another; None if nothing is known.

        A zero-width match at i promises, for every text, `encode(text) == encode(text[:i]) + encode(text[i:])`; it must
        depend on the code points at i-1 and i alone.
        """
        ...

    @property
    def max_token_chars(self) -> int:
        """Upper bound of the code points that one token covers."""
        ...

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of `text`; a special token's literal is ordinary text."""
        ...

    def chars_of(self, text: str, num_tokens: int) -> int:
        """Return how many code points of `text` its first `num_tokens` tokens cover."""
        ...


class HeadTailTooLong(ValueError):
    """Head and tail alone have more tokens than the length: `alone_tokens`."""

    def __init__(self, alone_tokens: int, num_tokens: int) -> None:
        super().__init__(f"head and tail alone have {alone_tokens} tokens, {num_tokens} are asked for")
        self.alone_tokens = alone_tokens


class BodyTooShort(ValueError):
    """The body's source is used up `missing_tokens` before the length, more than padding may fill."""

    def __init__(self, missing_tokens: int, num_tokens: int) -> None:
        super().__init__(f"the body is used up {missing_tokens} tokens before {num_tokens}")
        self.missing_tokens = missing_tokens


@dataclass(frozen=True, slots=True)
class Fitted:
    """A text of the asked length.

    Attributes
    ----------
    text
        Head, the first `body_chars` code points of the body, padding, tail.
    body_chars
        Code points of the body that it carries.
    pad_tokens
        Tokens that the padding adds; 0 if there is none.
    """

    text: str
    body_chars: int
    pad_tokens: int


def fit_to_length(
    encoder: Encoder, num_tokens: int, *, head: str = "", body: str, tail: str = "", max_pad_tokens: int | None = None
) -> Fitted:
    """Return head + a prefix of the body (+ padding) + tail that encodes to exactly `num_tokens` tokens.

    Parameters
    ----------
    encoder
        The tokenizer.
    num_tokens
        The length, >= 1.
    head, tail
        Kept whole.
    body
        Cut between code points, near the place where the length is reached; may be far longer than needed.
    max_pad_tokens
        Most tokens of padding; None for any number. Padding is used where no cut gives the length (a token or two), or
        where the body is used up.

    Raises
    ------
    HeadTailTooLong
        If head and tail alone are longer.
    BodyTooShort
        If more padding is needed than `max_pad_tokens`.
    ValueError
        If `num_tokens` < 1, there is no text at all, or it holds a lone surrogate, which no file can store.

    Notes
    -----
    Costs one encoding of the result in blocks, and a few of a window around the cut. For an encoder without `splits`
    every trial encodes the whole text.
    """
    if num_tokens < 1:
        raise ValueError(f"num_tokens must be >= 1, got {num_tokens}")
    if not (head or body or tail):
        raise ValueError("there is no text: a prompt of nothing but padding is no prompt")
    search = _Search(encoder, num_tokens, head, body, tail)
    found = search.cut() or search.padded(num_tokens if max_pad_tokens is None else max_pad_tokens)
    end, pad, pad_tokens = found
    text = search.text[:end] + pad + tail
    if not _storable(text):
        raise ValueError("the text holds a lone surrogate, which UTF-8 cannot store")
    return Fitted(text, end - len(head), pad_tokens)


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Search:
    """The counts of one fit: known at the ends of blocks, counted in a window elsewhere."""

    def __init__(self, encoder: Encoder, num_tokens: int, head: str, body: str, tail: str) -> None:
        self.encoder = encoder
        self.num_tokens = num_tokens
        self.least = len(head)
        # More than this can hold no longer a text of num_tokens, so a whole book may be handed in.
        self.text = head + body[: (num_tokens + 1) * encoder.max_token_chars]
        self.tail_near, self.tail_rest_tokens = self._split_tail(tail)
        self.anchors, self.counts = [0], [0]  # places at which the count of what stands before is known
        self.known: dict[tuple[int, str], int] = {}
        self.at = self._estimate(num_tokens - len(encoder.encode_ordinary(tail)))

    def _split_tail(self, tail: str) -> tuple[str, int]:
        found = self.encoder.splits.search(tail, 1) if self.encoder.splits and len(tail) > 1 else None
        if found is None:
            return tail, 0
        return tail[: found.start()], len(self.encoder.encode_ordinary(tail[found.start() :]))

    def _estimate(self, wanted: int) -> int:
        """Count blocks until `wanted` tokens are there; return about where they end."""
        if wanted <= 0 or not self.text:
            return self.least
        start = before = 0
        for end in self._block_ends(wanted):
            start = self.anchors[-1]
            before = self.counts[-1]
            num_tokens = len(self.encoder.encode_ordinary(self.text[start:end]))
            if before + num_tokens >= wanted:
                break
            if end == len(self.text):
                return end
            if self.encoder.splits:
                self.anchors.append(end)
                self.counts.append(before + num_tokens)
        at = start + self.encoder.chars_of(self.text[start:end], wanted - before)
        self._anchor_near(start, before, at)
        return max(at, self.least)

    def _block_ends(self, wanted: int) -> Iterator[int]:
        """Yield the ends of blocks; without splits, of ever longer prefixes."""
        splits, size, end = self.encoder.splits, len(self.text), 0
        step = BLOCK_CHARS if splits else max(256, 6 * wanted)
        while end < size:
            if splits is None:
                end, step = min(size, step), 2 * step
            else:
                found = splits.search(self.text, end + step) if end + step < size else None
                end = size if found is None else found.start()
            yield end

    def _anchor_near(self, start: int, before: int, at: int) -> None:
        """Count up to the last split shortly before the estimate, so that trials encode a few words only."""
        if self.encoder.splits is None:
            return
        last = None
        for found in self.encoder.splits.finditer(self.text, max(start + 1, at - BLOCK_CHARS // 4)):
            if found.start() >= at - _REACH_CHARS:
                break
            last = found.start()
        if last is not None:
            self.anchors.append(last)
            self.counts.append(before + len(self.encoder.encode_ordinary(self.text[start:last])))

    def count(self, end: int, pad: str = "") -> int:
        """Return the tokens of text[:end] + pad + tail."""
        key = (end, pad)
        if key not in self.known:
            # The anchor's own character must be in the text, or it is no split: strictly before the end.
            i = max(0, bisect_left(self.anchors, end) - 1)
            near = self.text[self.anchors[i] : end] + pad + self.tail_near
            self.known[key] = self.counts[i] + len(self.encoder.encode_ordinary(near)) + self.tail_rest_tokens
        return self.known[key]

    def _reach(self) -> int:
        i = max(0, bisect_left(self.anchors, self.at) - 1)
        return _REACH_CHARS if self.at - self.anchors[i] <= _COSTLY_WINDOW_CHARS else _COSTLY_REACH_CHARS

    def cut(self) -> tuple[int, str, int] | None:
        """Return the cut nearest to the estimate that gives the length, if one does."""
        if self.at == len(self.text) and self.count(self.at) < self.num_tokens:
            return None  # used up
        for distance in range(self._reach() + 1):
            for end in (self.at - distance, self.at + distance):
                if self.least <= end <= len(self.text) and self.count(end) == self.num_tokens:
                    return end, "", 0
        return None

    def padded(self, max_pad_tokens: int) -> tuple[int, str, int]:
        """Return the longest prefix, from the estimate down, that padding brings to the length."""
        end = min(self.at + self._reach(), len(self.text))
        while True:
            missing = self.num_tokens - self.count(end)
            if missing > max_pad_tokens:
                raise BodyTooShort(missing, self.num_tokens)
            pad = self._padding(end, missing) if missing > 0 else None
            if pad is not None:
                return end, pad, missing
            if end == self.least:
                raise self._failure()
            # A code point is at most four tokens, so this step never passes the place where the length is reached.
            end = max(self.least, end - max(1, -missing // 4))

    def _failure(self) -> ValueError:
        alone = self.count(self.least)
        if alone > self.num_tokens:
            return HeadTailTooLong(alone, self.num_tokens)
        return BodyTooShort(self.num_tokens - alone, self.num_tokens)

    def _padding(self, end: int, missing: int) -> str | None:
        for last in ("", *LAST_FILLERS):
            for repeats in (missing, missing - 1, missing + 1):
                for filler in FILLERS:
                    pad = filler * (repeats - bool(last)) + last
                    if repeats >= 1 and self.count(end, pad) == self.num_tokens:
                        return pad
        return None
