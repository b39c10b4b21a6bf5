"""All passages of a build in one file on disk, with a small index: any of them can be read alone, by any process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sources.passages import Passage


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a passage without reading it; sizes in code points, `offset` and `size` in bytes."""

    record_id: str
    source: str
    native_id: str
    group: str
    text_chars: int
    parts_chars: int
    offset: int
    size: int


@dataclass(frozen=True)
class Shelf:
    """Passages by record id, in the order of their ids whatever the order in which they came.

    `duplicates` holds the id of each passage that another of the same id displaced.
    """

    path: Path
    entries: Mapping[str, Entry]
    duplicates: tuple[str, ...] = ()
    _groups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict, compare=False)

    @classmethod
    def write(cls, path: Path, passages: Iterable[Passage]) -> Shelf:
        """Write passages as they come, one in memory at a time.

        Returns
        -------
        Shelf
            The same for any order of the passages, file offsets aside: of several with one id it keeps the one whose
            bytes sort first, and names the id in `duplicates` once for each other.
        """
        kept: dict[str, tuple[bytes, Entry]] = {}
        duplicates: list[str] = []
        with path.open("wb") as out:
            for passage in passages:
                data = pickle.dumps(passage, protocol=5)
                key = (hashlib.sha256(data).digest(), _entry(passage, out.tell(), len(data)))
                out.write(data)
                before = kept.setdefault(passage.record_id, key)
                if before is not key:
                    duplicates.append(passage.record_id)
                    kept[passage.record_id] = min(before, key, key=lambda k: k[0])
        return cls(path, {record_id: kept[record_id][1] for record_id in sorted(kept)}, tuple(sorted(duplicates)))

    def of(self, source: str) -> list[Entry]:
        """Return the entries of a source, by id."""
        return [entry for entry in self.entries.values() if entry.source == source]

    def group(self, source: str, group: str) -> tuple[str, ...]:
        """Return the record ids of a source's group, sorted."""
        if not self._groups:
            found: dict[tuple[str, str], list[str]] = {}
            for entry in self.entries.values():
                found.setdefault((entry.source, entry.group), []).append(entry.record_id)
            self._groups.update({key: tuple(ids) for key, ids in found.items()})
        return self._groups.get((source, group), ())

    def read(self, record_id: str) -> Passage:
        """Return a passage.

        Raises
        ------
        KeyError
            If there is none of this id.
        """
        entry = self.entries[record_id]
        with self.path.open("rb") as stream:
            stream.seek(entry.offset)
            passage: Passage = pickle.loads(stream.read(entry.size))
        return passage


def _entry(passage: Passage, offset: int, size: int) -> Entry:
    parts_chars = sum(len(part.text) for part in passage.parts)
    return Entry(
        passage.record_id,
        passage.source,
        passage.native_id,
        passage.group,
        len(passage.text),
        parts_chars,
        offset,
        size,
    )
