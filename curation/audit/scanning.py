"""Scan the documents of a unit: batches that fit a core's cache, long documents in overlapping pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.audit.arrow import numbers_of, text_offsets
from curation.audit.reading import Documents
from curation.kernels.audit_classify import Hit
from curation.kernels.audit_index import OverlapIndex
from curation.kernels.audit_overlap import BATCH_BYTES, NUMPY, Kernel, Scan, keep_best, moved, scan
from curation.kernels.audit_rules import Rule
from curation.kernels.audit_tokens import Bytes, Ints, count_characters

_FAST_FROM_BYTES = 96 << 20  # loading it takes a second, which it wins back in about so much text
_FAST_BATCH_BYTES = 4 << 20  # one pass over the tokens needs no cache for them, and each batch costs a millisecond
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
        The numpy one or the compiled one.
    near_misses
        Also tell pairs that no class holds (for the semantic stage).
    """

    index: OverlapIndex
    rule: Rule
    overlap: int
    kernel: Kernel
    near_misses: bool = False

    @property
    def piece(self) -> int:
        """Bytes of a piece of a long document."""
        return max(BATCH_BYTES, 4 * self.overlap)

    def scan(self, documents: Documents) -> tuple[list[Hit], Ints]:
        """Return the hits of a batch, in the order of document and prompt, and the tokens of each document."""
        texts = documents.texts
        num_tokens = np.zeros(len(texts), np.int64)
        best: dict[tuple[int, int], Hit] = {}
        length = np.diff(text_offsets(texts)).astype(np.int64)
        for members in _groups(texts, length, self.piece, self.kernel.batch_bytes):
            if len(members) == 1 and length[members[0]] > self.piece:
                self._scan_long(texts, int(members[0]), best, num_tokens)
                continue
            raw, offsets = _joined(texts, members, length)
            result = self._scan(raw, offsets)
            num_tokens[members] = result.num_tokens
            for hit in result.hits:
                document = int(members[hit.document])
                keep_best(best, moved(hit, document - hit.document))
        return [best[pair] for pair in sorted(best)], num_tokens

    def _scan(self, raw: Bytes, offsets: Ints) -> Scan:
        return scan(raw, offsets, self.index, self.rule, self.kernel, near_misses=self.near_misses)

    def _scan_long(self, texts: pa.Array, i: int, best: dict[tuple[int, int], Hit], num_tokens: Ints) -> None:
        raw = _bytes_of(texts, i)
        characters = at = 0
        for begin, end in pieces(raw, self.piece, self.overlap):
            characters += count_characters(raw[at:begin])
            at = begin
            result = self._scan(raw[begin:end], np.array([0, end - begin + 1]))
            num_tokens[i] += int(result.num_tokens[0])
            for hit in result.hits:
                keep_best(best, moved(hit, i, characters))


def make_scanner(index: OverlapIndex, rule: Rule, *, fast: bool, near_misses: bool = False) -> Scanner:
    """Return a scanner with the compiled kernel or the numpy one."""
    longest = max((len(text.encode("utf-8", "replace")) for text in _longest(index)), default=0)
    # A copy may be in full width, three bytes to a letter.
    return Scanner(index, rule, 3 * longest + 4096, _fast() if fast else NUMPY, near_misses)


def use_fast(num_bytes: int) -> bool:
    """Tell whether the compiled kernel is there and the corpus large enough to pay for loading it."""
    from importlib.util import find_spec

    return num_bytes >= _FAST_FROM_BYTES and find_spec("numba") is not None


def _fast() -> Kernel:
    from curation.kernels.audit_fast import FastTokenizer
    from curation.kernels.audit_fast_search import FastSearch

    return Kernel(FastTokenizer(), FastSearch(), _FAST_BATCH_BYTES)


def _longest(index: OverlapIndex) -> Iterator[str]:
    # By tokens: the text column may be on disk, and one prompt is enough.
    if len(index.num_tokens):
        yield index.texts[int(index.num_tokens.argmax())]


def _groups(texts: pa.Array, length: Ints, piece: int, batch_bytes: int) -> Iterator[Ints]:
    """Batches of documents, like with like; long ones each alone."""
    characters = numbers_of(pc.utf8_length(texts))
    # ASCII skips folding, and text with a few other letters the search for characters that are words.
    kinds = np.where(characters == length, 0, np.where(characters > _MOSTLY_ASCII * length, 1, 2))
    for kind in range(3):
        members = np.flatnonzero((kinds == kind) & (length <= piece))
        ends = np.cumsum(length[members])
        begin = 0
        while begin < len(members):
            base = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, base + batch_bytes, "right")))
            yield members[begin:end]
            begin = end
    for i in np.flatnonzero(length > piece):
        yield np.array([i])


def _joined(texts: pa.Array, members: Ints, length: Ints) -> tuple[Bytes, Ints]:
    """Lay documents one behind the other, a line feed between them."""
    data = memoryview(texts.buffers()[2] or b"")
    first = text_offsets(texts)[members]
    begins, ends = first.tolist(), (first + length[members]).tolist()
    joined = b"\n".join([data[a:b] for a, b in zip(begins, ends, strict=True)])
    return np.frombuffer(joined, np.uint8), np.concatenate([[0], np.cumsum(length[members] + 1)])


def _bytes_of(texts: pa.Array, i: int) -> Bytes:
    at = text_offsets(texts)[i : i + 2]
    data = texts.buffers()[2]
    if data is None:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data, np.uint8)[int(at[0]) : int(at[1])]


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
