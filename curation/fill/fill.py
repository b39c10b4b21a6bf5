"""`fill`: a copy of a DIST with the text of its placeholder rows in place, whole or not written at all.

::

    wanted   = placeholder rows of the DIST
    outcomes = rebuild(wanted) from the sources         # each row alone, checked by its digest
    write(DIST with the texts, checksums, card)         # unless a row is left over, or with allow_partial
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.fill import nvidia, rebuild
from curation.fill.wanted import Filled, Outcome, Problem, Wanted, wanted_rows
from curation.folder import new_folder, refuse_existing
from curation.load import CHECKSUMS, config_files, read_manifest, resolve_dist
from curation.recipe import Recipe, load_recipe
from curation.store import parquet_writer, write_checksums, write_text
from sources.access import check_access, require_access
from sources.fetch import HubOrigin
from sources.origins import Origin

logger = logging.getLogger(__name__)

DEFAULT_RECIPE = "v1"
"""The recipe of a DIST that lies without its manifest, as on the Hub."""

_ROWS_PER_BATCH = 64
_CARD = "README.md"


@dataclass(frozen=True, slots=True)
class FillReport:
    """What became of the placeholder rows.

    Attributes
    ----------
    wanted, filled
        Placeholder rows, and those whose text was found.
    verified
        Filled rows whose text has the digest that was published; the others have none.
    problems
        Why each of the rest stays a placeholder, in the order of configs and rows.
    written
        True if the copy was written.
    """

    wanted: int
    filled: int
    verified: int
    problems: tuple[Problem, ...]
    written: bool

    @property
    def summary(self) -> str:
        """One line: how many rows were filled, and how many of each problem are left."""
        kinds = Counter(problem.kind for problem in self.problems)
        left = f" ({', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))})" if kinds else ""
        unverified = self.filled - self.verified
        unchecked = f"; {unverified} of them could not be checked: no digest of their text is published"
        return (
            f"{self.filled} of {self.wanted} placeholder rows have their text, {len(self.problems)} have not{left}"
            f"{unchecked if unverified else ''}"
        )


def fill_dist(
    dist: str | Path, out: Path, origin: Origin, *, recipe: Recipe | None = None, allow_partial: bool = False
) -> FillReport:
    """Write a copy of a DIST in which placeholder rows hold their text.

    Parameters
    ----------
    dist
        A folder or `ORG/NAME@REVISION`, `nvidia/SPEED-Bench@REVISION` among them.
    out
        A folder that is not there yet, or is empty.
    origin
        The Hub or a mirror.
    recipe
        The one that built the DIST; by default that of its manifest, or `DEFAULT_RECIPE` where it lies without one.
    allow_partial
        Write the copy even if rows are left over; they stay placeholders.

    Raises
    ------
    DistError
        If the DIST cannot be read or `out` is taken.
    SourceError
        Without `allow_partial`, if a source cannot be read from the Hub; said of all of them before a byte is fetched.
    """
    refuse_existing(out)
    folder = resolve_dist(dist)
    rows = wanted_rows(folder)
    logger.info("%s: %d placeholder rows", dist, len(rows))
    if not allow_partial:
        require_sources(rows, origin)
    outcomes = find_texts(rows, origin, recipe or recipe_of(folder))
    texts = {outcome.row.key: outcome.turns for outcome in outcomes if isinstance(outcome, Filled)}
    report = FillReport(
        wanted=len(rows),
        filled=len(texts),
        verified=sum(bool(outcome.row.turns_sha256) for outcome in outcomes if isinstance(outcome, Filled)),
        problems=tuple(outcome for outcome in outcomes if isinstance(outcome, Problem)),
        written=allow_partial or len(texts) == len(rows),
    )
    if report.written:
        _write_copy(folder, out, texts, report, origin)
    return report


def require_sources(rows: Sequence[Wanted], origin: Origin) -> None:
    """Refuse if a source that rows need is gated, moved or out of reach on the Hub; a mirror is simply read."""
    if isinstance(origin, HubOrigin):
        ours, theirs = _by_kind(rows)
        specs = [*rebuild.specs_of(ours, origin), *nvidia.specs_of(theirs, origin)]
        require_access(check_access(specs, origin), allow_short=True)


def find_texts(rows: Sequence[Wanted], origin: Origin, recipe: Recipe) -> list[Outcome]:
    """Return the text of each row or why it has none: ours by digest, those of NVIDIA's set by its own rules."""
    ours, theirs = _by_kind(rows)
    found = {o.row.key: o for o in (*rebuild.rebuild_rows(ours, origin, recipe), *nvidia.fill_rows(theirs, origin))}
    return [found[row.key] for row in rows]


def _by_kind(rows: Sequence[Wanted]) -> tuple[list[Wanted], list[Wanted]]:
    return [row for row in rows if row.turns_sha256], [row for row in rows if not row.turns_sha256]


def recipe_of(folder: Path) -> Recipe:
    """Return the recipe of the build that a DIST folder lies in, else the one of releases."""
    manifest = read_manifest(folder)
    return load_recipe(DEFAULT_RECIPE) if manifest is None else Recipe.model_validate(manifest["recipe"])


def _write_copy(
    folder: Path, out: Path, texts: Mapping[tuple[str, str], tuple[str, ...]], report: FillReport, origin: Origin
) -> None:
    parquet = {path: config for config, paths in config_files(folder).items() for path in paths}
    with new_folder(out) as scratch:
        for path in _published_files(folder):
            target = scratch / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in parquet:
                _fill_file(path, target, parquet[path], texts)
            elif path.name == _CARD and path.parent == folder:
                write_text(target, filled_card(path.read_text("utf-8"), report, origin.name))
            else:
                shutil.copyfile(path, target)
        write_checksums(scratch)


def _published_files(folder: Path) -> list[Path]:
    """Return the files of a DIST but its checksums and what other programs keep there under names with a dot."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / CHECKSUMS)
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _fill_file(source: Path, target: Path, config: str, texts: Mapping[tuple[str, str], tuple[str, ...]]) -> None:
    with pq.ParquetFile(source) as file:
        schema = file.schema_arrow.remove_metadata()
        with parquet_writer(target, schema) as writer:
            for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH):
                rows = [_with_text(row, texts.get((config, row["question_id"]))) for row in batch.to_pylist()]
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))


def _with_text(row: dict[str, Any], turns: tuple[str, ...] | None) -> dict[str, Any]:
    if turns is None:
        return row
    status = {"text_status": "full"} if "text_status" in row else {}
    return {**row, "turns": list(turns), **status}


def filled_card(card: str, report: FillReport, origin: str) -> str:
    """Return a card with a notice behind its front matter: this is a filled copy, and is not to be passed on."""
    checked = (
        f"{report.verified} of them were checked against the SHA-256 that was published with the row"
        if report.verified < report.filled
        else "each was checked against the SHA-256 that was published with the row"
    )
    notice = (
        f"> **A filled copy.** `speedbench fill` put the text of {report.filled} of {report.wanted} placeholder rows "
        f"in place, read from the {origin}; {checked}. What follows describes the release, without these texts. "
        "Their sources do not let them be passed on: do not upload this folder.\n\n"
    )
    head, mark, body = card.partition("\n---\n") if card.startswith("---\n") else ("", "", card)
    return f"{head}{mark}\n{notice}{body.lstrip()}"
