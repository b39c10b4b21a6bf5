"""What each published column means, in the words of the card."""

from __future__ import annotations

MEANINGS = {
    "question_id": "first 32 hex digits of the SHA-256 of config, source and src_id; the same in every release",
    "category": "category of the qualitative configs, entropy tier of the throughput configs, Spec-Bench's own name",
    "sub_category": 'e.g. subject, language pair or task; "" if none',
    "turns": "the user turns; in a placeholder row as many copies of the sentinel as there are turns",
    "source": "Hub id or URL of the source",
    "src_id": "the record's id in its source; where there is none, 16 hex digits of its digest",
    "difficulty": 'easy, medium or hard as the source says it, or ""',
    "multiturn": "more than one turn",
    "text_status": "full or placeholder",
    "source_revision": "the pinned revision that the record was read from",
    "license": "licence of the source, or of the repository where code comes from many",
    "template_id": 'which of our instructions wraps the record, with its version; "" if none',
    "record_ids": "all records that made the row",
    "num_tokens": "tokens of the real text over all turns, in placeholder rows too",
    "pad_tokens": "how many of them are padding",
    "turns_sha256": "SHA-256 of the compact JSON of the real turns, in UTF-8",
}
"""Column -> meaning; the first eight columns are SPEED-Bench's."""
