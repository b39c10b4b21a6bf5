"""Our own placeholder rows rebuilt as the build makes them, and checked by `turns_sha256`.

A row is found by its src_id alone, never by its place, and depends on no other row.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from curation.fill.reading import OpenFiles, Unpinned, open_at, pinned_specs
from curation.fill.wanted import Filled, Outcome, Problem, Wanted, problems_of
from curation.ids import turns_sha256
from curation.kernels.text import storable
from curation.reading import OpenSource, read_passages
from curation.recipe import Recipe
from curation.rows import source_names
from curation.stages.clean import normalize_record
from curation.throughput.build import row_builder
from curation.throughput.rows import RowBuilder, provenance_of
from curation.throughput.shelf import Shelf
from sources.base import Record, Rejected, Source, SourceSpec
from sources.errors import SourceError
from sources.origins import Origin
from sources.passages import PassageSource
from sources.registry import SOURCES, THROUGHPUT

logger = logging.getLogger(__name__)

PASSAGE_SOURCES: Mapping[str, PassageSource] = {source.spec.name: source for source in THROUGHPUT}


def rebuild_rows(rows: Sequence[Wanted], origin: Origin, recipe: Recipe) -> list[Outcome]:
    """Return the text of each row, or why it has none, in the order of the rows.

    Parameters
    ----------
    rows
        Placeholder rows of a DIST of ours.
    origin
        Where to read the sources; each is read once for each revision that rows name.
    recipe
        The one that built the DIST: its tokenizer and padding make the throughput rows.
    """
    groups, unknown = _grouped(rows)
    outcomes: dict[tuple[str, str], Outcome] = {problem.row.key: problem for problem in unknown}
    for (name, is_throughput, revision), wanted in sorted(groups.items()):
        found = _rebuild_group(name, revision, wanted, origin, recipe if is_throughput else None)
        outcomes |= {outcome.row.key: outcome for outcome in found}
        logger.info("%s: %d of %d rows filled", name, sum(isinstance(o, Filled) for o in found), len(wanted))
    return [outcomes[row.key] for row in rows]


def specs_of(rows: Sequence[Wanted], origin: Origin) -> list[SourceSpec]:
    """Return the sources that rows need, each at the revision to ask for; those without one are left out."""
    groups, _ = _grouped(rows)
    return pinned_specs([(name, revision) for name, _, revision in sorted(groups)], origin)


def _grouped(rows: Sequence[Wanted]) -> tuple[dict[tuple[str, bool, str], list[Wanted]], list[Problem]]:
    """Return the rows by source, split and revision, and those of no known source."""
    groups: dict[tuple[str, bool, str], list[Wanted]] = {}
    unknown: list[Problem] = []
    for row in rows:
        name = _source_name(row)
        if name is None:
            detail = "no source of this version made it; use the version of speedbench that built the release"
            unknown.append(Problem(row, "unsupported", detail))
        else:
            groups.setdefault((name, row.is_throughput, row.revision), []).append(row)
    return groups, unknown


def _source_name(row: Wanted) -> str | None:
    """Return the name of the source that made a row; None where this version knows none."""
    names = [name for name in source_names(list(row.record_ids)) if name in SOURCES]
    if len(names) != 1 or SOURCES[names[0]].spec.source != row.source:
        return None
    known = PASSAGE_SOURCES.get(names[0]) if row.is_throughput else SOURCES[names[0]]
    return None if known is None or row.is_throughput != isinstance(known, PassageSource) else names[0]


def _rebuild_group(
    name: str, revision: str, rows: Sequence[Wanted], origin: Origin, recipe: Recipe | None
) -> list[Outcome]:
    """Rebuild the rows of one source at one revision; `recipe` for those of the throughput split."""
    source = SOURCES[name] if recipe is None else PASSAGE_SOURCES[name]
    try:
        files = open_at(origin, source.spec, revision)
        if isinstance(source, PassageSource):
            assert recipe is not None
            return list(_fitted(source, files, rows, recipe))
        return list(_qualitative(source, files, rows))
    except Unpinned as error:
        return [*problems_of(rows, "unpinned", str(error))]
    except SourceError as error:
        return [*problems_of(rows, "unread", str(error))]


def _qualitative(source: Source, files: OpenFiles, rows: Sequence[Wanted]) -> Iterator[Outcome]:
    records = find_records(source, files, frozenset(row.src_id for row in rows))
    for row in rows:
        record = records.get(row.src_id)
        if record is None:
            yield _missing(row, files)
        else:
            yield checked(row, record.turns, record.template_id)


def find_records(source: Source, files: OpenFiles, src_ids: frozenset[str]) -> dict[str, Record]:
    """Return the normalised records of some src_ids; of two with one id the same as the build keeps."""
    found: dict[str, Record] = {}
    for item in source.parse(files):
        if isinstance(item, Rejected) or storable(item.native_id) not in src_ids:
            continue
        record, _ = normalize_record(item)
        known = found.get(record.native_id)
        if known is None or record.turns < known.turns:
            found[record.native_id] = record
    return found


def _fitted(source: PassageSource, files: OpenFiles, rows: Sequence[Wanted], recipe: Recipe) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="speedbench-fill-") as folder:
        shelf = Shelf.write(Path(folder) / "passages.bin", read_passages([OpenSource(source, files.resolved)], []))
        builder = row_builder(shelf, provenance_of([source], {}), recipe)
        for row in rows:
            yield _fit(builder, source.spec.name, row, files)


def _fit(builder: RowBuilder, name: str, row: Wanted, files: OpenFiles) -> Outcome:
    try:
        built = builder.rebuild(row.config, name, row.src_id, row.num_tokens)
    except KeyError:
        return _missing(row, files)
    except ValueError as error:  # Unfit, and the refusals of the kernel
        return Problem(row, "changed", f"its record gives no prompt of {row.num_tokens} tokens now: {error}")
    return checked(row, built.row["turns"], built.row["template_id"])


def checked(row: Wanted, turns: Sequence[str], template_id: str) -> Outcome:
    """Return the row filled if the text is the one that was published, and else what differs."""
    found = turns_sha256(turns)
    if found == row.turns_sha256:
        return Filled(row, tuple(turns))
    if template_id != row.template_id:
        detail = f"built with the template {row.template_id or 'none'}, this version of speedbench has {template_id}"
        return Problem(row, "changed", f"{detail}; use the version that built the release")
    return Problem(row, "changed", f"its text has the SHA-256 {found[:12]}…, published was {row.turns_sha256[:12]}…")


def _missing(row: Wanted, files: OpenFiles) -> Problem:
    return Problem(row, "missing", f"the source has no record of this src_id{files.absent}")
