"""Run by aiperf's own interpreter: what its composer makes of a file; `read_with_aiperf.py FILE TYPE`."""

import json
import sys

from aiperf.common import random_generator
from aiperf.config import BenchmarkConfig, BenchmarkRun
from aiperf.dataset.composer.custom import CustomDatasetComposer

config = BenchmarkConfig.model_validate(
    {
        "models": ["m"],
        "endpoint": {"urls": ["http://127.0.0.1:9/v1/chat/completions"], "wait_for_model_timeout": 0},
        "datasets": [{"name": "default", "type": "file", "path": sys.argv[1], "format": sys.argv[2]}],
        "phases": [{"name": "profiling", "type": "concurrency", "requests": 1, "concurrency": 1}],
        "runtime": {"ui": "simple"},
    }
)
random_generator.init(0)
run = BenchmarkRun(benchmark_id="peers", cfg=config, artifact_dir=config.artifacts.dir)
conversations = CustomDatasetComposer(run=run, tokenizer=None).create_dataset()
found = [
    [c.session_id, [[turn.role, "".join(s for text in turn.texts for s in text.contents)] for turn in c.turns]]
    for c in conversations
]
sys.stdout.write("\n" + json.dumps(found) + "\n")
