"""Which prompts are in which texts: the audit as one function of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from curation.kernels.audit_candidates import find_candidates
from curation.kernels.audit_classify import Hit, classify
from curation.kernels.audit_index import OverlapIndex
from curation.kernels.audit_postings import Postings, find_postings
from curation.kernels.audit_rules import ADAPTIVE, CLASSES, Rule
from curation.kernels.audit_tokens import Bytes, Ints, Tokenizer, Tokens, join_texts, tokenize_batch, tokenize_prepared

BATCH_BYTES = 1 << 20
"""Texts are scanned in batches of about this size; the arrays of one fit the cache of a core."""

_RANK = {kind: i for i, kind in enumerate((*CLASSES, "near_miss"))}


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a batch becomes tokens, tokens become shared shingles, and about how many bytes a batch should have."""

    tokenize: Tokenizer
    search: Callable[[Tokens, OverlapIndex], tuple[Postings, Postings]]
    batch_bytes: int = BATCH_BYTES


NUMPY = Kernel(tokenize_batch, find_postings)


@dataclass(frozen=True, slots=True)
class Scan:
    """The hits of a batch, in the order of document and prompt, and the tokens of each document."""

    hits: list[Hit]
    num_tokens: Ints


def find_overlaps(texts: Sequence[str], index: OverlapIndex, rule: Rule = ADAPTIVE) -> list[Hit]:
    """Return every prompt that is in a text, in the order of text and prompt.

    Parameters
    ----------
    texts
        The texts, of any length.
    index
        From `build_index`.
    rule
        How pairs are judged.

    Returns
    -------
    list of Hit
        One a pair; `document` is the index into `texts`.
    """
    hits: list[Hit] = []
    for begin, end in _batches([len(t) for t in texts]):
        raw, offsets = join_texts(texts[begin:end])
        hits.extend(moved(hit, begin) for hit in scan(raw, offsets, index, rule).hits)
    return [hit for hit in hits if hit.kind != "near_miss"]


def scan(
    raw: Bytes,
    offsets: Ints,
    index: OverlapIndex,
    rule: Rule = ADAPTIVE,
    kernel: Kernel = NUMPY,
    *,
    near_misses: bool = False,
) -> Scan:
    """Look for the prompts in documents that lie one behind the other.

    Parameters
    ----------
    raw, offsets
        As `tokenize_batch` takes them.
    index, rule
        As in `find_overlaps`.
    kernel
        The numpy functions, or compiled ones that do the same.
    near_misses
        Also return pairs of kind `near_miss`.
    """
    batch = tokenize_prepared(raw, offsets, kernel.tokenize)
    best: dict[tuple[int, int], Hit] = {}
    for postings in kernel.search(batch.tokens, index):
        if not len(postings.at):
            continue
        candidates = find_candidates(batch.tokens, postings, index, near_misses=near_misses)
        for row in range(len(candidates.document)):
            keep_best(best, classify(batch, candidates, row, index, rule))
    return Scan([best[pair] for pair in sorted(best)], np.diff(batch.tokens.first))


def keep_best(best: dict[tuple[int, int], Hit], hit: Hit) -> None:
    """Keep, of several hits of one pair, the strongest; of equals the first."""
    pair = (hit.document, hit.prompt)
    old = best.get(pair)
    if old is None or strength(hit) < strength(old):
        best[pair] = hit


def strength(hit: Hit) -> tuple[int, float, int]:
    """Order of hits, strongest first."""
    return _RANK[hit.kind], -hit.coverage, hit.begin


def moved(hit: Hit, documents: int, characters: int = 0) -> Hit:
    """Return a hit with its document and span counted from further up."""
    return Hit(
        hit.document + documents,
        hit.prompt,
        hit.kind,
        hit.coverage,
        hit.run,
        hit.begin + characters,
        hit.end + characters,
    )


def _batches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(lengths):
        base = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, base + BATCH_BYTES, "right")))
        yield begin, end
        begin = end
