"""Which prompts are in which texts: the audit as one function of strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from curation.kernels.audit_candidates import find_candidates
from curation.kernels.audit_classify import Hit, classify
from curation.kernels.audit_index import OverlapIndex
from curation.kernels.audit_postings import Postings, find_postings
from curation.kernels.audit_rules import ADAPTIVE, CLASSES, Rule
from curation.kernels.audit_tokens import Batch, Bytes, Ints, join_texts, tokenize_prepared

BATCH_BYTES = 1 << 20
"""Texts are scanned in batches of about this size; the arrays of one fit the cache of a core."""

_RANK = {kind: i for i, kind in enumerate((*CLASSES, "near_miss"))}


@dataclass(frozen=True, slots=True)
class Found:
    """What documents share with the prompts.

    Attributes
    ----------
    batch, postings
        The documents and their tokens, and the shared shingles of both sizes; a document that shares none need have no
        tokens.
    num_tokens
        Tokens of each document.
    left
        Documents, ascending, that have no tokens here since they must be prepared first.
    """

    batch: Batch
    postings: tuple[Postings, Postings]
    num_tokens: Ints
    left: Ints


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


def scan(raw: Bytes, offsets: Ints, index: OverlapIndex, rule: Rule = ADAPTIVE, *, near_misses: bool = False) -> Scan:
    """Look for the prompts in documents that lie one behind the other.

    Parameters
    ----------
    raw, offsets
        As `tokenize_batch` takes them.
    index, rule
        As in `find_overlaps`.
    near_misses
        Also return pairs of kind `near_miss`.
    """
    batch = tokenize_prepared(raw, offsets)
    found = Found(batch, find_postings(batch.tokens, index), np.diff(batch.tokens.first), np.zeros(0, np.int64))
    return judge(found, index, rule, near_misses=near_misses)


def judge(found: Found, index: OverlapIndex, rule: Rule = ADAPTIVE, *, near_misses: bool = False) -> Scan:
    """Say what the pairs are that share shingles; parameters as in `scan`."""
    batch = found.batch
    best: dict[tuple[int, int], Hit] = {}
    for postings in found.postings:
        if not len(postings.at):
            continue
        candidates = find_candidates(batch.tokens, postings, index, near_misses=near_misses)
        for hit in classify(batch, candidates, index, rule, near_misses=near_misses):
            keep_best(best, hit)
    return Scan([best[pair] for pair in sorted(best)], found.num_tokens)


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
