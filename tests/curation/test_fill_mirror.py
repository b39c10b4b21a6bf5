"""Real records that are given by reference are filled from the mirror, both splits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.fill.fill import fill_dist
from curation.load import read_config
from curation.reading import OpenSource, read_passages
from curation.recipe import Recipe
from curation.schema import SPLIT_SCHEMA
from curation.throughput.build import build_throughput
from curation.throughput.rows import provenance_of
from sources.origins import MirrorOrigin, resolve
from sources.registry import QUALITATIVE, THROUGHPUT
from tests.curation.test_fill import rows_of, write_dist

RECIPE = Recipe.model_validate({"name": "small", "throughput": {"buckets": [8000], "rows_per_cell": 3}})


@pytest.mark.mirror
def test_rows_of_the_mirror_are_filled_from_the_mirror(mirror: Path, tmp_path: Path) -> None:
    origin = MirrorOrigin(mirror)
    held = [source.spec.name for source in QUALITATIVE if not source.spec.may_publish]
    qualitative = pa.concat_tables([rows_of(name, origin).slice(0, 40) for name in held])
    fitted: list[Mapping[str, Any]] = []
    build_throughput(
        read_passages([OpenSource(s, resolve(origin, s.spec, allow_short=True)) for s in THROUGHPUT], []),
        provenance_of(THROUGHPUT, {}),
        RECIPE,
        lambda _, rows: fitted.extend(rows),
        folder=tmp_path,
        allow_short=True,
    )
    throughput = pa.Table.from_pylist(fitted, schema=SPLIT_SCHEMA)
    dist = write_dist(tmp_path / "dist", qualitative=qualitative, throughput_8k=throughput)
    report = fill_dist(dist, tmp_path / "filled", origin, recipe=RECIPE)
    assert report.wanted > 100
    assert (report.verified, report.problems) == (report.wanted, ())
    assert read_config(tmp_path / "filled", "qualitative").equals(qualitative)
    assert read_config(tmp_path / "filled", "throughput_8k").equals(throughput)
