"""The card's facts of configs and sources, read back from the files of `dist/`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cards.facts import ConfigFacts, Counts, GroupFacts, LengthFacts, SourceFacts
from curation.rows import source_names
from curation.schema import SPLIT_SCHEMA
from sources.base import DIFFICULTIES, SourceSpec
from sources.disk import file_sha256

_CARD_TYPES = {pa.string(): "string", pa.bool_(): "bool", pa.int32(): "int32"}
_SMALL = ["category", "difficulty", "multiturn", "text_status", "num_tokens", "record_ids"]
_EXAMPLE_CHARS = 40


def config_facts(
    dist: Path, configs: Sequence[str], languages: Mapping[str, str] | None = None
) -> tuple[ConfigFacts, ...]:
    """Return the facts of each config.

    Parameters
    ----------
    dist
        The folder.
    configs
        Their names, in the order of the card.
    languages
        record_id -> declared language of the records of the pool; rows of no such record count under "".
    """
    return tuple(_config_facts(dist, config, languages or {}) for config in configs)


def _config_facts(dist: Path, config: str, languages: Mapping[str, str]) -> ConfigFacts:
    path = dist / f"data/{config}.parquet"
    num_bytes = 0
    example: tuple[str, ...] = ()
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=1_024):
            num_bytes += batch.nbytes
            example = example or _example(batch)
    rows = pq.read_table(path, columns=_SMALL, partitioning=None).to_pylist()
    return ConfigFacts(
        name=config,
        path=f"data/{config}.parquet",
        num_rows=len(rows),
        num_placeholders=_placeholders(rows),
        num_bytes=num_bytes,
        download_bytes=path.stat().st_size,
        sha256=file_sha256(path),
        columns=tuple((each.name, _card_type(each.type)) for each in SPLIT_SCHEMA),
        examples=example,
        tokens=length_facts([row["num_tokens"] for row in rows]),
        categories=_groups(rows, languages),
    )


def _card_type(kind: pa.DataType) -> str:
    return f"list:{_CARD_TYPES[kind.value_type]}" if pa.types.is_list(kind) else _CARD_TYPES[kind]


def _example(batch: pa.RecordBatch) -> tuple[str, ...]:
    status = batch.column("text_status").to_pylist()
    if "full" not in status:
        return ()
    (row,) = batch.slice(status.index("full"), 1).to_pylist()
    return tuple(_cut(json.dumps(row[name], ensure_ascii=False)) for name in SPLIT_SCHEMA.names)


def _cut(text: str) -> str:
    return text if len(text) <= _EXAMPLE_CHARS else text[: _EXAMPLE_CHARS - 1] + "…"


def _placeholders(rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(row["text_status"] == "placeholder" for row in rows)


def _groups(rows: Sequence[Mapping[str, Any]], languages: Mapping[str, str]) -> tuple[GroupFacts, ...]:
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["category"]].append(row)
    return tuple(_group(name, groups[name], languages) for name in sorted(groups))


def _group(name: str, rows: Sequence[Mapping[str, Any]], languages: Mapping[str, str]) -> GroupFacts:
    difficulties = Counter(row["difficulty"] for row in rows)
    spoken = Counter(languages.get(row["record_ids"][0], "") for row in rows)
    return GroupFacts(
        name=name,
        num_rows=len(rows),
        num_placeholders=_placeholders(rows),
        num_multiturn=sum(row["multiturn"] for row in rows),
        tokens=length_facts([row["num_tokens"] for row in rows]),
        difficulties=tuple((name, difficulties[name]) for name in DIFFICULTIES if difficulties[name]),
        languages=_by_count(spoken),
    )


def _by_count(counts: Mapping[str, int]) -> Counts:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def length_facts(num_tokens: Sequence[int]) -> LengthFacts:
    """Return the quartiles and the mean of lengths.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not num_tokens:
        raise ValueError("lengths of no rows have no quartiles")
    lower, middle, upper = (float(q) for q in np.percentile(num_tokens, (25, 50, 75)))
    return LengthFacts(min(num_tokens), lower, middle, upper, max(num_tokens), sum(num_tokens) / len(num_tokens))


def source_facts(
    dist: Path, configs: Sequence[str], specs: Mapping[str, SourceSpec], revisions: Mapping[str, str]
) -> tuple[SourceFacts, ...]:
    """Return the facts of each source that made a row of any config, by its name."""
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    held: Counter[str] = Counter()
    for config in configs:
        columns = ["record_ids", "text_status"]
        for row in pq.read_table(dist / f"data/{config}.parquet", columns=columns, partitioning=None).to_pylist():
            for name in source_names(row["record_ids"]):
                rows[name][config] += 1
                held[name] += row["text_status"] == "placeholder"
    return tuple(
        _source_facts(specs[name], revisions[name], tuple((c, rows[name][c]) for c in configs if c in rows[name]), held)
        for name in sorted(rows)
    )


def _source_facts(spec: SourceSpec, revision: str, configs: Counts, held: Mapping[str, int]) -> SourceFacts:
    return SourceFacts(
        name=spec.name,
        title=spec.title,
        source=spec.source,
        url=f"https://huggingface.co/datasets/{spec.repo}" if spec.host == "hub" else spec.source,
        hub_id=spec.repo if spec.host == "hub" else "",
        revision=revision,
        license=spec.license.id,
        license_title=spec.license.title,
        license_url=spec.license.url,
        spdx=spec.license.spdx,
        published=spec.may_publish,
        publish_reason=spec.publish_reason,
        num_rows=sum(n for _, n in configs),
        num_placeholders=held[spec.name],
        configs=configs,
        citation=spec.citation,
    )
