"""The placeholder rows of `nvidia/SPEED-Bench`, filled where its src_id and template allow.

Its rows have eight columns and no digest: what is filled here is built by the rules that its public preparer follows
(NVIDIA/Model-Optimizer, examples/specdec_bench/specdec_bench/datasets/speed.py at 12d434e), and nothing can confirm it.
A row names its source in `source` (a Hub id, or a URL that holds one), the record in `src_id` by rules of each source,
and, where the first turn goes on after the sentinel and a blank line, a template with named fields.

Rows whose prompt the preparer composes in code (few-shot HLE, BAMBOO, Ada-LEval, CoSER, MMLU-Pro, ChatRAG-Bench) carry
no wording to fill: they are reported with the reason and left to that preparer.

Not seen when this was written: the published rows themselves. The rules come from that code and from its description;
the tests fill rows made up after them. That v1.1 of the set changed the src_id of throughput rows does not matter here,
since no throughput row can be filled.
"""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from curation.fill.reading import OpenFiles, Unpinned, open_at, pinned_specs
from curation.fill.wanted import Filled, Outcome, Problem, Wanted, problems_of
from curation.kernels.text import storable
from curation.schema import SENTINEL
from sources.base import SourceSpec
from sources.errors import SourceError
from sources.origins import Origin
from sources.registry import SOURCES

logger = logging.getLogger(__name__)

_REVISION = re.compile(r"[0-9a-f]{40}")
_NUMBER = re.compile(r"_(\d+)")


class Unfillable(ValueError):
    """A row cannot be filled: says why."""


class NoRecord(LookupError):
    """The source has no record that a row names."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How rows of one source are filled.

    Attributes
    ----------
    marker
        What stands in the `source` of its rows.
    name
        Name of our spec.
    index
        Reads the rows of its files by a key; the key is what `turns` looks up.
    turns
        Returns the text of a row.
    """

    marker: str
    name: str
    index: Callable[[OpenFiles], Mapping[Any, Mapping[str, Any]]]
    turns: Callable[[Wanted, Mapping[Any, Mapping[str, Any]]], list[str]]


def by_id(column: str, *texts: str) -> Callable[[OpenFiles], Mapping[Any, Mapping[str, Any]]]:
    """Return what reads the texts of the rows of all files by their id; the first of two with one id stays."""

    def index(files: OpenFiles) -> Mapping[Any, Mapping[str, Any]]:
        found: dict[Any, Mapping[str, Any]] = {}
        for key in files.spec.files:
            for row in files.rows(key):
                found.setdefault(row.get(column), {text: row.get(text) for text in texts})
        return found

    return index


def by_place(*keys: str) -> Callable[[OpenFiles], Mapping[Any, Mapping[str, Any]]]:
    """Return what reads rows by (key of the spec, place in the file from 0); for sources that NVIDIA names so."""

    def index(files: OpenFiles) -> Mapping[Any, Mapping[str, Any]]:
        return {(key, place): row.values for key in keys for row, place in files.placed_rows(key)}

    return index


def _pairs(files: OpenFiles) -> Mapping[Any, Mapping[str, Any]]:
    """Read OPUS-100 by (pair of languages, place in its file from 0)."""
    paths = [file.path for file in files.resolved.files]
    split = {p for p in map(_pair, paths) if sum(_pair(path) == p for path in paths) > 1}
    rows = files.placed_rows("test")
    return {(_pair(row.file), place): row.values for row, place in rows if _pair(row.file) not in split}


def _pair(path: str) -> str:
    return PurePosixPath(path).parent.name


def _roles(files: OpenFiles) -> Mapping[Any, Mapping[str, Any]]:
    """Read RoleBench's questions by (folder, place from 0), and its descriptions by ("", role)."""
    folders = [key for key in files.spec.files if key != "descriptions"]
    described = {("", row["key"]): row.values for row in files.rows("descriptions")}
    return {**described, **by_place(*folders)(files)}


def _question(row: Wanted, index: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    if row.is_throughput:
        raise Unfillable(
            "a few-shot prompt of NVIDIA's preparer depends on a generator that runs through all rows in their order"
        )
    return [_found(index, row.src_id)["question"]]


def _templated(**columns: str) -> Callable[[Wanted, Mapping[Any, Mapping[str, Any]]], list[str]]:
    """Return what fills a template with columns of the record whose id is the src_id; field name -> column."""

    def turns(row: Wanted, index: Mapping[Any, Mapping[str, Any]]) -> list[str]:
        record = _found(index, row.src_id)
        return [fill_template(template_of(row), {name: record.get(c) or "" for name, c in columns.items()})]

    return turns


def _translation(row: Wanted, index: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    parts = row.src_id.split("_")
    if len(parts) != 3 or not parts[2].isdigit():
        raise Unfillable(f"its src_id {row.src_id!r} does not read <name>_<pair>_<place>")
    record = _found(index, (parts[1], int(parts[2])))
    return [fill_template(template_of(row), {"question": record["translation"] or {}})]


def _dialogue(row: Wanted, index: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    record = _found(index, ("dialogues", _places(row, 1)[-1]))
    return [exchange.get("user") or "" for exchange in record["history"]]


def _role_play(row: Wanted, index: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    _, _, rest = row.src_id.partition("_")
    folder = rest.partition("_")[0]
    records = [_found(index, (folder, place)) for place in _places(row, len(row.turns))[: len(row.turns)]]
    role = records[0].get("role") or ""
    described = _found(index, ("", role))["value"]
    first, *later = [record.get("question") or "" for record in records]
    prompt = fill_template(template_of(row), {"role_name": role, "role_description_and_catchphrases": described})
    return [f"{prompt}\n{first}", *(text.removeprefix(f"{role}, ").removeprefix(f" {role},") for text in later)]


RULES: tuple[Rule, ...] = (
    Rule("cais/hle", "hle", by_id("id", "question"), _question),
    Rule(
        "livecodebench/code_generation_lite",
        "livecodebench",
        by_id("question_id", "question_content", "starter_code"),
        _templated(question="question_content", starter_code="starter_code"),
    ),
    Rule("deepmind/code_contests", "code_contests", by_id("name", "description"), _templated(question="description")),
    Rule("abisee/cnn_dailymail", "cnn_dailymail", by_id("id", "article"), _templated(article="article")),
    Rule("Helsinki-NLP/opus-100", "opus_100", _pairs, _translation),
    Rule("mtbench101/mt-bench-101", "mt_bench_101", by_place("dialogues"), _dialogue),
    Rule("ZenMoore/RoleBench", "rolebench", _roles, _role_play),
)
"""The sources whose rows can be filled, in the order in which their markers are looked for."""

IN_CODE = ("RUCAIBox/BAMBOO", "AdaLEval/", "nvidia/ChatRAG-Bench", "TIGER-Lab/MMLU-Pro", "Neph0s/CoSER")
"""Markers of sources whose prompts NVIDIA's preparer words in code."""


def fill_rows(rows: Sequence[Wanted], origin: Origin) -> list[Outcome]:
    """Return the text of each row, or why it has none, in the order of the rows."""
    groups, unknown = _grouped(rows)
    outcomes: dict[tuple[str, str], Outcome] = {problem.row.key: problem for problem in unknown}
    for (marker, revision), wanted in sorted(groups.items()):
        rule = next(rule for rule in RULES if rule.marker == marker)
        found = _fill_group(rule, revision, wanted, origin)
        outcomes |= {outcome.row.key: outcome for outcome in found}
    return [outcomes[row.key] for row in rows]


def specs_of(rows: Sequence[Wanted], origin: Origin) -> list[SourceSpec]:
    """Return the sources that rows need, each at the revision to ask for; those without one are left out."""
    names = {rule.marker: rule.name for rule in RULES}
    return pinned_specs([(names[marker], revision) for marker, revision in sorted(_grouped(rows)[0])], origin)


def _grouped(rows: Sequence[Wanted]) -> tuple[dict[tuple[str, str], list[Wanted]], list[Problem]]:
    """Return the rows by marker and revision, and those that no rule fills."""
    groups: dict[tuple[str, str], list[Wanted]] = {}
    unknown: list[Problem] = []
    for row in rows:
        marker = next((rule.marker for rule in RULES if rule.marker in row.source), "")
        if marker:
            groups.setdefault((marker, named_revision(row)), []).append(row)
        else:
            unknown.append(Problem(row, "unsupported", _why_not(row)))
    return groups, unknown


def named_revision(row: Wanted) -> str:
    """Return the revision in the URL of a row's `source`; "" if it holds none."""
    match = _REVISION.search(row.source)
    return match[0] if match else ""


def _why_not(row: Wanted) -> str:
    if any(marker in row.source for marker in IN_CODE):
        return "NVIDIA's preparer words this prompt in code and the row carries no template; run that preparer"
    return f"no rule is known for rows of {row.source!r}"


def _fill_group(rule: Rule, revision: str, rows: Sequence[Wanted], origin: Origin) -> list[Outcome]:
    try:
        files = open_at(origin, SOURCES[rule.name].spec, revision)
        index = rule.index(files)
    except Unpinned as error:
        return [*problems_of(rows, "unpinned", str(error))]
    except SourceError as error:
        return [*problems_of(rows, "unread", str(error))]
    logger.info("%s: %d placeholder rows", rule.name, len(rows))
    return [_fill_row(rule, row, index, files) for row in rows]


def _fill_row(rule: Rule, row: Wanted, index: Mapping[Any, Mapping[str, Any]], files: OpenFiles) -> Outcome:
    try:
        turns = rule.turns(row, index)
    except NoRecord:
        return Problem(row, "missing", f"the source has no record of this src_id{files.absent}")
    except Unfillable as error:
        return Problem(row, "unsupported", str(error))
    if len(turns) != len(row.turns):
        return Problem(row, "changed", f"its record gives {len(turns)} turns, the row has {len(row.turns)}")
    if not all(turn.strip() for turn in turns):
        return Problem(row, "changed", "its record gives an empty turn")
    return Filled(row, tuple(storable(turn) for turn in turns))


def template_of(row: Wanted) -> str:
    """Return the template of a row: what stands in its first turn after the sentinel and a blank line.

    Raises
    ------
    Unfillable
        If it has none.
    """
    template = row.turns[0].removeprefix(f"{SENTINEL}\n\n")
    if template == row.turns[0] or not template:
        raise Unfillable("its rows hold a template as a rule, and this one does not")
    return template


def fill_template(template: str, values: Mapping[str, str | Mapping[str, Any]]) -> str:
    """Return a template of Python's format syntax with its fields filled: `{name}`, or `{name[key]}` of a mapping.

    What is filled in is never read as a template itself, so braces in it stay.

    >>> fill_template("To {question[de]}: {{{kind}}}", {"question": {"de": "{ab}"}, "kind": "x"})
    'To {ab}: {x}'

    Raises
    ------
    Unfillable
        If the braces do not match, or a field is not known or asks for more than a text.
    """
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise Unfillable(f"its template cannot be read: {error}") from None
    texts: list[str] = []
    for literal, name, spec, conversion in pieces:
        texts.append(literal)
        if name is None:
            continue
        if spec or conversion:
            raise Unfillable(f"its template formats the field {name!r}")
        texts.append(_field(name, values))
    return "".join(texts)


def _field(name: str, values: Mapping[str, str | Mapping[str, Any]]) -> str:
    match = re.fullmatch(r"(\w+)(?:\[(\w+)\])?", name)
    value: Any = values.get(match[1]) if match else None
    if match and match[2] and isinstance(value, Mapping):
        value = value.get(match[2])
    elif match and match[2]:
        value = None
    if not isinstance(value, str):
        raise Unfillable(f"its template has the field {name!r}, which this source does not give")
    return value


def _found(index: Mapping[Any, Mapping[str, Any]], key: Any) -> Mapping[str, Any]:
    record = index.get(key)
    if record is None:
        raise NoRecord(key)
    return record


def _places(row: Wanted, at_least: int) -> list[int]:
    """Return the places in a src_id: the numbers, each after a `_`."""
    places = [int(digits) for digits in _NUMBER.findall(row.src_id)]
    if len(places) < at_least:
        raise Unfillable(f"its src_id {row.src_id!r} names {len(places)} records, {at_least} are needed")
    return places
