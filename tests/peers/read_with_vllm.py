"""Run by vLLM's own interpreter: the requests that its data sets make of exported files.

One argument, a JSON list of `[data set, path, config, category]`; an empty category is all of them. Loading vLLM takes
most of the time, so one run answers for all.
"""

import json
import sys

from vllm.benchmarks.datasets.datasets import SpecBench, SpeedBench


def prompts(kind: str, path: str, config: str, category: str) -> list[str]:
    """Return the prompts that one data set samples, in the order of the file."""
    shared = {"dataset_path": path, "category": category or None, "disable_shuffle": True}
    data = SpeedBench(dataset_subset=config, **shared) if kind == "speed_bench" else SpecBench(**shared)
    return [request.prompt for request in data.sample(tokenizer=None, num_requests=-1, no_oversample=True)]


sys.stdout.write("\n" + json.dumps([prompts(*asked) for asked in json.loads(sys.argv[1])]) + "\n")
