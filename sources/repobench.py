"""The rows of RepoBench v1.1, which the Python and the Java adapter read in the same way (Liu et al., 2024).

Rows hold `repo_name`, `file_path`, `context` [{identifier, path, snippet}], `import_statement`, `cropped_code` (the
file up to the line to complete), `all_code` and `next_line`.

Rules
-----
- All three settings (cross_file_first, cross_file_random, in_file) are read, each with other places of the files.
- There is no native id: the id is repository, path and the digest of the code before the line; a
  place that stands twice is rejected the second time.
- Only repositories under a permissive licence, by our list: the source names none.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Rejected, Row, SourceSpec, canonical_id
from sources.licenses import PERMISSIVE_BY_REPOSITORY
from sources.passages import Part, Passage
from sources.repositories import license_of, repository_name, unknown_license

SETTINGS = ("cross_file_first", "cross_file_random", "in_file")

_COLUMNS = {
    "repo_name": "string",
    "file_path": "string",
    "context": "list<struct>",
    "import_statement": "string?",
    "cropped_code": "string",
    "all_code": "string?",
    "next_line": "string",
}

_CITATION = """@inproceedings{liu2024repobench,
  title     = {RepoBench: Benchmarking Repository-Level Code Auto-Completion Systems},
  author    = {Liu, Tianyang and Xu, Canwen and McAuley, Julian},
  booktitle = {International Conference on Learning Representations},
  year      = {2024}
}"""


def spec(name: str, title: str, repo: str, settings: tuple[str, ...] = SETTINGS) -> SourceSpec:
    """Return the facts of one of its two languages."""
    return SourceSpec(
        name=name,
        title=title,
        repo=repo,
        license=PERMISSIVE_BY_REPOSITORY,
        files={s: FileSpec(f"data/{s}-*.parquet", "parquet", _COLUMNS) for s in settings},
        feeds=("low_entropy",),
        citation=_CITATION,
    )


def passages(files: Files, source: SourceSpec, language: str) -> Iterator[Passage | Rejected]:
    """Yield a passage a place to complete, the snippets of other files as parts."""
    seen: set[str] = set()
    for setting in source.files:
        for row in files.rows(setting):
            item = _passage(row, source.name, language)
            if isinstance(item, Passage):
                if item.native_id in seen:
                    item = row.reject("the same place of the same file stands before it")
                else:
                    seen.add(item.native_id)
            yield item


def _passage(row: Row, source: str, language: str) -> Passage | Rejected:
    spdx = license_of(row["repo_name"])
    if not spdx:
        return row.reject(unknown_license(row["repo_name"]))
    code = "\n".join(text for text in (row.get("import_statement", ""), row["cropped_code"]) if text)
    if not code.strip() or not row["next_line"].strip():
        return row.reject("no code before the line, or the line is blank")
    repository = repository_name(row["repo_name"])
    parts = [Part(str(c.get("path") or ""), str(c.get("snippet") or "")) for c in row["context"]]
    return Passage(
        source,
        f"{repository}/{row['file_path']}@{canonical_id(code)}",
        language,
        code,
        group=repository,
        title=row["file_path"],
        answer=_continuation(row),
        parts=tuple(p for p in parts if p.name and p.text.strip()),
        license=spdx,
    )


def _continuation(row: Row) -> str:
    """Return the line to complete with what follows it in the whole file, where that can be found."""
    whole, line = row.get("all_code", ""), row["next_line"]
    start = len(row["cropped_code"])
    if whole.startswith(row["cropped_code"]) and line.strip() and whole[start:].lstrip().startswith(line.strip()):
        return str(whole[start:].lstrip("\n"))
    return str(line)
