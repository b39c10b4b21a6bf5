"""The experiment on pruned vocabularies over a finished run: reads token counts and traces, writes its table."""

from __future__ import annotations

import json
import sysconfig
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.config import VocabularyConfig
from bench.errors import BenchError, ConfigError
from bench.experiments.vocabulary import counted, pruned, top_tokens
from bench.finished import read_measured
from bench.results import RunFolder
from bench.summary import choose_evidence
from bench.tokenizer_folder import tokenizer_folder

VOCABULARY = "vocabulary.json"
"""What a run would lose with pruned vocabularies; lies in its folder."""
STDLIB = "{stdlib}"
"""As `corpus`: the modules of Python's standard library, which are on every host and which the toy pair learnt."""
TEXTS = ("*.py", "*.txt", "*.md", "*.jsonl")
MAX_CORPUS_CHARS = 50_000_000


def write_pruned(run: Path, vocabulary: VocabularyConfig) -> list[dict[str, Any]]:
    """Write what each category of a run would lose, and return it: a row for each category and top K.

    Raises
    ------
    BenchError
        If the counts cannot be read, or the run tells no token ids.
    """
    folder = RunFolder(run)
    config, measured = read_measured(folder)
    counts = training_counts(vocabulary, config.engine.tokenizer)
    requests, _ = choose_evidence(measured, config.limits.min_coverage)
    if not any(m.answer.token_ids for m in requests):
        raise BenchError(f"{run}: the engine sent no token ids, so none can be held against a vocabulary")
    rows = [
        asdict(row) | {"cost": row.cost} for k in vocabulary.top_k for row in pruned(requests, top_tokens(counts, k), k)
    ]
    source = vocabulary.counts or vocabulary.corpus
    known = sum(count > 0 for count in counts.values())
    named = "Python's standard library" if source == STDLIB else Path(source).name
    table = {"source": named, "tokens": sum(counts.values()), "known": known, "rows": rows}
    folder.write_json(VOCABULARY, table)
    return rows


def training_counts(vocabulary: VocabularyConfig, tokenizer: str) -> dict[int, int]:
    """Return how often each id occurs in the training text.

    Parameters
    ----------
    tokenizer
        Folder of the served model, for a corpus that is text.

    Raises
    ------
    BenchError
        If a file is not there or holds something else.
    """
    source = vocabulary.counts or vocabulary.corpus
    if vocabulary.counts:
        counts = _read_counts(Path(source))
    elif source.endswith(".npy"):
        counts = counted(_load(Path(source)).ravel().tolist())
    else:
        counts = _counted_text(source, tokenizer)
    wrong = next(((token, count) for token, count in counts.items() if token < 0 or count < 0), None)
    if wrong is not None:
        raise ConfigError(f"{source}: token {wrong[0]} with count {wrong[1]}; ids and counts are 0 or more")
    if not any(counts.values()):
        raise ConfigError(f"{source}: counts no token, so no vocabulary can be made of it")
    return counts


def _read_counts(path: Path) -> dict[int, int]:
    if path.suffix == ".npy":
        values = _load(path)
        if values.ndim != 1:
            raise ConfigError(f"{path}: has shape {values.shape}; counts by id are one row")
        return dict(enumerate(values.tolist()))
    try:
        table = json.loads(path.read_text("utf-8"))
        pairs = table.items() if isinstance(table, Mapping) else enumerate(table)
        return {int(token): int(count) for token, count in pairs}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; vocabulary.counts must name JSON or .npy") from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{path}: not a table of id to count: {error}") from None


def _load(path: Path) -> NDArray[np.integer[Any]]:
    try:
        values: NDArray[np.integer[Any]] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: not an array of ids or counts: {error}") from None
    if values.dtype.kind not in "iu":
        raise ConfigError(f"{path}: holds {values.dtype}; ids and counts are integers")
    return values


@lru_cache(maxsize=4)
def _counted_text(corpus: str, folder: str) -> dict[int, int]:
    path = tokenizer_folder(folder) / "tokenizer.json"
    if not path.is_file():
        raise ConfigError(
            f"{folder or 'engine.tokenizer'}: no tokenizer.json; a corpus of text is counted in its tokens"
        )
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    counts = Counter[int]()
    for text in _texts(corpus):
        counts.update(tokenizer.encode(text, add_special_tokens=False).ids)
    if not counts:
        raise ConfigError(f"{corpus}: holds no text in {', '.join(TEXTS)}")
    return dict(counts)


def _texts(corpus: str) -> Iterable[str]:
    root = Path(sysconfig.get_paths()["stdlib"]) if corpus == STDLIB else Path(corpus)
    if root.is_file():
        files = [root]
    elif corpus == STDLIB:
        files = sorted(root.glob("*.py"))
    else:
        files = sorted(path for pattern in TEXTS for path in root.rglob(pattern))
    left = MAX_CORPUS_CHARS
    for path in files:
        text = path.read_text("utf-8", errors="replace")[:left]
        left -= len(text)
        if text:
            yield text
        if left <= 0:
            raise ConfigError(
                f"{corpus}: more than {MAX_CORPUS_CHARS:,} characters; count it elsewhere and give counts"
            )
