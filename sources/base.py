"""What a source is: its facts, the rows it reads and the records it yields.

Adapters import this module and the standard library, nothing else, so that the registry costs nothing to import.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, TypeVar, get_args

from sources.licenses import License

CATEGORIES = (
    "coding",
    "humanities",
    "math",
    "multilingual",
    "qa",
    "rag",
    "reasoning",
    "roleplay",
    "stem",
    "summarization",
    "writing",
)
"""The eleven categories of the qualitative split, in the order in which they are published."""

TIERS = ("low_entropy", "mixed", "high_entropy")
"""The three entropy tiers of the throughput split."""

DIFFICULTIES = ("easy", "medium", "hard", "")

FileFormat = Literal["json", "json_dict", "jsonl", "parquet", "text", "xml"]
"""How a file is read into rows.

`json`: an array of objects, a row each. `json_dict`: one object, a row a key, columns `key` and `value`.
`jsonl`: an object a line. `parquet`: a row a row. `text`: the whole file as one row, column `text`.
`xml`: a row an element named `FileSpec.row_tag`, column `element` (an `xml.etree.ElementTree.Element`).
"""

ColumnType = Literal[
    "string", "int64", "float64", "bool", "list<string>", "list<int64>", "struct", "list<struct>", "any"
]
"""The type that an adapter needs of a column. `struct` is a `dict`; a trailing `?` in the spec allows null."""

_T = TypeVar("_T")
_HEX40 = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class FileSpec:
    """One file of a source, or all files that match a pattern.

    Attributes
    ----------
    path
        Path in the repository, with `/`; `*` and `?` match within the whole path, and then the files are read in the
        order of their paths.
    format
        How its rows are read.
    columns
        The columns that the adapter needs, with their types: all others are ignored. A type that ends in `?` may be
        null or absent in a row; a column without `?` that a whole file lacks is one error for that file.
    row_tag
        For `xml`: the elements that are rows.
    urls
        For a pattern on a plain web server, which lists nothing: the files that match it, path to URL.
    """

    path: str
    format: FileFormat
    columns: Mapping[str, str] = field(default_factory=dict)
    row_tag: str = ""
    urls: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column, kind in self.columns.items():
            if kind.removesuffix("?") not in get_args(ColumnType):
                raise ValueError(f"{self.path}: column {column}: type must be one of ColumnType, got {kind!r}")
        if (self.format == "xml") != bool(self.row_tag):
            raise ValueError(f"{self.path}: xml, and nothing else, needs a row_tag, got {self.row_tag!r}")

    @property
    def is_pattern(self) -> bool:
        """True if the exact names are not known offline."""
        return any(c in self.path for c in "*?")

    def matches(self, path: str) -> bool:
        """Tell whether a path of the repository belongs to this entry."""
        return fnmatchcase(path, self.path)


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The facts of one source.

    Attributes
    ----------
    name
        Our name for it, the name of its module.
    repo
        Hub dataset id (`cais/hle`), GitHub `org/repo`, or the base URL of plain files, by `host`.
    host
        `hub`, `github` or `web`.
    revision
        40 hex digits where it is known; "" where `sources lock` must resolve it.
    files
        Key to file; the keys are what `parse` asks for.
    license
        The licence of its text.
    citation
        BibTeX, one entry.
    feeds
        The categories, tiers or configs that it feeds.
    gated
        True if the Hub asks for an account and accepted terms.
    withheld
        Why the text is not republished although the licence might allow it; "" if it is not withheld.
    title
        Name of the data set as its authors write it.
    priority
        Order among sources when two hold the same text: the lower one keeps it.
    mirror
        Folder in a `--mirror`; by default the Hub id, or `_web/` and the repository.
    samples
        Folder under `sources/samples/`; by default the name. Sources that read the same file share one.
    """

    name: str
    title: str
    repo: str
    license: License
    files: Mapping[str, FileSpec]
    feeds: tuple[str, ...]
    citation: str
    host: Literal["hub", "github", "web"] = "hub"
    revision: str = ""
    gated: bool = False
    withheld: str = ""
    priority: int = 50
    mirror: str = ""
    samples: str = ""

    def __post_init__(self) -> None:
        if self.revision and not _HEX40.fullmatch(self.revision):
            raise ValueError(f"{self.name}: revision must be 40 hex digits, got {self.revision!r}")
        if not self.files:
            raise ValueError(f"{self.name}: a source has at least one file")

    @property
    def source(self) -> str:
        """What the published column `source` holds: the Hub id, or the URL."""
        return f"https://github.com/{self.repo}" if self.host == "github" else self.repo

    @property
    def mirror_folder(self) -> str:
        """The folder of a mirror in which its files lie."""
        if self.mirror:
            return self.mirror
        return self.repo if self.host == "hub" else f"_web/{self.repo}"

    @property
    def may_publish(self) -> bool:
        """True if `dist/` may carry its text; otherwise its rows are placeholders there."""
        return self.license.may_publish and not self.gated and not self.withheld

    @property
    def publish_reason(self) -> str:
        """One sentence: why its text is, or is not, published."""
        if self.gated:
            return "The source is gated; its terms ask not to pass the text on."
        return self.withheld or self.license.reason


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: the columns that the adapter asked for, and where they stood.

    `line` counts from 1: the line of a JSONL file, the row of any other.
    """

    values: Mapping[str, Any]
    file: str
    line: int

    def __getitem__(self, column: str) -> Any:
        return self.values[column]

    def get(self, column: str, default: Any = None) -> Any:
        """Return the value of a column, or `default` where it is null or absent."""
        value = self.values.get(column)
        return default if value is None else value

    def reject(self, reason: str) -> Rejected:
        """Say that this row cannot become a record, and why."""
        return Rejected(self.file, self.line, reason)

    def digest(self) -> str:
        """Return 16 hex digits of the row's canonical JSON: an id for sources that have none."""
        return canonical_id({k: v for k, v in self.values.items() if v is not None})


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that could not become a record: file, line (from 1) and reason."""

    file: str
    line: int
    reason: str


class Files(Protocol):
    """The files of a source, by the keys of its spec; how `parse` sees the world."""

    def rows(self, key: str) -> Iterator[Row]:
        """Yield the good rows of all files of this key, in the order of path and line."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """One candidate prompt.

    Attributes
    ----------
    source
        Name of its spec.
    native_id
        The source's own id, or 16 hex digits of the record's canonical digest; parts joined by `+` in sorted order for
        grouped records. Never a row's place after a filter or shuffle of ours.
    category
        One of `CATEGORIES`; for the config `spec_bench`, Spec-Bench's own name.
    turns
        The user turns as they are sent.
    text
        The record's own text without our instruction: what dedup compares.
    sub_category
        E.g. programming language, subject, language pair, task; "" if none.
    language
        Declared language, BCP 47 (of a translation: the language of the text); "" if the source declares none.
    difficulty
        easy, medium, hard or "".
    template_id
        `<name>/v<n>` of the instruction of ours that wraps the text; "" if none.
    members
        Native ids of all records that made this one; by default its own.
    is_code
        True if no natural-language detector should judge the text.
    """

    source: str
    native_id: str
    category: str
    turns: tuple[str, ...]
    text: str
    sub_category: str = ""
    language: str = ""
    difficulty: str = ""
    template_id: str = ""
    members: tuple[str, ...] = ()
    is_code: bool = False

    def __post_init__(self) -> None:
        if not self.native_id:
            raise ValueError(f"{self.source}: a record needs a native id")
        if not self.turns:
            raise ValueError(f"{self.source}:{self.native_id}: a record needs at least one turn")
        if self.difficulty not in DIFFICULTIES:
            raise ValueError(
                f"{self.record_id}: difficulty must be easy, medium, hard or empty, got {self.difficulty!r}"
            )

    @property
    def record_id(self) -> str:
        """`source:native_id`, unique over all sources."""
        return f"{self.source}:{self.native_id}"

    @property
    def record_ids(self) -> tuple[str, ...]:
        """The ids of all records that made this one, sorted."""
        return tuple(f"{self.source}:{m}" for m in sorted(self.members or (self.native_id,)))


Parse = Callable[[Files], Iterator["Record | Rejected"]]


@dataclass(frozen=True, slots=True)
class Source:
    """A registered source: its facts and how to read it."""

    spec: SourceSpec
    parse: Parse


def canonical_id(value: Any) -> str:
    """Return the first 16 hex digits of the SHA-256 of a value's canonical JSON (sorted keys, compact, UTF-8)."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def seeded_choice(options: Sequence[_T], *key: str) -> _T:
    """Choose one option by the SHA-256 of the key: the same for a record wherever and whenever it is read.

    The key should begin with a word that names the decision, so that two decisions about one record are independent.
    """
    return options[seeded_int(len(options), *key)]


def seeded_int(bound: int, *key: str) -> int:
    """Return an integer in [0, bound) by the SHA-256 of the key (see `seeded_choice`)."""
    digest = hashlib.sha256("\x1f".join(key).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % bound


def joined_id(parts: Sequence[str]) -> str:
    """Return the id of a grouped record: its parts in sorted order, joined by `+`."""
    return "+".join(sorted(parts))
