"""Whether two rows of the benchmark hold the same prompt."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.load import config_files
from curation.schema import SPLIT_SCHEMA
from curation.verify.base import Fault, Subject

logger = logging.getLogger(__name__)

_REMEDY = "see `speedbench audit self`, and drop one of them"


def check_self_audit(subject: Subject) -> Iterator[Fault]:
    """Find rows of one config, or of unrelated configs, that hold the same prompt; on the full texts where they are.

    What `spec_bench` has in common with another config is no fault; `speedbench audit self` lists it.
    """
    from curation.audit.self_check import check_self

    folder = subject.full or subject.folder
    audited, left_out = _by_size(folder)
    if left_out:
        logger.warning("self audit: %s: too large to compare row by row, left out as in the card", ", ".join(left_out))
    for pair in check_self(folder, configs=audited).faults:
        other = f"{pair.other_config} {pair.other_question_id}"
        message = f"{pair.reason} ({pair.kind}, {pair.score:.2f}): {other}"
        yield Fault("self audit", f"data/{pair.config}.parquet", f"row ({pair.question_id})", message, _REMEDY)


def _by_size(folder: Path) -> tuple[list[str], list[str]]:
    """Return the configs that are small enough to be compared, and the others, by the tokens that they state."""
    from curation.card_facts import MAX_AUDITED_TOKENS

    small: list[str] = []
    large: list[str] = []
    for config, paths in config_files(folder).items():
        stated = sum(pc.sum(pq.read_table(path, columns=["num_tokens"]).column(0)).as_py() or 0 for path in paths)
        (small if stated <= MAX_AUDITED_TOKENS else large).append(config)
    return small, large


def unreadable(subject: Subject) -> str:
    """Say why the rows are not compared with one another."""
    if not subject.is_ours:
        return "the rows have not our columns"
    odd = sorted(name for name in subject.configs if subject.schemas.get(name) != SPLIT_SCHEMA)
    return f"{odd[0]} has not our columns" if odd else ""
