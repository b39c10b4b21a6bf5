"""The oldest `datasets` that must read a release, 3.6.0 in its own environment, reads the same rows as the newest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.store import write_table
from tests.peers.conftest import python_of, run_there
from tests.release.tiny_build import CONFIGS, tiny_build

pytestmark = [pytest.mark.peers, pytest.mark.slow]

SHARD_SCHEMA = pa.schema([("question_id", pa.string()), ("note", pa.string()), ("level", pa.int64())])
SHARDS = [
    [{"question_id": f"a{i}", "note": None, "level": None} for i in range(3)],
    [{"question_id": f"b{i}", "note": "seen", "level": 2} for i in range(3)],
]


@pytest.fixture(scope="module", params=["3.6.0", "installed"])
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Read with one of the two versions."""
    python = python_of("datasets36") if request.param == "3.6.0" else Path(sys.executable)
    cache = tmp_path_factory.mktemp("cache")

    def run(*arguments: str) -> dict[str, Any]:
        said = run_there(python, "read_with_datasets.py", str(cache), *arguments)
        assert request.param in ("installed", said["version"])
        return said["read"]

    return run


def test_every_config_of_a_dist_reads_as_it_was_written(read: Any, tmp_path: Path) -> None:
    dist = tiny_build(tmp_path)
    found = read("dist", str(dist), *CONFIGS)
    for config in CONFIGS:
        table = pq.read_table(dist / "data" / f"{config}.parquet")
        assert found[config]["columns"] == table.column_names
        assert found[config]["rows"] == table.to_pylist()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_files_of_one_schema_read_in_either_order_though_a_column_is_empty_in_one(
    read: Any, tmp_path: Path, order: tuple[int, int]
) -> None:
    paths = [tmp_path / f"shard{i}.parquet" for i in (0, 1)]
    for path, rows in zip(paths, SHARDS, strict=True):
        write_table(path, pa.Table.from_pylist(rows, schema=SHARD_SCHEMA))
    found = read("files", *(str(paths[i]) for i in order))["files"]["rows"]
    assert found == [row for i in order for row in SHARDS[i]]
    assert all(row["level"] is None or type(row["level"]) is int for row in found)
