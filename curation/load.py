"""Read a published split, strictly: one revision, its digest checked, no placeholders taken for prompts."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.errors import DistError
from curation.schema import SENTINEL
from sources.disk import file_sha256 as file_sha256

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

CHECKSUMS = "SHA256SUMS"
"""The file of a DIST that holds the SHA-256 of every other file, in the format of `sha256sum`."""

SPEED_BENCH_COLUMNS = (
    "question_id",
    "category",
    "sub_category",
    "turns",
    "source",
    "src_id",
    "difficulty",
    "multiturn",
)
"""The columns that every DIST has, NVIDIA's set too."""

_HUB_DIST = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[\w./-]+)")


_CHECKSUM_LINE = re.compile(r"(?P<digest>[0-9a-f]{64}) [ *](?P<name>.+)")


def load(dist: str | Path, config: str, *, allow_placeholders: bool = False) -> Dataset:
    """Load one config of a DIST as a `datasets.Dataset`.

    Unlike `datasets.load_dataset` it never serves another revision from the cache, checks the digest of the file, and
    refuses rows whose text has to be fetched first.

    Parameters
    ----------
    dist
        A folder, or `ORG/NAME@REVISION` on the Hub.
    config
        E.g. `qualitative` or `throughput_8k`.
    allow_placeholders
        Return placeholder rows too.

    Raises
    ------
    DistError
        If the DIST, the revision or the config is not there, a digest differs, or rows are placeholders.
    """
    from datasets import Dataset

    table = read_config(dist, config, allow_placeholders=allow_placeholders)
    return Dataset(table.replace_schema_metadata(None))


def read_config(dist: str | Path, config: str, *, allow_placeholders: bool = False) -> pa.Table:
    """Return one config of a DIST as a table, under the conditions of `load`."""
    folder = resolve_dist(dist)
    files = config_files(folder).get(config)
    if files is None:
        known = ", ".join(sorted(config_files(folder))) or "none"
        raise DistError(f"{dist}: no config {config!r}; it has {known}")
    verify_checksums(folder, files)
    tables = [_read_parquet(path) for path in files]
    for path, one in zip(files, tables, strict=True):
        _refuse_malformed(one, path)
    try:
        table = pa.concat_tables(tables)
    except pa.ArrowException as error:
        raise DistError(
            f"{files[0].parent}: its files differ in columns ({_first_line(error)}); fetch it again"
        ) from None
    if not allow_placeholders:
        _refuse_placeholders(table, str(dist), config)
    return table


def resolve_dist(dist: str | Path) -> Path:
    """Return the local folder of a DIST; a Hub revision is fetched as one strict snapshot.

    Raises
    ------
    DistError
        If there is no such folder, it holds no config, or the Hub does not have the revision.
    """
    folder = Path(dist)
    if not folder.is_dir():
        match = _HUB_DIST.fullmatch(str(dist))
        if match is None:
            raise DistError(f"{dist}: not a folder, and not ORG/NAME@REVISION (a revision is always named)")
        folder = _snapshot(match["repo"], match["revision"])
    # Not by config_files: the files of a build's pool/ look like those of a config.
    elif not any(folder.glob("data/*.parquet")) and (folder / "dist").is_dir():
        raise DistError(f"{dist}: this is a build; name {folder / 'full'} (all text) or {folder / 'dist'}")
    if not config_files(folder):
        raise DistError(f"{dist}: no parquet file of a config below data/ or <config>/; name the folder of a DIST")
    return folder


def _snapshot(repo: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(repo, repo_type="dataset", revision=revision))
    except LocalEntryNotFoundError:
        raise DistError(f"{repo}@{revision}: the Hub cannot be reached and the cache lacks this revision") from None
    except RepositoryNotFoundError:
        raise DistError(f"{repo}@{revision}: no such dataset, or no access; check the name and HF_TOKEN") from None
    except HfHubHTTPError as error:
        raise DistError(f"{repo}@{revision}: {str(error).splitlines()[0]}") from None


def config_files(folder: Path) -> dict[str, list[Path]]:
    """Return the parquet files of each config: `data/<config>.parquet`, or `<config>/*.parquet` as NVIDIA's set has."""
    configs: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("data/*.parquet")):
        configs.setdefault(re.sub(r"-\d{5}-of-\d{5}$", "", path.stem), []).append(path)
    for path in sorted(folder.glob("*/*.parquet")):
        if path.parent.name != "data":
            configs.setdefault(path.parent.name, []).append(path)
    return configs


def read_checksums(folder: Path) -> dict[str, str]:
    """Return path -> SHA-256 of a DIST's checksum file; empty where it has none."""
    path = folder / CHECKSUMS
    if not path.is_file():
        return {}
    known: dict[str, str] = {}
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
        match = _CHECKSUM_LINE.fullmatch(line)
        if match is None:
            raise DistError(f"{path}: line {number}: not a line of sha256sum; fetch the DIST again")
        known[match["name"]] = match["digest"]
    return known


def verify_checksums(folder: Path, files: Sequence[Path]) -> None:
    """Refuse files of a DIST that differ from its checksum file."""
    known = read_checksums(folder)
    if not known:
        logger.warning("%s: no %s, so the digests of its files are not checked", folder, CHECKSUMS)
        return
    for path in files:
        name = path.relative_to(folder).as_posix()
        if name not in known:
            raise DistError(f"{path}: not listed in {CHECKSUMS}; fetch the DIST again")
        if file_sha256(path) != known[name]:
            raise DistError(f"{path}: its SHA-256 differs from {CHECKSUMS}; fetch the DIST again")


def is_placeholder(turns: Sequence[str]) -> bool:
    """Tell whether any turn is a placeholder: our sentinel, alone or as NVIDIA's rows have it, before a template.

    A prompt that only mentions the same words elsewhere is not one.
    """
    return any(turn == SENTINEL or turn.startswith((SENTINEL + "\n", SENTINEL + " ")) for turn in turns)


def placeholder_rows(table: pa.Table) -> list[int]:
    """Return the places (from 0) of the rows that hold a placeholder in any turn."""
    return [i for i, turns in enumerate(table.column("turns").to_pylist()) if is_placeholder(turns)]


def _refuse_placeholders(table: pa.Table, dist: str, config: str) -> None:
    rows = placeholder_rows(table)
    if not rows:
        return
    first = table.column("question_id")[rows[0]].as_py()
    by_category = Counter(table.column("category").take(pa.array(rows)).to_pylist())
    where = ", ".join(f"{name} {n}" for name, n in sorted(by_category.items()))
    raise DistError(
        f"{dist}: {len(rows)} of {len(table)} rows of {config} are placeholders ({where}; first {first}): "
        f"fetch their text with `speedbench fill`, or read the build's full/ folder"
    )


def _read_parquet(path: Path) -> pa.Table:
    if path.is_dir():  # pyarrow would read it as a data set of no files
        raise DistError(f"{path}: a folder where a parquet file belongs; fetch the DIST again")
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise DistError(f"{path}: not a readable parquet file ({_first_line(error)}); fetch it again") from None
    return table.replace_schema_metadata(None)


def _refuse_malformed(table: pa.Table, path: Path) -> None:
    """Refuse a file without the columns that every DIST has, and rows in which what every tool reads is null."""
    for name in SPEED_BENCH_COLUMNS:
        if table.column_names.count(name) != 1:
            fault = "has twice" if name in table.column_names else "lacks"
            raise DistError(f"{path}: not a split of this benchmark: it {fault} the column {name!r}")
    for name, fits in _TYPES.items():
        found = table.schema.field(name).type
        if not fits(found):
            raise DistError(f"{path}: column {name!r} is of type {found}, not as published; fetch the DIST again")
    for name in _TYPES:
        row = _first_null(table.column(name))
        if row is not None:
            raise DistError(f"{path}: row {row + 1}: its {name} is null or holds null; fetch the DIST again")


def _is_text(found: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        return _is_text(found.value_type)
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found))


def _is_texts(found: pa.DataType) -> bool:
    is_list = pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)
    return is_list and _is_text(found.value_type)


_TYPES = {"question_id": _is_text, "category": _is_text, "source": _is_text, "src_id": _is_text, "turns": _is_texts}
"""What is read of every row of any DIST; the other columns are null in some sets."""


def _first_null(column: pa.ChunkedArray) -> int | None:
    """Return the place of the first row that is null or holds one; None where no row does."""
    nested = pa.types.is_nested(column.type)
    if not column.null_count and not (nested and any(chunk.flatten().null_count for chunk in column.chunks)):
        return None
    values = column.to_pylist()
    return next(i for i, value in enumerate(values) if value is None or (nested and None in value))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def read_manifest(dist: Path) -> dict[str, Any] | None:
    """Return the manifest of the build that a DIST folder lies in, or None where it lies alone."""
    import json

    path = dist.parent / "manifest.json"
    if dist.name not in ("dist", "full") or not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DistError(f"{path}: not a manifest that can be read ({_first_line(error)}); build again") from None
    if not isinstance(manifest, dict):
        raise DistError(f"{path}: not a manifest: it is no JSON object; build again")
    return manifest
