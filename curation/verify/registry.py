"""All checks, one line each, and the pass that makes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from curation.verify.base import Check, Fault, Subject, open_subject, our_rows_only, whole_build_only
from curation.verify.build import check_counts, check_full, check_lengths, check_sources, unknown_tokenizer
from curation.verify.card import check_card
from curation.verify.columns import check_parquet
from curation.verify.files import check_digests, check_layout
from curation.verify.rows import check_ids, check_texts, check_values
from curation.verify.self_audit import check_self_audit, unreadable

logger = logging.getLogger(__name__)

CHECKS: tuple[Check, ...] = (
    Check("files", check_layout),
    Check("digests", check_digests),
    Check("parquet", check_parquet),
    Check("ids", check_ids),
    Check("values", check_values, our_rows_only),
    Check("texts", check_texts, our_rows_only),
    Check("counts", check_counts, whole_build_only),
    Check("card", check_card),
    Check("lengths", check_lengths, unknown_tokenizer),
    Check("full", check_full, whole_build_only),
    Check("sources", check_sources),
    Check("self audit", check_self_audit, unreadable),
)
"""Every check, in the order in which its faults are printed."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found: all faults, the checks that were made, and why others were not."""

    faults: tuple[Fault, ...]
    made: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]


def verify_dist(
    dist: str | Path, *, is_local: bool = False, overlay: Mapping[str, bytes] | None = None
) -> Verification:
    """Make every check of a DIST and return all faults.

    Parameters
    ----------
    dist
        A folder, or `ORG/NAME@REVISION`; NVIDIA's set gets the checks that make sense for it.
    is_local
        Let a build of a mirror or of samples pass, and one that was allowed to be short.
    overlay
        Files as they are about to be, path to bytes, in place of those of the folder.

    Raises
    ------
    DistError
        If there is no such DIST.
    """
    return verify_subject(open_subject(dist, is_local=is_local, overlay=overlay))


def verify_subject(subject: Subject) -> Verification:
    """Make every check of a subject; a check that cannot be made is left out with its reason."""
    faults: list[Fault] = []
    made: list[str] = []
    left_out: list[tuple[str, str]] = []
    for check in CHECKS:
        reason = check.unless(subject)
        if reason:
            left_out.append((check.name, reason))
            continue
        found = list(check.find(subject))
        logger.info("%s: %s", check.name, f"{len(found)} faults" if found else "good")
        faults += found
        made.append(check.name)
    return Verification(tuple(faults), tuple(made), tuple(left_out))
