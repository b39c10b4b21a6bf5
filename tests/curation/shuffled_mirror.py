"""The files of an origin laid out as a mirror, the rows of each in another order."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sources.origins import MirrorOrigin, Origin
from sources.registry import QUALITATIVE, REFERENCE


def shuffled_mirror(origin: Origin, root: Path, seed: int) -> MirrorOrigin:
    """Copy the qualitative sources' files; a text or XML file keeps its order."""
    generator = random.Random(seed)
    for source in (*QUALITATIVE, *REFERENCE):
        for file in origin.files(source.spec).files:
            target = root / source.spec.mirror_folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_shuffled(file.local, target, source.spec.files[file.key].format, generator)
    return MirrorOrigin(root)


def _write_shuffled(path: Path, target: Path, file_format: str, generator: random.Random) -> None:
    if file_format == "parquet":
        table = pq.read_table(path, partitioning=None)
        order = generator.sample(range(len(table)), len(table))
        pq.write_table(table.take(pa.array(order)), target)
    elif file_format == "jsonl":
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        target.write_bytes(b"\n".join(generator.sample(lines, len(lines))))
    elif file_format == "json":
        rows = json.loads(path.read_text("utf-8-sig"))
        target.write_text(json.dumps(generator.sample(rows, len(rows))))
    elif file_format == "json_dict":
        pairs = list(json.loads(path.read_text("utf-8-sig")).items())
        target.write_text(json.dumps(dict(generator.sample(pairs, len(pairs)))))
    else:
        target.write_bytes(path.read_bytes())
