"""The parquet samples hold exactly the readable rows beside this file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).with_name("make_parquet_samples.py")


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_parquet_samples", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["code_contests", "hle", "mmlu_pro"])
def test_the_parquet_file_holds_the_readable_rows(name: str) -> None:
    script = _script()
    path, schema = script.TABLES[name]
    table = pq.read_table(script.SAMPLES / path)
    assert table.schema.equals(schema)
    assert table.equals(script.sample_table(name)), f"run {SCRIPT.name}"
