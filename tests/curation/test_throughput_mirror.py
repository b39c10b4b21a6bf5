"""The builder on real records: every cell that the mirror can feed, exact after a round trip through parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.reading import OpenSource, read_passages
from curation.recipe import ThroughputConfig, load_recipe
from curation.schema import SPLIT_SCHEMA
from curation.throughput.build import build_throughput, row_builder
from curation.throughput.composition import Piece
from curation.throughput.rows import COMPOSERS, provenance_of
from curation.throughput.shelf import Shelf
from curation.tokenizer import load_tokenizer
from sources.base import TIERS
from sources.origins import MirrorOrigin
from sources.registry import THROUGHPUT

RECIPE = load_recipe("v1-offline").model_copy(update={"throughput": ThroughputConfig(rows_per_cell=12)})


@pytest.fixture(scope="module")
def opened(mirror: Path) -> list[Any]:
    return [OpenSource(s, MirrorOrigin(mirror).files(s.spec)) for s in THROUGHPUT]


@pytest.mark.mirror
@pytest.mark.slow
def test_real_rows_are_exact_and_whole(opened: list[Any], tmp_path: Path) -> None:
    files: dict[str, list[pa.Table]] = {}

    def sink(config: str, rows: Any) -> None:
        files.setdefault(config, []).append(pa.Table.from_pylist(list(rows), SPLIT_SCHEMA))

    facts = provenance_of(THROUGHPUT, {})
    report = build_throughput(read_passages(opened, []), facts, RECIPE, sink, folder=tmp_path, allow_short=True)
    found = {(c.config, c.tier): c.found for c in report.cells}
    for config in ("throughput_1k", "throughput_2k"):
        assert [found[config, tier] for tier in TIERS] == [12, 12, 12]
    assert min(found.values()) > 0, found

    shelf = Shelf.write(tmp_path / "passages", read_passages(opened, []))
    tokenizer = load_tokenizer(RECIPE.tokenizer)
    builder = row_builder(shelf, facts, RECIPE, tokenizer)
    for config, tables in files.items():
        path = tmp_path / f"{config}.parquet"
        pq.write_table(pa.concat_tables(tables), path)
        for row in pq.read_table(path).to_pylist():
            text, name = row["turns"][0], row["record_ids"][0].partition(":")[0]
            assert len(tokenizer.encode_ordinary(text)) == row["num_tokens"]
            composition = COMPOSERS[name].compose(shelf, row["src_id"], row["num_tokens"], builder.count)
            assert text.startswith(composition.head)
            assert text.endswith(composition.tail)
            assert text.count("\ufffd") <= _given(composition.head, composition.tail, composition.pieces, len(text))
    assert all(s.longest_prefix is not None and s.longest_prefix < 64 for s in report.shared)


def _given(head: str, tail: str, pieces: Any, most: int) -> int:
    """Count the replacement characters of the sources, as far as a text of this length can hold them."""
    total, chars = (head + tail).count("\ufffd"), 0
    for piece in pieces:
        assert isinstance(piece, Piece)
        total += piece.text.count("\ufffd")
        chars += len(piece.text)
        if chars > most:
            break
    return total
