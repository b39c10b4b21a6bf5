"""Scan the documents of a unit: batches that fit a core's cache, long documents in overlapping pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.audit.arrow import arrow_numbers, numbers_of, text_offsets
from curation.audit.errors import AuditError
from curation.audit.reading import Documents
from curation.kernels.audit_classify import Hit
from curation.kernels.audit_index import OverlapIndex
from curation.kernels.audit_overlap import BATCH_BYTES, Found, Scan, judge, keep_best, moved, scan
from curation.kernels.audit_rules import Rule
from curation.kernels.audit_tokens import Bytes, Ints, count_characters

_FAST_FROM_BYTES = 256 << 20
"""From so much text on the compiled kernel wins back the seconds that compiling it takes, once a machine."""

_IN_PLACE_BYTES = 16 << 20  # what is found in so much is judged at once

Kernel = Callable[[Bytes, Ints, Ints], Found]
_SPACE_REACH = 4096
_MOSTLY_ASCII = 0.9


@dataclass(frozen=True, slots=True)
class Scanner:
    """What a document is scanned with.

    Attributes
    ----------
    index, rule
        What is looked for, and how pairs are judged.
    overlap
        Bytes by which the pieces of a long document overlap: more than the longest prompt can take up.
    kernel
        The compiled one, `audit.fast_kernel.FastKernel`; None for numpy.
    near_misses
        Also tell pairs that no class holds (for the semantic stage).
    """

    index: OverlapIndex
    rule: Rule
    overlap: int
    kernel: Kernel | None
    near_misses: bool = False

    @property
    def piece(self) -> int:
        """Bytes of a piece of a long document."""
        return max(BATCH_BYTES, 4 * self.overlap)

    def scan(self, documents: Documents) -> tuple[list[Hit], Ints]:
        """Return the hits of a batch, in the order of document and prompt, and the tokens of each document."""
        texts = documents.texts
        work = _Work(np.zeros(len(texts), np.int64), {})
        offsets = text_offsets(texts).astype(np.int64)
        length = np.diff(offsets)
        raw = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        whole = np.flatnonzero(length <= self.piece)
        if self.kernel is None:
            self._scan_joined(texts, whole, work)
        else:
            self._scan_in_place(self.kernel, texts, raw, offsets, whole, work)
        for i in np.flatnonzero(length > self.piece).tolist():
            self._scan_long(raw[offsets[i] : offsets[i + 1]], i, work)
        return [work.best[pair] for pair in sorted(work.best)], work.num_tokens

    def _scan_in_place(
        self, kernel: Kernel, texts: pa.Array, raw: Bytes, offsets: Ints, whole: Ints, work: _Work
    ) -> None:
        left = []
        for members in _batches(whole, offsets[whole + 1] - offsets[whole], _IN_PLACE_BYTES):
            base, top = int(offsets[members[0]]), int(offsets[members[-1] + 1])
            found = kernel(raw[base:top], offsets[members] - base, offsets[members + 1] - base)
            work.add(self._judge(found), members)
            left.append(members[found.left])
        if left:
            self._scan_joined(texts, np.concatenate(left), work)

    def _scan_joined(self, texts: pa.Array, whole: Ints, work: _Work) -> None:
        for members in _alike(texts, whole):
            work.add(self._scan(*_joined(texts, members)), members)

    def _scan(self, raw: Bytes, offsets: Ints) -> Scan:
        return scan(raw, offsets, self.index, self.rule, near_misses=self.near_misses)

    def _judge(self, found: Found) -> Scan:
        return judge(found, self.index, self.rule, near_misses=self.near_misses)

    def _scan_piece(self, raw: Bytes) -> Scan:
        if self.kernel is not None:
            found = self.kernel(raw, np.array([0]), np.array([len(raw)]))
            if not len(found.left):
                return self._judge(found)
        return self._scan(raw, np.array([0, len(raw) + 1]))

    def _scan_long(self, raw: Bytes, i: int, work: _Work) -> None:
        characters = at = 0
        for begin, end in pieces(raw, self.piece, self.overlap):
            characters += count_characters(raw[at:begin])
            at = begin
            work.add(self._scan_piece(raw[begin:end]), np.array([i]), characters)


@dataclass(frozen=True, slots=True)
class _Work:
    """What was found so far in the documents of a unit."""

    num_tokens: Ints
    best: dict[tuple[int, int], Hit]

    def add(self, result: Scan, members: Ints, characters: int = 0) -> None:
        """Add what was found in some of the documents, or in a piece of one that begins at a character."""
        np.add.at(self.num_tokens, members, result.num_tokens)
        for hit in result.hits:
            keep_best(self.best, moved(hit, int(members[hit.document]) - hit.document, characters))


def make_scanner(index: OverlapIndex, rule: Rule, *, fast: bool, near_misses: bool = False) -> Scanner:
    """Return a scanner with the compiled kernel or the numpy one."""
    longest = max((len(text.encode("utf-8", "replace")) for text in _longest(index)), default=0)
    # A copy may be in full width, three bytes to a letter.
    return Scanner(index, rule, 3 * longest + 4096, _fast(index, near_misses) if fast else None, near_misses)


def use_fast(num_bytes: int) -> bool:
    """Tell whether the compiled kernel is there, and compiled already or worth it for so much text."""
    from importlib.util import find_spec

    if find_spec("numba") is None:
        return False
    from curation.audit.machine_code import is_compiled

    return num_bytes >= _FAST_FROM_BYTES or is_compiled()


def _fast(index: OverlapIndex, near_misses: bool) -> Kernel:
    try:
        from curation.audit.fast_kernel import FastKernel
    except ImportError:
        raise AuditError("--kernel numba: numba is not installed; install the extra [fast]") from None
    return FastKernel(index, near_misses=near_misses)


def _longest(index: OverlapIndex) -> Iterator[str]:
    # By tokens: the text column may be on disk, and one prompt is enough.
    if len(index.num_tokens):
        yield index.texts[int(index.num_tokens.argmax())]


def _alike(texts: pa.Array, members: Ints) -> Iterator[Ints]:
    """Batches of documents, like with like."""
    length = np.diff(text_offsets(texts)).astype(np.int64)
    characters = length.copy()
    if len(members):
        asked = texts if len(members) == len(texts) else texts.take(arrow_numbers(members))
        characters[members] = numbers_of(pc.utf8_length(asked))
    # ASCII skips folding, and text with a few other letters the search for characters that are words.
    kinds = np.where(characters == length, 0, np.where(characters > _MOSTLY_ASCII * length, 1, 2))
    for kind in range(3):
        same = members[kinds[members] == kind]
        yield from _batches(same, length[same], BATCH_BYTES)


def _batches(members: Ints, length: Ints, most: int) -> Iterator[Ints]:
    """Consecutive members of about `most` bytes together, by the length of each."""
    ends = np.cumsum(length)
    begin = 0
    while begin < len(members):
        base = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, base + most, "right")))
        yield members[begin:end]
        begin = end


def _joined(texts: pa.Array, members: Ints) -> tuple[Bytes, Ints]:
    """Lay documents one behind the other, a line feed between them."""
    data = memoryview(texts.buffers()[2] or b"")
    offsets = text_offsets(texts).astype(np.int64)
    begins, ends = offsets[members], offsets[members + 1]
    joined = b"\n".join([data[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)])
    return np.frombuffer(joined, np.uint8), np.concatenate([[0], np.cumsum(ends - begins + 1)])


def pieces(raw: Bytes, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield overlapping byte ranges of a long document, cut where a character begins, if possible at a space."""
    begin = 0
    while True:
        end = len(raw) if len(raw) - begin <= size else _cut(raw, begin + size)
        yield begin, end
        if end == len(raw):
            return
        begin = max(begin + 1, _cut(raw, end - overlap))


def _cut(raw: Bytes, at: int) -> int:
    low = max(0, at - _SPACE_REACH)
    spaces = np.flatnonzero((raw[low:at] == 32) | (raw[low:at] == 10))
    if len(spaces):
        return low + int(spaces[-1]) + 1
    while at > 0 and raw[at] & 0xC0 == 0x80:
        at -= 1
    return at
