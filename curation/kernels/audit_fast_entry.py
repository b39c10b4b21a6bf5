"""What is compiled to machine code: one function of C types (see `curation.audit.machine_code`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from curation.kernels.audit_fast import READY, UNKNOWN, tokenize_document
from curation.kernels.audit_fast_filter import flag_shingles
from curation.kernels.audit_fast_search import search_document
from curation.kernels.pointers import compiled

NO_ROOM = 3
"""Of a document, beside the states of `audit_fast`: its matches do not fit behind those before."""

_P: Any = types.CPointer
_BYTES, _SHORTS, _CODES, _WORDS = _P(types.uint8), _P(types.uint16), _P(types.uint32), _P(types.uint64)
_PLACES, _INTS = _P(types.int32), _P(types.int64)
_INT, _WORD = types.int64, types.uint64

SIGNATURES = {
    "find_shared": _INT(
        *(_BYTES, _INT, _INTS, _INTS, _INT, _INT, _SHORTS, _CODES, _CODES, _BYTES),
        *(_WORDS, _WORD, *(_WORDS, _WORD, _PLACES, _WORD, _WORDS) * 2),
        *(_WORDS, _INTS, _INTS, _BYTES, *[_INTS] * 4, types.float64, _INT),
        *(_WORDS, _PLACES, _INTS, _INTS, _BYTES, _INTS, _INTS, _INT, _INTS),
        *(*[_PLACES] * 6, _WORDS),
    ),
}
"""The functions of this module, and their types for numba."""


@compiled
def _search_both(
    hashes: Any,
    low: Any,
    high: Any,
    flagged: Any,
    num_flagged: Any,
    tables: Any,
    prompts: Any,
    share: Any,
    work: Any,
    document: Any,
    out: Any,
    counts: Any,
    capacity: Any,
) -> Any:
    """Write the matches of one document for both sizes of shingle; return how many there are then of each."""
    fives: Any = counts[0]
    threes: Any = counts[1]
    if num_flagged[0] > 0:
        fives = search_document(
            *(hashes, low, high, 5, flagged[0], num_flagged[0], tables[0], prompts, share, work),
            *(document, out[0], fives, capacity),
        )
    if num_flagged[1] > 0:
        threes = search_document(
            *(hashes, low, high, 3, flagged[1], num_flagged[1], tables[1], prompts, share, work),
            *(document, out[1], threes, capacity),
        )
    return fives, threes


def find_shared(
    data: Any,
    size: Any,
    begin: Any,
    end: Any,
    document: Any,
    num_documents: Any,
    two: Any,
    three: Any,
    four: Any,
    buffer: Any,
    coarse: Any,
    coarse_shift: Any,
    seen5: Any,
    seen_shift5: Any,
    begins5: Any,
    shift5: Any,
    rows5: Any,
    seen3: Any,
    seen_shift3: Any,
    begins3: Any,
    shift3: Any,
    rows3: Any,
    prompt_hashes: Any,
    prompt_first: Any,
    prompt_tokens: Any,
    weighted: Any,
    num_weighted: Any,
    may_miss: Any,
    min_run: Any,
    stride: Any,
    share: Any,
    keep_all: Any,
    hashes: Any,
    edges: Any,
    first: Any,
    num_tokens: Any,
    status: Any,
    matches5: Any,
    matches3: Any,
    capacity: Any,
    num_matches: Any,
    flagged5: Any,
    flagged3: Any,
    row: Any,
    row_end: Any,
    heads: Any,
    following: Any,
    shingles: Any,
) -> Any:
    """Write what documents share with prompts, and the tokens of those that share anything.

    A document's tokens are written behind those kept so far, and the next one's over them if it shares nothing: most
    do, and what is written stays in a core's own cache.

    Parameters
    ----------
    data, size, begin, end
        Bytes, how many there are, and where the documents lie in them.
    document, num_documents
        The document to begin with, for which ``first[document]`` tokens are kept already, and how many there are.
    two, three, four, buffer
        See `tokenize_document`.
    coarse, coarse_shift, seen5, seen_shift5, seen3, seen_shift3
        See `flag_shingles`.
    begins5, shift5, rows5, begins3, shift3, rows3
        Table of each size of shingle, see `search_document`.
    prompt_hashes, prompt_first, prompt_tokens, weighted, num_weighted, may_miss, min_run, stride, share
        See `search_document`.
    keep_all
        Keep the tokens of all documents if it is not 0.
    hashes, edges, first
        Out: the tokens that are kept, and the first of each document and one entry more.
    num_tokens, status
        Out: tokens of each document, and why it has none here; see `audit_fast` and `NO_ROOM`.
    matches5, matches3, capacity, num_matches
        Out: document, prompt, place and position of the matches, the room for them, and how many there are of each.
    flagged5, flagged3, row, row_end, heads, following, shingles
        Working memory: tokens at which shingles begin, as many as a document can have, and see `search_document`.

    Returns
    -------
    int
        The document that could not be finished, or `num_documents`.
    """
    prompts = (prompt_hashes, prompt_first, prompt_tokens, weighted, num_weighted, may_miss, min_run, stride)
    tables = ((begins5, shift5, rows5), (begins3, shift3, rows3))
    work = (row, row_end, heads, following, shingles)
    count = first[document]
    for d in range(document, num_documents):
        total, state = tokenize_document(data, size, begin[d], end[d], two, three, four, buffer, hashes, edges, count)
        status[d] = np.uint8(state)
        if state == READY:
            num_flagged = flag_shingles(
                *(hashes, count, total, coarse, coarse_shift, seen5, seen_shift5, seen3, seen_shift3),
                *(flagged5, flagged3, shingles),
            )
            counts = (num_matches[0], num_matches[1])
            fives, threes = _search_both(
                *(hashes, count, total, (flagged5, flagged3), num_flagged, tables, prompts, share, work),
                *(d, (matches5, matches3), counts, capacity),
            )
            if fives < 0 or threes < 0:
                status[d] = np.uint8(NO_ROOM)
                return d
            num_tokens[d] = total - count
            if keep_all != 0 or fives > num_matches[0] or threes > num_matches[1]:
                count = total
            num_matches[0] = fives
            num_matches[1] = threes
        elif state == UNKNOWN:
            return d
        first[d + 1] = count
    return num_documents
