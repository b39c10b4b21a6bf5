"""Write the parquet samples of `sources/samples` from the readable JSONL beside this script.

Run it after a change to `parquet_samples/*.jsonl`; `test_parquet_samples.py` fails where the two differ.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = Path(__file__).parent / "parquet_samples"
SAMPLES = Path(__file__).parents[2] / "sources" / "samples"

_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_TESTS = pa.struct([("input", pa.list_(pa.string())), ("output", pa.list_(pa.string()))])
_SOLUTIONS = pa.struct([("language", pa.list_(pa.int64())), ("solution", pa.list_(pa.string()))])

TABLES: dict[str, tuple[str, pa.Schema]] = {
    "hle": (
        "hle/data/test-00000-of-00001.parquet",
        pa.schema(
            [
                ("id", pa.string()),
                ("question", pa.string()),
                ("image", pa.string()),
                ("image_preview", _IMAGE),
                ("answer", pa.string()),
                ("answer_type", pa.string()),
                ("author_name", pa.string()),
                ("rationale", pa.string()),
                ("rationale_image", _IMAGE),
                ("raw_subject", pa.string()),
                ("category", pa.string()),
                ("canary", pa.string()),
            ]
        ),
    ),
    "code_contests": (
        "code_contests/data/test-00000-of-00001-5a5a5a5a5a5a5a5a.parquet",
        pa.schema(
            [
                ("name", pa.string()),
                ("description", pa.string()),
                ("public_tests", _TESTS),
                ("private_tests", _TESTS),
                ("generated_tests", _TESTS),
                ("source", pa.int64()),
                ("difficulty", pa.int64()),
                ("solutions", _SOLUTIONS),
                ("incorrect_solutions", _SOLUTIONS),
                ("cf_contest_id", pa.int64()),
                ("cf_index", pa.string()),
                ("cf_points", pa.float32()),
                ("cf_rating", pa.int32()),
                ("cf_tags", pa.list_(pa.string())),
                ("is_description_translated", pa.bool_()),
                ("untranslated_description", pa.string()),
                ("time_limit", pa.struct([("seconds", pa.int64()), ("nanos", pa.int64())])),
                ("memory_limit_bytes", pa.int64()),
                ("input_file", pa.string()),
                ("output_file", pa.string()),
            ]
        ),
    ),
    "mmlu_pro": (
        "mmlu_pro/data/test-00000-of-00001.parquet",
        pa.schema(
            [
                ("question_id", pa.int64()),
                ("question", pa.string()),
                ("options", pa.list_(pa.string())),
                ("answer", pa.string()),
                ("answer_index", pa.int64()),
                ("cot_content", pa.string()),
                ("category", pa.string()),
                ("src", pa.string()),
            ]
        ),
    ),
}
"""Name of the JSONL to the parquet file and its schema: the whole schema of the source, not only what we read."""


def sample_table(name: str) -> pa.Table:
    """Return the rows of a readable sample as a table of the source's schema."""
    lines = (ROWS / f"{name}.jsonl").read_text("utf-8").splitlines()
    return pa.Table.from_pylist([json.loads(line) for line in lines], TABLES[name][1])


def main() -> None:
    """Write every parquet sample anew."""
    for name, (path, _) in TABLES.items():
        target = SAMPLES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(sample_table(name), target, row_group_size=16)


if __name__ == "__main__":
    main()
