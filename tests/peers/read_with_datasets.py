"""Read a DIST, and files of one schema in an order, with whatever `datasets` is installed; print what was read as JSON.

Arguments: a folder for its cache, then either `dist FOLDER CONFIG...` or `files PATH...`.
"""

from __future__ import annotations

import json
import sys

import datasets
from datasets import load_dataset

cache, kind, *rest = sys.argv[1:]
if kind == "dist":
    folder, *configs = rest
    found = {config: load_dataset(folder, config, split="test", cache_dir=cache) for config in configs}
else:
    found = {"files": load_dataset("parquet", data_files=rest, split="train", cache_dir=cache)}
read = {name: {"rows": data.to_list(), "columns": data.column_names} for name, data in found.items()}
sys.stdout.write("\n" + json.dumps({"version": datasets.__version__, "read": read}) + "\n")
