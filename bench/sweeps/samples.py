"""The rows that ship: what an experiment sends where no others are named. Builds them on first use."""

from __future__ import annotations

import hashlib
import logging

from bench.config import BenchConfig
from bench.errors import BenchError
from bench.recipes.shipped import find_recipe, recipe_engine
from bench.tokenizer_folder import tokenizer_folder
from sources.cache_root import cache_root

logger = logging.getLogger(__name__)

SAMPLES = "samples"
"""As `data.path`: the rows of the demo, their lengths exact in the served model's tokens."""


def with_samples(config: BenchConfig) -> BenchConfig:
    """Return a sweep over the rows that ship, if `data.path` asks for them.

    Raises
    ------
    BenchError
        If no tokenizer says how long the rows are to be.
    """
    if config.data.path != SAMPLES:
        return config
    from bench.demo.rows import demo_rows

    tokenizer = tokenizer_folder(_tokenizer(config)) / "tokenizer.json"
    if not tokenizer.is_file():
        raise BenchError(f"{tokenizer}: not there; sample rows are cut by it: name a served model's folder, or --data")
    name = hashlib.sha256(tokenizer.read_bytes()).hexdigest()[:12]
    logger.info("rows: the samples, their lengths in the tokens of %s; the first time takes a minute", tokenizer.parent)
    rows = demo_rows(tokenizer, cache_root() / "sample-rows" / name)
    return config.model_copy(update={"data": config.data.model_copy(update={"path": str(rows)})})


def _tokenizer(config: BenchConfig) -> str:
    servers = config.sweep.servers if config.sweep else ()
    if servers and servers[0].recipe:
        return recipe_engine(find_recipe(servers[0].recipe), url_port=0, paths=servers[0].paths).tokenizer
    return config.engine.tokenizer
