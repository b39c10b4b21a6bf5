"""Whether the card says what the files hold: its front matter, its tables and the numbers of its prose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml  # type: ignore[import-untyped]

from cards.stamps import without_stamps
from curation.verify.base import CARD, Fault, Subject

_FRONT_MATTER = re.compile(r"\A\ufeff?---\r?\n(.*?)\r?\n---(?:\r?\n|\Z)", re.DOTALL)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_CLAIM = re.compile(r"(?<![\d.,])(\d[\d,]*) (prompts|rows|categories|configs)\b")
_WHOLE_NUMBER = re.compile(r"\d[\d,]*")
_AGAIN = "render the card again: build it, or mend it by hand"

_ARROW_TO_FEATURE = {pa.string(): "string", pa.large_string(): "large_string", pa.bool_(): "bool"}


@dataclass(slots=True)
class Counts:
    """What the files hold: rows by config, and by category in each."""

    by_config: dict[str, int] = field(default_factory=dict)
    by_category: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, subject: Subject) -> Counts:
        """Count the rows of every readable config."""
        counts = cls()
        for config, schema in subject.schemas.items():
            columns = ["category"] if "category" in schema.names else [schema.names[0]]
            rows = [row.values.get("category", "") for row in subject.rows(config, columns)]
            counts.by_config[config], counts.by_category[config] = len(rows), Counter(rows)
        return counts

    def allowed(self, noun: str) -> set[int]:
        """Return the numbers that may truly stand before a noun."""
        categories = [len(counter) for counter in self.by_category.values()]
        if noun == "configs":
            return {len(self.by_config)}
        if noun == "categories":
            every = {name for counter in self.by_category.values() for name in counter}
            return {*categories, len(every)}
        rows = [n for counter in self.by_category.values() for n in counter.values()]
        return {sum(self.by_config.values()), *self.by_config.values(), *rows}


def check_card(subject: Subject) -> Iterator[Fault]:
    """Find claims of the card that the files do not bear out."""
    data = subject.read(CARD)
    if data is None:
        yield Fault("card", CARD, "", "absent", _AGAIN)
        return
    # What a release wrote into it tells of versions and differences, not of these files.
    text = without_stamps(data.decode("utf-8", "replace"))
    match = _FRONT_MATTER.match(text)
    matter = _matter(match[1]) if match else None
    if match is None or matter is None:
        yield Fault("card", CARD, "front matter", "absent, or not YAML", _AGAIN)
        return
    counts = Counts.of(subject)
    yield from _check_configs(subject, matter)
    yield from _check_info(subject, matter, counts)
    link = matter.get("license_link")
    if isinstance(link, str) and "://" not in link and subject.read(link) is None:
        yield Fault("card", CARD, "license_link", f"names {link}, which is absent", _AGAIN)
    body = text[match.end() :]
    yield from _check_tables(body, counts)
    yield from _check_prose(body, counts)


def features_of(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the features of a schema as `dataset_info` writes them."""
    return [_feature(each.name, each.type) for each in schema]


def _feature(name: str, kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        return {"name": name, "list": _dtype(kind.value_type)}
    return {"name": name, "dtype": _dtype(kind)}


def _dtype(kind: pa.DataType) -> str:
    return _ARROW_TO_FEATURE.get(kind, str(kind))


def _matter(text: str) -> dict[str, Any] | None:
    try:
        matter = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return matter if isinstance(matter, dict) else None


def _check_configs(subject: Subject, matter: Mapping[str, Any]) -> Iterator[Fault]:
    entries = _entries(matter, "configs")
    names = [entry.get("config_name") for entry in entries]
    for name in names:
        if not isinstance(name, str) or names.count(name) > 1:
            yield Fault("card", CARD, "configs", f"config_name {name!r} is no text, or stands there twice", _AGAIN)
    for name in sorted(set(subject.configs) ^ {name for name in names if isinstance(name, str)}):
        where = "has no file" if name in names else "has a file and no entry"
        yield Fault("card", CARD, "configs", f"{name} {where}", _AGAIN)
    if subject.is_ours and sum(bool(entry.get("default")) for entry in entries) != 1:
        yield Fault("card", CARD, "configs", "not exactly one config is the default", _AGAIN)
    for entry in entries:
        paths = [p.relative_to(subject.folder).as_posix() for p in subject.configs.get(str(entry["config_name"]), [])]
        files = entry.get("data_files")
        exact = [{"split": "test", "path": path} for path in paths]
        if subject.is_ours and paths and files != exact:
            message = f"data_files of {entry['config_name']} are not split test of {', '.join(paths)}"
            yield Fault("card", CARD, "configs", message, _AGAIN)


def _check_info(subject: Subject, matter: Mapping[str, Any], counts: Counts) -> Iterator[Fault]:
    entries = {entry.get("config_name"): entry for entry in _entries(matter, "dataset_info")}
    for config, schema in subject.schemas.items():
        entry = entries.get(config)
        where = f"dataset_info of {config}"
        if entry is None:
            yield Fault("card", CARD, where, "absent", _AGAIN)
            continue
        stated = entry.get("features") or []
        yield from _check_features(where, stated, features_of(schema))
        splits = entry.get("splits") or [{}]
        if splits[0].get("num_examples") != counts.by_config[config]:
            message = f"num_examples {splits[0].get('num_examples')}, the data has {counts.by_config[config]}"
            yield Fault("card", CARD, where, message, _AGAIN)
        if subject.is_ours:
            yield from _check_sizes(subject, config, entry)


def _check_features(
    where: str, stated: Sequence[Mapping[str, Any]], real: Sequence[Mapping[str, Any]]
) -> Iterator[Fault]:
    by_name = {feature.get("name"): dict(feature) for feature in stated}
    for feature in real:
        if feature["name"] not in by_name:
            yield Fault("card", CARD, where, f"features lack {feature['name']!r}", _AGAIN)
        elif by_name[feature["name"]] != feature:
            message = f"feature {feature['name']!r} is {by_name[feature['name']]}, the data has {dict(feature)}"
            yield Fault("card", CARD, where, message, _AGAIN)
    for name in sorted(set(map(str, by_name)) - {feature["name"] for feature in real}):
        yield Fault("card", CARD, where, f"feature {name!r} is not in the data", _AGAIN)


def _check_sizes(subject: Subject, config: str, entry: Mapping[str, Any]) -> Iterator[Fault]:
    num_bytes = 0
    for path in subject.configs[config]:
        try:
            with pq.ParquetFile(path) as file:
                num_bytes += sum(batch.nbytes for batch in file.iter_batches(batch_size=1_024))
        except (pa.ArrowException, OSError):
            return  # the check `parquet` says so
    download = sum(path.stat().st_size for path in subject.configs[config])
    splits = entry.get("splits") or [{}]
    for name, stated, real in (
        ("num_bytes", splits[0].get("num_bytes"), num_bytes),
        ("dataset_size", entry.get("dataset_size"), num_bytes),
        ("download_size", entry.get("download_size"), download),
    ):
        if stated != real:
            yield Fault("card", CARD, f"dataset_info of {config}", f"{name} {stated}, the data has {real}", _AGAIN)


def _check_tables(body: str, counts: Counts) -> Iterator[Fault]:
    """Compare the tables that give `rows` (or `prompts`) a config or a category."""
    for header, rows in tables(body):
        wanted = next((i for i, name in enumerate(header) if name.lower() in ("rows", "prompts")), None)
        kind = header[0].lower()
        if wanted is None or kind not in ("config", "category"):
            continue
        stated = {row[0].strip("`"): row[wanted] for row in rows if len(row) == len(header)}
        real = counts.by_config if kind == "config" else _closest(counts, stated)
        for name, cell in stated.items():
            if not _WHOLE_NUMBER.fullmatch(cell):
                continue
            number = int(cell.replace(",", ""))
            if name not in real:
                yield Fault("card", CARD, f"table of {header[0]}", f"{name} {number} has no rows in the data", _AGAIN)
            elif number != real[name]:
                message = f"{name} {number}, the data has {real[name]}"
                yield Fault("card", CARD, f"table of {header[0]}", message, _AGAIN)
        for name in sorted(set(real) - set(stated)):
            message = f"{name} is absent, the data has {real[name]}"
            yield Fault("card", CARD, f"table of {header[0]}", message, _AGAIN)


def _closest(counts: Counts, stated: Mapping[str, str]) -> Mapping[str, int]:
    """Return the counts of the config whose categories a table names; the first of those that fit equally well."""
    return max(counts.by_category.values(), key=lambda counter: len(set(counter) & set(stated)), default=Counter())


def _check_prose(body: str, counts: Counts) -> Iterator[Fault]:
    prose = _CODE.sub("", "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("|")))
    for match in _CLAIM.finditer(prose):
        allowed = counts.allowed(match[2])
        if int(match[1].replace(",", "")) not in allowed:
            has = ", ".join(map(str, sorted(allowed)))
            yield Fault("card", CARD, "text", f"'{match[0]}', the data has {has}", _AGAIN)


def tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the header and the rows of each Markdown table, cells stripped."""
    block: list[list[str]] = []
    for line in (*text.splitlines(), ""):
        if line.lstrip().startswith("|"):
            block.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if len(block) > 1:
            yield block[0], block[2:]
        block = []


def _entries(matter: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = matter.get(key) or []
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, dict)]
