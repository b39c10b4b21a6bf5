"""Rows of a benchmark that hold the same prompt: within a config a fault, across configs by construction or a fault."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.kernels.audit_index import build_index
from curation.kernels.audit_overlap import find_overlaps
from curation.kernels.audit_rules import CONTAMINATED
from curation.kernels.near import greedy_duplicates
from curation.kernels.shingles import ShingleSets, shingle_sets
from curation.kernels.text import exact_key, normalize_text
from curation.kernels.tokens import tokenize
from curation.load import config_files, is_placeholder, read_manifest, resolve_dist
from curation.recipe import DedupConfig
from curation.stages.matching import near_index

_PARAGRAPH = re.compile(r"\n\s*\n")
_MIN_CUT_CHARS = 40  # a shorter beginning, such as "A.", says nothing of where its paragraph comes from
_NESTED = re.compile(r"_(?:\d+k?|sampled)$")

FAULT, CONTAINED, BY_CONSTRUCTION = "fault", "contained", "by construction"


@dataclass(frozen=True, slots=True)
class RowPair:
    """Two rows that share text.

    Attributes
    ----------
    verdict
        `fault`, `contained` (one row's text is in the other of the same config; listed only) or `by construction`.
    kind
        `exact`, `format` or `near`.
    config, question_id, other_config, other_question_id
        The two rows.
    score
        Jaccard similarity of a near pair of one config, else the coverage of the first row's text.
    reason
        Why the verdict.
    """

    verdict: str
    kind: str
    config: str
    question_id: str
    other_config: str
    other_question_id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """All pairs, rows compared and rows left out by config, and what near means."""

    pairs: tuple[RowPair, ...]
    rows: dict[str, int]
    placeholders: dict[str, int]
    jaccard_threshold: float
    threshold_from: str
    own_text_from: str

    @property
    def faults(self) -> tuple[RowPair, ...]:
        """The pairs that a release must not have."""
        return tuple(pair for pair in self.pairs if pair.verdict == FAULT)


@dataclass(frozen=True, slots=True)
class _Row:
    config: str
    question_id: str
    text: str
    records: frozenset[str]
    category: str


def check_self(
    dist: str | Path, *, configs: Sequence[str] | None = None, dedup: DedupConfig | None = None
) -> SelfCheck:
    """Compare the rows of a DIST with one another.

    Within a config two rows must not hold the same text: equal, equal but for form, or near by the Jaccard threshold of
    the recipe. What is compared is the records' own text, from the pool beside the DIST; without a pool the turns,
    less paragraphs that other rows hold, too (demonstrations, contexts). Across configs two rows may share text where
    one config is a part of the other, or both rows come from one record.

    Parameters
    ----------
    dist
        A folder, or ORG/NAME@REV on the Hub.
    configs
        Compare the rows of these alone; by default of all.
    dedup
        What near means, where the manifest is not written yet.
    """
    folder = resolve_dist(dist)
    dedup, origin = (dedup, "recipe") if dedup else _dedup_config(read_manifest(folder) or {})
    own = _pool_texts(folder)
    rows: list[_Row] = []
    hidden: Counter[str] = Counter()
    for config, row in _rows(folder, configs):
        if is_placeholder(row["turns"]):
            hidden[config] += 1
            continue
        rows.append(_row(config, row))
    pairs = [pair for config in sorted({r.config for r in rows}) for pair in _within(_of(rows, config), own, dedup)]
    pairs += _contained(rows, own, {(p.config, *sorted((p.question_id, p.other_question_id))) for p in pairs})
    return SelfCheck(
        tuple(sorted(pairs, key=lambda p: (p.verdict, p.config, p.question_id, p.other_config, p.other_question_id))),
        dict(sorted(Counter(r.config for r in rows).items())),
        dict(sorted(hidden.items())),
        dedup.jaccard_threshold,
        origin,
        "pool" if own else "turns without shared paragraphs",
    )


def as_document(result: SelfCheck) -> dict[str, Any]:
    """Return a check as plain values."""
    return asdict(result) | {"faults": len(result.faults)}


def as_text(result: SelfCheck) -> str:
    """Return a check as a tab-separated table, and what was compared."""
    head = "verdict\tkind\tconfig\tquestion_id\tother_config\tother_question_id\tscore\treason"
    lines = [
        f"{p.verdict}\t{p.kind}\t{p.config}\t{p.question_id}\t{p.other_config}\t{p.other_question_id}\t"
        f"{p.score:.3f}\t{p.reason}"
        for p in result.pairs
    ]
    return "\n".join([head, *lines])


def _dedup_config(manifest: dict[str, Any]) -> tuple[DedupConfig, str]:
    recipe = manifest.get("recipe")
    if isinstance(recipe, dict) and isinstance(recipe.get("dedup"), dict):
        return DedupConfig.model_validate(recipe["dedup"]), "manifest.json"
    return DedupConfig(), "default of the recipe"


def _rows(folder: Path, configs: Sequence[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    wanted = config_files(folder)
    for config, files in sorted((c, f) for c, f in wanted.items() if configs is None or c in configs):
        for path in files:
            for row in pq.read_table(path, partitioning=None).to_pylist():
                yield config, row


def _row(config: str, row: dict[str, Any]) -> _Row:
    source = f"{row.get('source') or ''}\x1f{row.get('src_id') or row['question_id']}"
    records = frozenset([source, *(row.get("record_ids") or ())])
    return _Row(config, str(row["question_id"]), "\n\n".join(row["turns"]), records, row.get("category") or "")


def _of(rows: Sequence[_Row], config: str) -> list[_Row]:
    return [row for row in rows if row.config == config]


def _pool_texts(folder: Path) -> dict[frozenset[str], str]:
    """Own text of each record set of the pool beside a build's folder; empty where there is none."""
    texts: dict[frozenset[str], str] = {}
    for path in sorted((folder.parent / "pool").glob("*.parquet")) if folder.name in ("dist", "full") else ():
        schema = pq.read_schema(path)
        if {"record_ids", "text"} <= set(schema.names) and pa.types.is_string(schema.field("text").type):
            for row in pq.read_table(path, columns=["record_ids", "text"]).to_pylist():
                texts[frozenset(row["record_ids"])] = row["text"]
    return texts


def _own_texts(rows: Sequence[_Row], pool: dict[frozenset[str], str]) -> list[str]:
    paragraphs = [list(dict.fromkeys(p.strip() for p in _PARAGRAPH.split(row.text) if p.strip())) for row in rows]
    keys = [[exact_key(p) for p in parts] for parts in paragraphs]
    shared = _shared_keys(keys)
    texts = []
    for row, parts, their_keys in zip(rows, paragraphs, keys, strict=True):
        own = pool.get(row.records - {next(iter(r for r in row.records if "\x1f" in r), "")})
        unshared = (part for part, key in zip(parts, their_keys, strict=True) if key not in shared)
        texts.append(own if own is not None else "\n\n".join(unshared))
    return texts


def _shared_keys(keys: Sequence[Sequence[str]]) -> frozenset[str]:
    """Return the paragraphs of more than one row, and those that begin as another does because a length cut them.

    A context or demonstration that is cut to fill two rows to their lengths ends elsewhere in each; a row of a single
    paragraph is no context. Sorted, a paragraph stands before all that begin with it.
    """
    count = Counter(key for parts in keys for key in parts)
    shared = {key for key, rows in count.items() if rows > 1}
    begun: list[str] = []
    for key in sorted({key for parts in keys if len(parts) > 1 for key in parts}):
        while begun and not key.startswith(begun[-1]):
            begun.pop()
        if begun:
            shared.update((key, begun[-1]))
        if len(key) >= _MIN_CUT_CHARS:
            begun.append(key)
    return frozenset(shared)


def _within(rows: Sequence[_Row], pool: dict[frozenset[str], str], dedup: DedupConfig) -> list[RowPair]:
    """Pairs of one config that are the same prompt."""
    whole = shingle_sets([normalize_text(row.text) for row in rows], dedup.ngram_size)
    pairs = {(b, a): _pair(rows[b], rows[a], kind, 1.0) for a, b, kind in _equal(rows, whole)}
    sets = shingle_sets([normalize_text(text) for text in _own_texts(rows, pool)], dedup.ngram_size)
    near = greedy_duplicates(near_index(sets, dedup))
    for item, keeper, score in zip(near.items.tolist(), near.keepers.tolist(), near.scores.tolist(), strict=True):
        pairs.setdefault((item, keeper), _pair(rows[item], rows[keeper], "near", float(score)))
    return list(pairs.values())


def _equal(rows: Sequence[_Row], sets: ShingleSets) -> Iterator[tuple[int, int, str]]:
    """Yield first row, later row and kind of each pair with equal tokens; each row against the first of its like."""
    first: dict[int, int] = {}
    for i, sequence in enumerate(sets.sequences.tolist()):
        if not sequence:
            continue
        k = first.setdefault(sequence, i)
        if k != i and tokenize(normalize_text(rows[k].text)) == tokenize(normalize_text(rows[i].text)):
            same = exact_key(normalize_text(rows[k].text)) == exact_key(normalize_text(rows[i].text))
            yield k, i, "exact" if same else "format"


def _pair(row: _Row, other: _Row, kind: str, score: float) -> RowPair:
    reason = "two rows of one config hold the same prompt"
    return RowPair(FAULT, kind, row.config, row.question_id, other.config, other.question_id, score, reason)


def _contained(rows: Sequence[_Row], pool: dict[frozenset[str], str], known: set[tuple[str, ...]]) -> list[RowPair]:
    """Pairs in which the own text of one row is in another row: of one config, and across configs."""
    configs = dict.fromkeys(row.config for row in rows)
    texts = [text for config in configs for text in _own_texts(_of(rows, config), pool)]
    rows = [row for config in configs for row in _of(rows, config)]
    groups: dict[str, int] = {}
    index = build_index(texts, [groups.setdefault(exact_key(text), len(groups)) for text in texts])
    pairs: dict[tuple[str, ...], RowPair] = {}
    for hit in find_overlaps([row.text for row in rows], index):
        row, other = rows[hit.prompt], rows[hit.document]
        if hit.prompt == hit.document or hit.kind not in CONTAMINATED:
            continue
        if row.config == other.config:
            if (row.config, *sorted((row.question_id, other.question_id))) in known:
                continue
            verdict, reason = CONTAINED, "one row's text is a part of the other's"
        else:
            verdict, reason = _across(row, other)
        key = tuple(sorted((f"{row.config}/{row.question_id}", f"{other.config}/{other.question_id}")))
        ids = (row.config, row.question_id, other.config, other.question_id)
        pairs.setdefault(key, RowPair(verdict, hit.kind, *ids, round(hit.coverage, 6), reason))
    return list(pairs.values())


def _across(row: _Row, other: _Row) -> tuple[str, str]:
    if row.records & other.records:
        return BY_CONSTRUCTION, "both rows come from one record"
    if _NESTED.sub("", row.config) == _NESTED.sub("", other.config):
        return BY_CONSTRUCTION, "one config is a part of the other"
    if "spec_bench" in (row.config, other.config):
        # It is published whole, for regression: qa is its qa, and its articles are of a source that we choose from.
        return BY_CONSTRUCTION, "Spec-Bench is kept whole and shares sources with our categories"
    return FAULT, "rows of two configs hold the same prompt and share no record"
