"""One row of the throughput split: composed, fitted, checked and measured. Nothing is kept between rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.ids import question_id, turns_sha256
from curation.kernels.length import BodyTooShort, Fitted, HeadTailTooLong, fit_to_length
from curation.kernels.predictability import conditional_bits_per_byte, ngram_overlap
from curation.kernels.prefixes import ngram_hashes
from curation.throughput.composition import CONTINUATION_CHARS, Composer, Composition, Piece, Target, Unfit
from curation.throughput.high_entropy import Bamboo, Gutenberg, WritingBench
from curation.throughput.low_entropy import CodeCompletion, TextSort
from curation.throughput.mixed import FewShot, StackSelect
from curation.throughput.shelf import Shelf
from curation.tokenizer import Tokenizer
from sources.passages import PassageSource

COMPOSERS: Mapping[str, Composer] = {
    composer.source: composer
    for composer in (
        Bamboo(),
        Gutenberg(),
        WritingBench(),
        StackSelect(),
        FewShot(),
        CodeCompletion("long_code_arena", "#"),
        CodeCompletion("repobench_python", "#"),
        CodeCompletion("repobench_java", "//"),
        TextSort(),
    )
}
"""How each source becomes prompts, by the name of its spec."""

NGRAM_TOKENS = 8

_ROOM_FACTOR = 6
"""Code points of body gathered at first for each token: more than most text has."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a row says of its source: tier, published `source`, revision ("" while not pinned) and licence."""

    tier: str
    source: str
    revision: str
    license: str


def provenance_of(sources: Iterable[PassageSource], revisions: Mapping[str, str]) -> dict[str, Provenance]:
    """Return what the rows of each source say of it, by the name of the spec."""
    return {
        s.spec.name: Provenance(s.tier, s.spec.source, revisions.get(s.spec.name, ""), s.spec.license.id)
        for s in sources
    }


@dataclass(frozen=True, slots=True)
class Measures:
    """Predictability of what is expected after a prompt; None where nothing is known of it."""

    bits_per_byte: float | None
    ngram_overlap: float | None


@dataclass(frozen=True, slots=True)
class Built:
    """A row of `SPLIT_SCHEMA` and what the report needs of it.

    `prefix` holds the first ids, as many as two rows may share and one more; `ngrams` the hashes of its 8-grams.
    """

    row: dict[str, Any]
    prefix: tuple[int, ...]
    ngrams: NDArray[np.uint64]
    measures: Measures


@dataclass(frozen=True, slots=True)
class Refused:
    """A target that gives no row of this length: why, the figure at fault, and the row it lost to; "" if none."""

    record_id: str
    reason: str
    score: float | None = None
    against: str = ""


@dataclass(frozen=True)
class RowBuilder:
    """Builds any row alone: from the shelf, the tokenizer and the row's own names."""

    shelf: Shelf
    tokenizer: Tokenizer
    provenance: Mapping[str, Provenance]
    max_pad_tokens: int
    max_shared_prefix_tokens: int

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return len(self.tokenizer.encode_ordinary(text))

    def build(self, config: str, target: Target, num_tokens: int) -> Built | Refused:
        """Return the row of a target at a length, or why there is none."""
        try:
            return self.rebuild(config, target.source, target.src_id, num_tokens)
        except Unfit as error:
            return Refused(target.record_id, str(error), error.score)
        except HeadTailTooLong as error:
            return Refused(target.record_id, "head and tail alone are longer", error.alone_tokens)
        except BodyTooShort as error:
            return Refused(target.record_id, "the body is used up before the length", error.missing_tokens)
        except ValueError as error:  # e.g. a lone surrogate
            return Refused(target.record_id, str(error))

    def rebuild(self, config: str, source: str, src_id: str, num_tokens: int) -> Built:
        """Return one row by its source (name of the spec) and src_id.

        Raises
        ------
        ValueError
            If the record gives no row of this length.
        """
        composition = COMPOSERS[source].compose(self.shelf, src_id, num_tokens, self.count)
        fitted, used, rest = self._fit(composition, num_tokens)
        ids = self.tokenizer.encode_ordinary(fitted.text)
        if len(ids) != num_tokens:
            raise RuntimeError(f"{source}:{src_id}: fitted to {num_tokens} tokens, encodes to {len(ids)}")
        record_ids = sorted({f"{source}:{src_id}", *used})
        ngrams = ngram_hashes(ids, NGRAM_TOKENS)
        expected = rest if composition.continues else composition.answer
        return Built(
            self._row(config, source, src_id, composition, fitted, record_ids, num_tokens),
            tuple(ids[: self.max_shared_prefix_tokens + 1]),
            ngrams,
            self._measures(fitted.text, ngrams, expected),
        )

    def _fit(self, composition: Composition, num_tokens: int) -> tuple[Fitted, list[str], str]:
        """Fit the body; return also the records that it took from, and what follows the cut in its first record."""
        pieces: list[Piece] = []
        gathered, wanted, exhausted = 0, _ROOM_FACTOR * num_tokens, False
        while True:
            while gathered < wanted and not exhausted:
                piece = next(composition.pieces, None)
                exhausted = piece is None
                if piece is not None:
                    pieces.append(piece)
                    gathered += len(piece.text)
            try:
                fitted = fit_to_length(
                    self.tokenizer,
                    num_tokens,
                    head=composition.head,
                    body="".join(piece.text for piece in pieces),
                    tail=composition.tail,
                    max_pad_tokens=self.max_pad_tokens,
                )
            except BodyTooShort:
                if exhausted:
                    raise
                wanted = 2 * max(wanted, gathered)
                continue
            return fitted, *_taken(pieces, fitted, composition)

    def _row(
        self,
        config: str,
        source: str,
        src_id: str,
        composition: Composition,
        fitted: Fitted,
        record_ids: list[str],
        num_tokens: int,
    ) -> dict[str, Any]:
        provenance = self.provenance[source]
        return {
            "question_id": question_id(config, provenance.source, src_id),
            "category": provenance.tier,
            "sub_category": composition.sub_category,
            "turns": [fitted.text],
            "source": provenance.source,
            "src_id": src_id,
            "difficulty": "",
            "multiturn": False,
            "text_status": "full",
            "source_revision": provenance.revision,
            # SPDX ids become what the Hub writes and the whole column holds: the same in lower case.
            "license": composition.license.lower() or provenance.license,
            "template_id": composition.template_id,
            "record_ids": record_ids,
            "num_tokens": num_tokens,
            "pad_tokens": fitted.pad_tokens,
            "turns_sha256": turns_sha256([fitted.text]),
        }

    def _measures(self, prompt: str, ngrams: NDArray[np.uint64], expected: str) -> Measures:
        expected = expected[:CONTINUATION_CHARS]
        answer = ngram_hashes(self.tokenizer.encode_ordinary(expected), NGRAM_TOKENS)
        if not answer.size:  # a name or a number: too short to say anything
            return Measures(None, None)
        return Measures(conditional_bits_per_byte(prompt, expected), ngram_overlap(answer, ngrams))


def _taken(pieces: list[Piece], fitted: Fitted, composition: Composition) -> tuple[list[str], str]:
    """Return the records in the fitted body, and what follows the cut if it lies in the first.

    Raises
    ------
    Unfit
        If the body lost what it must keep, or goes on into the next passage.
    """
    if fitted.body_chars < composition.keep_chars:
        raise Unfit("less of its body fits than must stay whole", fitted.body_chars)
    if composition.max_body_chars and fitted.body_chars > composition.max_body_chars:
        raise Unfit("it would reach into the next passage", fitted.body_chars)
    used, start = [], 0
    for piece in pieces:
        if start < fitted.body_chars:
            used.append(piece.record_id)
        start += len(piece.text)
    return used, pieces[0].text[fitted.body_chars :][:CONTINUATION_CHARS]
