"""What is compiled to machine code: two functions of C types (see `curation.audit.machine_code`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from curation.kernels.audit_fast import READY, tokenize_document
from curation.kernels.audit_fast_filter import flag_shingles
from curation.kernels.audit_fast_search import search_flagged

_P: Any = types.CPointer
_BYTES, _SHORTS, _CODES, _WORDS = _P(types.uint8), _P(types.uint16), _P(types.uint32), _P(types.uint64)
_PLACES, _INTS = _P(types.int32), _P(types.int64)
_INT, _WORD = types.int64, types.uint64

SIGNATURES = {
    "scan_documents": _INT(
        *(_BYTES, _INT, _INTS, _INTS, _INT, _SHORTS, _CODES, _CODES, _BYTES, *[_WORDS, _WORD] * 3),
        *(_WORDS, _PLACES, _INTS, _BYTES, _PLACES, _PLACES, _INTS, _WORDS),
    ),
    "search_shingles": _INT(
        *(_WORDS, _INTS, _INT, _PLACES, _INT, _PLACES, _WORD, _WORDS, _PLACES, _PLACES),
        *(_WORDS, *[_INTS] * 6, types.float64, _BYTES, _PLACES, _PLACES, _INTS, _INT, _WORDS),
    ),
}
"""The functions of this module, and their types for numba."""


def scan_documents(
    data: Any,
    size: Any,
    begin: Any,
    end: Any,
    num_documents: Any,
    two: Any,
    three: Any,
    four: Any,
    buffer: Any,
    coarse: Any,
    coarse_shift: Any,
    seen5: Any,
    shift5: Any,
    seen3: Any,
    shift3: Any,
    hashes: Any,
    edges: Any,
    first: Any,
    status: Any,
    flagged5: Any,
    flagged3: Any,
    num_flagged: Any,
    shingles: Any,
) -> Any:
    """Write the tokens of documents, and where shingles of 5 and of 3 tokens stand that a prompt may hold.

    Parameters
    ----------
    data, size
        Bytes and how many there are.
    begin, end, num_documents
        Where the documents lie in them.
    two, three, four, buffer
        See `tokenize_document`.
    coarse, coarse_shift, seen5, shift5, seen3, shift3, shingles
        See `flag_shingles`.
    hashes, edges, first
        Out: the tokens, behind ``first[0]`` others, and the first of each document and one entry more.
    status
        Out: why a document has no tokens here; see `audit_fast`.
    flagged5, flagged3, num_flagged
        Out: tokens at which these shingles begin, and how many there are of each.

    Returns
    -------
    int
        Number of tokens, those before included.
    """
    count = first[0]
    five = 0
    three_tokens = 0
    for d in range(num_documents):
        total, state = tokenize_document(data, size, begin[d], end[d], two, three, four, buffer, hashes, edges, count)
        status[d] = np.uint8(state)
        if state == READY:
            five, three_tokens = flag_shingles(
                *(hashes, count, total, coarse, coarse_shift, seen5, shift5, seen3, shift3),
                *(flagged5, flagged3, five, three_tokens, shingles),
            )
            count = total
        first[d + 1] = count
    num_flagged[0] = five
    num_flagged[1] = three_tokens
    return count


def search_shingles(
    hashes: Any,
    first: Any,
    size: Any,
    places: Any,
    num_places: Any,
    begins: Any,
    shift: Any,
    rows: Any,
    row: Any,
    end: Any,
    prompt_hashes: Any,
    prompt_first: Any,
    num_tokens: Any,
    num_weighted: Any,
    may_miss: Any,
    min_run: Any,
    stride: Any,
    share: Any,
    weighted: Any,
    heads: Any,
    following: Any,
    out: Any,
    capacity: Any,
    shingles: Any,
) -> Any:
    """Write the matches of flagged shingles: see `audit_fast_search.search_flagged`."""
    return search_flagged(
        hashes,
        first,
        size,
        places,
        num_places,
        begins,
        shift,
        rows,
        row,
        end,
        prompt_hashes,
        prompt_first,
        num_tokens,
        num_weighted,
        may_miss,
        min_run,
        stride,
        share,
        weighted,
        heads,
        following,
        out,
        capacity,
        shingles,
    )
