"""Long Code Arena, project-level code completion: a line of a file, given its repository (Bogomolov et al., 2024).

Rows hold `repo` (`owner__name`), `commit_hash`, `completion_file` {filename, content}, `completion_lines` {class: line
numbers from 0} and `repo_snapshot` {filename, content}, the other text files at that commit.

Rules
-----
- Candidate lines are those of the classes that depend on the project or the file (`committed`, `inproject`, `infile`,
  `common`); `random` and `non_informative` are left out.
- The size classes medium and large are read: their snapshots hold enough text for the longest prompts.
- The id is repository, commit and path; a file that stands twice, as in two size classes, is
  rejected the second time.
- Only repositories under a permissive licence: by our list, or by the licence file of the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sources.base import Files, FileSpec, Rejected, Row, SourceSpec
from sources.licenses import PERMISSIVE_BY_REPOSITORY
from sources.passages import Part, Passage
from sources.repositories import license_of, repository_name, unknown_license

_COLUMNS = {
    "repo": "string",
    "commit_hash": "string?",
    "completion_file": "struct",
    "completion_lines": "struct",
    "repo_snapshot": "struct",
}
_CLASSES = ("committed", "inproject", "infile", "common")

SPEC = SourceSpec(
    name="long_code_arena",
    title="Long Code Arena: project-level code completion",
    repo="JetBrains-Research/lca-project-level-code-completion",
    license=PERMISSIVE_BY_REPOSITORY,
    files={s: FileSpec(f"{s}_context/test-*.parquet", "parquet", _COLUMNS) for s in ("medium", "large")},
    feeds=("low_entropy",),
    citation="""@article{bogomolov2024longcodearena,
  title   = {Long Code Arena: a Set of Benchmarks for Long-Context Code Models},
  author  = {Bogomolov, Egor and Eliseeva, Aleksandra and Galimzyanov, Timur and Glukhov, Evgeniy and Shapkin, Anton},
  journal = {arXiv preprint arXiv:2406.11612},
  year    = {2024}
}""",
)


def parse(files: Files) -> Iterator[Passage | Rejected]:
    """Yield a passage a file to complete, its repository as parts."""
    seen: set[str] = set()
    for size in SPEC.files:
        for row in files.rows(size):
            item = _passage(row)
            if isinstance(item, Passage):
                if item.native_id in seen:
                    item = row.reject("the same file at the same commit stands before it")
                else:
                    seen.add(item.native_id)
            yield item


def _passage(row: Row) -> Passage | Rejected:
    name, text = row["completion_file"].get("filename"), row["completion_file"].get("content")
    snapshot = _snapshot(row["repo_snapshot"])
    if not name or not text or snapshot is None:
        return row.reject("its completion_file or repo_snapshot lacks a filename or content")
    spdx = license_of(row["repo"], ((p.name, p.text) for p in snapshot))
    if not spdx:
        return row.reject(unknown_license(row["repo"]))
    lines = _lines(row["completion_lines"], text.count("\n") + 1)
    if not lines:
        return row.reject("it has no line to complete that depends on the file or the project")
    repository = repository_name(row["repo"])
    return Passage(
        SPEC.name,
        f"{repository}@{row.get('commit_hash', '')[:12]}/{name}",
        "python",
        text,
        group=repository,
        title=name,
        parts=tuple(p for p in snapshot if p.name != name and p.text.strip()),
        lines=lines,
        license=spdx,
    )


def _snapshot(snapshot: dict[str, Any]) -> tuple[Part, ...] | None:
    names, texts = snapshot.get("filename"), snapshot.get("content")
    if not isinstance(names, list) or not isinstance(texts, list) or len(names) != len(texts):
        return None
    return tuple(Part(n, t) for n, t in zip(names, texts, strict=True) if n and t)


def _lines(by_class: dict[str, Any], num_lines: int) -> tuple[int, ...]:
    """Return the candidate lines that have a line before them and lie in the file, each once, in order."""
    found = {line for name in _CLASSES for line in by_class.get(name) or () if isinstance(line, int)}
    return tuple(sorted(line for line in found if 0 < line < num_lines))
