"""What an audit reads: files, and the units into which they are cut, the same for every shard and every worker."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from curation.audit.errors import AuditError

UNIT_BYTES = 64 << 20
"""A JSONL file is cut into ranges of about this size, a parquet file into row groups that hold about as much text."""

_FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".rst": "text",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
_EDGE = 1 << 16


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One file: its path as it was given or found, the path under its root, format, compression and fingerprint."""

    path: str
    relative: str
    format: str
    compression: str
    num_bytes: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work: bytes of a JSONL file, row groups of a parquet file, or a whole file (`end` -1)."""

    number: int
    file: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Files, units, the files passed over with the reason, and what the pairs are judged by.

    `settings` holds all that can change a result: benchmark, index key, rule, text paths.
    """

    files: tuple[CorpusFile, ...]
    units: tuple[Unit, ...]
    passed_over: tuple[tuple[str, str], ...]
    settings: dict[str, Any]

    def digest(self) -> str:
        """Return the SHA-256 of the plan."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "files": [asdict(f) for f in self.files],
            "units": [asdict(u) for u in self.units],
            "passed_over": [list(p) for p in self.passed_over],
            "settings": self.settings,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Plan:
        """Return the plan that `as_json` wrote."""
        return cls(
            tuple(CorpusFile(**f) for f in value["files"]),
            tuple(Unit(**u) for u in value["units"]),
            tuple((path, reason) for path, reason in value["passed_over"]),
            value["settings"],
        )


def make_plan(corpus: Sequence[str], settings: dict[str, Any]) -> Plan:
    """List the files of a corpus and cut them into units.

    Parameters
    ----------
    corpus
        Files, folders, globs, or URLs that fsspec knows.
    settings
        Becomes `Plan.settings`.

    Raises
    ------
    AuditError
        If a path is not there, a glob matches nothing, or no file can be read.
    """
    files: dict[str, CorpusFile] = {}
    passed_over: dict[str, str] = {}
    for item in corpus:
        for path, relative, named in _expand(item):
            if path in files:
                continue
            kind, compression = file_format(path, named=named)
            if kind:
                files[path] = CorpusFile(path, relative, kind, compression, *_fingerprint(path))
            else:
                passed_over[path] = "unknown format"
    if not files:
        known = " ".join(sorted(_FORMATS))
        raise AuditError(f"{' '.join(corpus)}: holds no file that can be read ({known}, also .gz .zst .bz2)")
    ordered = tuple(files[path] for path in sorted(files))
    return Plan(ordered, tuple(_units(ordered)), tuple(sorted(passed_over.items())), settings)


def file_format(path: str, *, named: bool) -> tuple[str, str]:
    """Return format and compression by the name; a file that the user named and no format claims is text."""
    name = path.lower()
    stem, extension = os.path.splitext(name)
    compression = _COMPRESSIONS.get(extension, "")
    if compression:
        extension = os.path.splitext(stem)[1]
    return _FORMATS.get(extension, "text" if named else ""), compression


def open_binary(path: str) -> IO[bytes]:
    """Open a local file or a URL for reading."""
    if "://" not in path:
        return Path(path).open("rb")
    import fsspec

    stream: IO[bytes] = fsspec.open(path, "rb").open()
    return stream


def _expand(item: str) -> Iterable[tuple[str, str, bool]]:
    """Yield path, path under the root, and whether the user named the very file."""
    if "://" in item:
        return _expand_remote(item)
    path = Path(item)
    if path.is_file():
        return [(item, path.name, True)]
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.is_file() and not _is_hidden(p.relative_to(path)))
        return [(str(p), p.relative_to(path).as_posix(), False) for p in found]
    matches = sorted(p for p in glob.glob(item, recursive=True) if Path(p).is_file())
    if not matches:
        raise AuditError(f"{item}: no such file or folder, and nothing matches it as a glob")
    root = _glob_root(item)
    return [(p, Path(p).relative_to(root).as_posix(), False) for p in matches]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _glob_root(pattern: str) -> Path:
    parts = []
    for part in Path(pattern).parts[:-1]:
        if glob.has_magic(part):
            break
        parts.append(part)
    return Path(*parts) if parts else Path()


def _expand_remote(item: str) -> Iterable[tuple[str, str, bool]]:
    from fsspec.core import url_to_fs

    fs, root = url_to_fs(item)
    if fs.isfile(root):
        return [(fs.unstrip_protocol(root), root.rsplit("/", 1)[-1], True)]
    found = fs.glob(root) if glob.has_magic(root) else fs.find(root)
    if not found:
        raise AuditError(f"{item}: nothing there; check the address, and for hf:// the revision and HF_TOKEN")
    base = root.split("*")[0].rsplit("/", 1)[0] if glob.has_magic(root) else root.rstrip("/")
    return [(fs.unstrip_protocol(p), p[len(base) :].lstrip("/"), False) for p in sorted(found) if not fs.isdir(p)]


def _fingerprint(path: str) -> tuple[int, str]:
    """Size, and 16 hex digits over the size and both ends of the file: enough to notice that a corpus was changed."""
    try:
        with open_binary(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            head = stream.read(_EDGE)
            stream.seek(max(0, size - _EDGE))
            digest = hashlib.sha256(f"{size}\n".encode() + head + stream.read(_EDGE))
    except OSError as error:
        raise AuditError(f"{path}: cannot be opened ({error.strerror or error}); check its rights") from None
    return size, digest.hexdigest()[:16]


def _units(files: Sequence[CorpusFile]) -> Iterable[Unit]:
    number = 0
    for i, file in enumerate(files):
        for begin, end in _cuts(file):
            yield Unit(number, i, begin, end)
            number += 1


def _cuts(file: CorpusFile) -> Iterable[tuple[int, int]]:
    if file.format == "parquet":
        return _row_groups(file.path)
    if file.format == "jsonl" and not file.compression and file.num_bytes > UNIT_BYTES:
        return [(b, min(b + UNIT_BYTES, file.num_bytes)) for b in range(0, file.num_bytes, UNIT_BYTES)]
    return [(0, -1)]


def _row_groups(path: str) -> Iterable[tuple[int, int]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_binary(path) as stream:
            metadata = pq.ParquetFile(stream).metadata
            sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    except (pa.ArrowException, OSError):
        return [(0, -1)]  # reading it says what is wrong, and the report carries that
    cuts, begin, held = [], 0, 0
    for i, size in enumerate(sizes):
        if held and held + size > UNIT_BYTES:
            cuts.append((begin, i))
            begin, held = i, 0
        held += size
    cuts.append((begin, len(sizes)))
    return cuts
