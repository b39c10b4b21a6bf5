"""Two DISTs compared row by row: what was added, removed or changed, and the version step that follows."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from curation.errors import DistError
from curation.ids import turns_sha256
from curation.load import CHECKSUMS, config_files, is_placeholder, read_config, resolve_dist
from curation.versions import STEPS, Step
from sources.disk import file_sha256

ID_COLUMNS = ("question_id", "source", "src_id")
"""The columns by which others refer to rows; a row that stays and changes one of them breaks those references."""

MAX_NAMED_ROWS = 10
"""Rows that a changelog entry names one by one; of more it gives the number and says where the rest is listed."""

_ROWS_PER_BATCH = 64


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that both have under one question_id, and the columns that differ."""

    question_id: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewId:
    """A row whose record or text stayed and whose question_id did not."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """What differs in one config.

    Attributes
    ----------
    config
        Its name.
    old_rows, new_rows
        Number of rows; None where that DIST has no such config.
    added, removed
        Sorted question_ids that one of them has and the other has not.
    renamed
        Rows under another question_id, in the order of the old; they stand in neither `added` nor `removed`.
    changed
        Rows under the same question_id that differ, in the order of the ids.
    columns
        Columns that were added (`+name`), removed (`-name`) or changed their type (`~name`), sorted by name.
    """

    config: str
    old_rows: int | None
    new_rows: int | None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[NewId, ...] = ()
    changed: tuple[ChangedRow, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def step(self) -> Step:
        """The least version step that this config asks for."""
        moved = any(column in ID_COLUMNS for row in self.changed for column in row.columns)
        if self.new_rows is None or self.renamed or moved or self.columns:
            return "major"
        return "minor" if self.old_rows is None or self.added or self.removed or self.changed else "none"


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between two DISTs: all configs of either, by name, and the files whose bytes differ."""

    configs: tuple[ConfigDiff, ...]
    files: tuple[str, ...]

    @property
    def step(self) -> Step:
        """The least version step that follows.

        `major`: ids or columns changed, or a config is gone; `minor`: rows or their text; `patch`: only bytes of
        files, e.g. the card; `none`: nothing.
        """
        steps: list[Step] = [config.step for config in self.configs]
        return max([*steps, "patch" if self.files else "none"], key=STEPS.index)

    def changelog_entry(self, version: str) -> str:
        """Return the entry of a changelog in Markdown: a heading and one line for each kind of change of a config."""
        lines = [line for config in self.configs for line in _entry_lines(config)]
        if not lines:
            lines = ["- No row changed."]
        if self.files:
            lines.append(f"- Files whose bytes changed: {', '.join(f'`{name}`' for name in self.files)}.")
        return f"## {version.removeprefix('v')}\n\n" + "\n".join(lines) + "\n"


def diff_dists(old: str | Path, new: str | Path) -> Diff:
    """Compare two DISTs, each a folder or `ORG/NAME@REVISION`.

    Rows are matched by question_id. A row that only one of them has is matched once more with one that only the other
    has, by source and src_id or else by the text: such a row has changed its id. Order is not compared: it follows
    from the ids.

    Raises
    ------
    DistError
        If one of them is not a DIST, differs from its checksums, or holds a question_id twice in a config.
    """
    folders = resolve_dist(old), resolve_dist(new)
    names = sorted({name for folder in folders for name in config_files(folder)})
    configs = tuple(_diff_config(name, *(_read_rows(folder, name) for folder in folders)) for name in names)
    return Diff(configs, _differing_files(*folders))


@dataclass(frozen=True, slots=True)
class _Row:
    """What is compared of a row: its ids, a digest of its text ("" where only a placeholder is known), its columns."""

    question_id: str
    record: tuple[str, str]
    text: str
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Rows:
    schema: pa.Schema
    by_id: Mapping[str, _Row]


def _read_rows(folder: Path, config: str) -> _Rows | None:
    if config not in config_files(folder):
        return None
    table = read_config(folder, config, allow_placeholders=True)
    by_id: dict[str, _Row] = {}
    for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH):
        for values in batch.to_pylist():
            row = _row(values)
            if row.question_id in by_id:
                raise DistError(f"{folder}: {config} holds the question_id {row.question_id} twice; mend it first")
            by_id[row.question_id] = row
    return _Rows(table.schema, by_id)


def _row(values: Mapping[str, object]) -> _Row:
    turns: list[str] = values["turns"]  # type: ignore[assignment]
    known = str(values.get("turns_sha256") or "") if is_placeholder(turns) else turns_sha256(turns)
    digests = {name: _digest(value) for name, value in values.items()}
    return _Row(str(values["question_id"]), (str(values["source"]), str(values["src_id"])), known, digests)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def _diff_config(config: str, old: _Rows | None, new: _Rows | None) -> ConfigDiff:
    before, after = ({} if rows is None else rows.by_id for rows in (old, new))
    added = [after[i] for i in sorted(after.keys() - before.keys())]
    removed = [before[i] for i in sorted(before.keys() - after.keys())]
    renamed = _renamed(removed, added)
    gone, come = {pair.old for pair in renamed}, {pair.new for pair in renamed}
    shared = sorted(before.keys() & after.keys())
    changed = (ChangedRow(i, _differing_columns(before[i], after[i])) for i in shared)
    return ConfigDiff(
        config,
        None if old is None else len(before),
        None if new is None else len(after),
        added=tuple(row.question_id for row in added if row.question_id not in come),
        removed=tuple(row.question_id for row in removed if row.question_id not in gone),
        renamed=renamed,
        changed=tuple(row for row in changed if row.columns),
        columns=() if old is None or new is None else _differing_types(old.schema, new.schema),
    )


def _differing_columns(old: _Row, new: _Row) -> tuple[str, ...]:
    """Return the columns of both that differ, `turns` only where the text does (a filled row has not changed it)."""
    same_text = bool(old.text) and old.text == new.text
    names = [name for name in old.columns if name in new.columns and not (name == "turns" and same_text)]
    return tuple(name for name in names if old.columns[name] != new.columns[name])


def _differing_types(old: pa.Schema, new: pa.Schema) -> tuple[str, ...]:
    before, after = ({field.name: field.type for field in schema} for schema in (old, new))
    marks = {name: "+" if name not in before else "-" if name not in after else "~" for name in {**before, **after}}
    return tuple(marks[name] + name for name in sorted(marks) if before.get(name) != after.get(name))


def _renamed(removed: Iterable[_Row], added: Iterable[_Row]) -> tuple[NewId, ...]:
    """Pair rows by their record, then those left by their text; each row is in one pair at most."""
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for key in ("record", "text"):
        left: defaultdict[object, list[str]] = defaultdict(list)
        for row in added:
            if row.question_id not in taken and (key == "record" or row.text):
                left[getattr(row, key)].append(row.question_id)
        for row in removed:
            matches = left.get(getattr(row, key), [])
            if row.question_id not in pairs and matches:
                pairs[row.question_id] = matches.pop(0)
                taken.add(pairs[row.question_id])
    return tuple(NewId(old, pairs[old]) for old in sorted(pairs))


def _differing_files(old: Path, new: Path) -> tuple[str, ...]:
    before, after = _digests(old), _digests(new)
    return tuple(name for name in sorted({*before, *after}) if before.get(name) != after.get(name))


def _digests(folder: Path) -> dict[str, str]:
    """Return path -> SHA-256 of the files that a release is made of: no hidden ones, and not the list of digests."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    named = ((path.relative_to(folder), path) for path in paths)
    return {
        relative.as_posix(): file_sha256(path)
        for relative, path in named
        if relative.as_posix() != CHECKSUMS and not any(part.startswith(".") for part in relative.parts)
    }


def _entry_lines(diff: ConfigDiff) -> list[str]:
    name = f"`{diff.config}`"
    if diff.old_rows is None:
        return [f"- {name}: a new config of {diff.new_rows:,} rows."]
    if diff.new_rows is None:
        return [f"- {name}: the config is gone (it had {diff.old_rows:,} rows)."]
    parts = [
        (diff.added, "added"),
        (diff.removed, "removed"),
        ([row.question_id for row in diff.changed], f"changed ({_changed_columns(diff.changed)})"),
        ([f"{pair.old} → {pair.new}" for pair in diff.renamed], "under a new id"),
    ]
    lines = [f"- {name}: {_counted(ids)} {what}: {_named(ids)}." for ids, what in parts if ids]
    if diff.columns:
        lines.append(f"- {name}: columns changed: {', '.join(f'`{column}`' for column in diff.columns)}.")
    return lines


def _counted(ids: Sequence[str]) -> str:
    return "1 row" if len(ids) == 1 else f"{len(ids):,} rows"


def _changed_columns(rows: Iterable[ChangedRow]) -> str:
    counts = Counter(column for row in rows for column in row.columns)
    return ", ".join(f"{column} in {counts[column]:,}" for column in sorted(counts))


def _named(ids: Sequence[str]) -> str:
    if len(ids) <= MAX_NAMED_ROWS:
        return ", ".join(ids)
    return f"{', '.join(ids[:MAX_NAMED_ROWS])} and {len(ids) - MAX_NAMED_ROWS:,} more (`speedbench diff` lists all)"
