"""Whether two rows of the benchmark hold the same prompt."""

from __future__ import annotations

from collections.abc import Iterator

from curation.schema import SPLIT_SCHEMA
from curation.verify.base import Fault, Subject
from curation.verify.rows import SPEC_BENCH

_REMEDY = "see `speedbench audit self`, and drop one of them"


def check_self_audit(subject: Subject) -> Iterator[Fault]:
    """Find rows of one config, or of unrelated configs, that hold the same prompt; on the full texts where they are.

    What `spec_bench` has in common with another config is no fault; `speedbench audit self` lists it.
    """
    from curation.audit.self_check import check_self

    for pair in check_self(subject.full or subject.folder).faults:
        if pair.config != pair.other_config and SPEC_BENCH in (pair.config, pair.other_config):
            continue  # kept whole for regression: it shares sources with our own categories, articles and all
        other = f"{pair.other_config} {pair.other_question_id}"
        message = f"{pair.reason} ({pair.kind}, {pair.score:.2f}): {other}"
        yield Fault("self audit", f"data/{pair.config}.parquet", f"row ({pair.question_id})", message, _REMEDY)


def unreadable(subject: Subject) -> str:
    """Say why the rows are not compared with one another."""
    if not subject.is_ours:
        return "the rows have not our columns"
    odd = sorted(name for name in subject.configs if subject.schemas.get(name) != SPLIT_SCHEMA)
    return f"{odd[0]} has not our columns" if odd else ""
