"""Whether a DIST is what its recipe and its sources say: counts, lengths, the full texts, the pins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from curation.errors import BuildError, RecipeError
from curation.ids import turns_sha256
from curation.load import is_placeholder
from curation.recipe import Recipe, TokenizerConfig
from curation.schema import SPLIT_SCHEMA
from curation.throughput.lengths import config_name, slots
from curation.tokenizer import Tokenizer, load_tokenizer
from curation.verify.base import CARD, Fault, Subject
from curation.verify.rows import SPEC_BENCH
from sources.base import CATEGORIES, TIERS
from sources.lock import missing_pins, source_revision

MANIFEST = "../manifest.json"
LOCK = "lock.toml"
SPEC_BENCH_ROWS = 480
"""Six tasks of 80 questions."""

_REBUILD = "build it again"
_SHORT = "add sources or candidates, or verify it with --local as a build that is allowed to be short"


def expected_cells(recipe: Recipe, parts: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Return config -> category or tier -> rows that a recipe asks for; Spec-Bench's are not told apart."""
    cells: dict[str, dict[str, int]] = {}
    if "qualitative" in parts:
        categories = recipe.selection.categories or CATEGORIES
        cells["qualitative"] = dict.fromkeys(categories, recipe.selection.quota)
        for k in recipe.selection.nested:
            cells[f"qualitative_{k}"] = dict.fromkeys(categories, k)
    if "throughput" in parts:
        for config, by_tier in slots(recipe.throughput, TIERS).items():
            cells[config] = {tier: len(lengths) for tier, lengths in by_tier.items()}
    return cells


def check_counts(subject: Subject) -> Iterator[Fault]:
    """Find configs, categories and tiers with more or fewer rows than the recipe asks for."""
    manifest, recipe = subject.manifest, subject.recipe
    if manifest is None:
        return
    if recipe is None or recipe.digest() != manifest.get("recipe_digest"):
        yield Fault("counts", MANIFEST, "", "its recipe is not the one of its recipe_digest", _REBUILD)
        return
    cells = expected_cells(recipe, tuple(manifest.get("parts", ("qualitative", "throughput"))))
    may_be_short = subject.is_local and bool(manifest.get("allow_short"))
    for config, wanted in cells.items():
        found = Counter(row["category"] for row in subject.rows(config, ["category"]))
        for name in sorted({*wanted, *found}):
            have, need = found.get(name, 0), wanted.get(name, 0)
            if have > need or (have < need and not may_be_short):
                yield Fault(
                    "counts", f"data/{config}.parquet", name, f"{have} rows, the recipe asks for {need}", _SHORT
                )
    if SPEC_BENCH in subject.configs:
        have = sum(1 for _ in subject.rows(SPEC_BENCH, ["category"]))
        if have != SPEC_BENCH_ROWS and not may_be_short and not subject.is_local:
            message = f"{have} rows, Spec-Bench has {SPEC_BENCH_ROWS}"
            yield Fault("counts", f"data/{SPEC_BENCH}.parquet", "", message, _REBUILD)
    for config in sorted(set(subject.configs) - {*cells, SPEC_BENCH}):
        yield Fault("counts", f"data/{config}.parquet", "", "the recipe asks for no such config", "delete it")
    for config in sorted(set(manifest.get("configs", ())) - set(subject.configs)):
        yield Fault("counts", f"data/{config}.parquet", "", "absent, though manifest.json lists it", _REBUILD)


def check_lengths(subject: Subject) -> Iterator[Fault]:
    """Find rows whose text does not encode to exactly `num_tokens`, and buckets with rows of another length."""
    tokenizer, faults = _tokenizer(subject)
    yield from faults
    for config in subject.sound:
        bucket = _bucket(subject, config)
        for row in subject.rows(config, ["question_id", "num_tokens"]):
            if bucket is not None and row["num_tokens"] != bucket:
                message = f"num_tokens is {row['num_tokens']}, its bucket is {bucket}"
                yield Fault("lengths", row.file, row.name, message, _REBUILD)
        if tokenizer is not None:
            yield from _encoded_lengths(subject, config, tokenizer)


def check_full(subject: Subject) -> Iterator[Fault]:
    """Find rows of `full/` that are not those of `dist/`, or whose text is not the one of its digest."""
    if subject.full is None:
        if not subject.is_local:
            yield Fault("full", "../full", "", "absent, so no placeholder can be checked", _REBUILD)
        return
    same = [name for name in SPLIT_SCHEMA.names if name not in ("turns", "text_status")]
    for config in subject.sound:
        own = subject.rows(config, same)
        whole = subject.rows(config, [*same, "turns"], subject.full)
        while True:
            mine, theirs = next(own, None), next(whole, None)
            if mine is None and theirs is None:
                break
            if mine is None or theirs is None:
                yield Fault("full", f"data/{config}.parquet", "", "dist and full have not as many rows", _REBUILD)
                break
            different = [name for name in same if mine[name] != theirs[name]]
            if different:
                message = f"{', '.join(different)} differ in full/"
                yield Fault("full", mine.file, mine.name, message, _REBUILD)
            elif turns_sha256(theirs["turns"]) != theirs["turns_sha256"]:
                message = "its text in full/ is not the one of its turns_sha256"
                yield Fault("full", mine.file, mine.name, message, _REBUILD)


def check_sources(subject: Subject) -> Iterator[Fault]:
    """Find what keeps a build from being a release: another origin than the pinned sources, and open pins."""
    manifest = subject.manifest
    if subject.is_local:
        return
    if manifest is None:
        message = "absent: a release is made of a whole build"
        yield Fault("sources", MANIFEST, "", message, "name the dist/ of a build, or check what can be with --local")
        return
    origin = manifest.get("origin", "")
    if origin != "hub":
        message = f"built from {origin or 'nowhere known'}, so nothing ties its records to a revision"
        yield Fault("sources", MANIFEST, "", message, "build it from the sources themselves to release it, or --local")
    if manifest.get("allow_short"):
        yield Fault("sources", MANIFEST, "", "built with --allow-short", "build it without")
    for name, built in sorted(manifest.get("sources", {}).items()):
        if name in subject.specs:
            yield from _pin_faults(subject, name, built, is_hub=origin == "hub")
        else:
            yield Fault("sources", MANIFEST, name, "no registered source", _REBUILD)


def _pin_faults(subject: Subject, name: str, built: Mapping[str, Any], *, is_hub: bool) -> Iterator[Fault]:
    spec, lock = subject.specs[name], subject.lock
    missing = missing_pins(spec, lock)
    if missing:
        yield Fault("sources", LOCK, name, f"not pinned: {', '.join(missing)}", "run: speedbench sources lock")
    elif built.get("revision") != source_revision(spec, lock):
        message = f"built from {str(built.get('revision'))[:12]!r}, pinned is {source_revision(spec, lock)[:12]!r}"
        yield Fault("sources", MANIFEST, name, message, _REBUILD)
    if not is_hub:
        return
    pinned = {path: file.sha256 for path, file in lock.of(spec).by_path().items()}
    for path, digest in sorted(built.get("files", {}).items()):
        if path in pinned and pinned[path] != digest:
            yield Fault("sources", MANIFEST, name, f"{path} is not the file that is pinned", _REBUILD)


def _bucket(subject: Subject, config: str) -> int | None:
    if subject.recipe is not None:
        return {config_name(n): n for n in subject.recipe.throughput.buckets}.get(config)
    number = config.removeprefix("throughput_")
    if number == config or not number.removesuffix("k").isdigit():
        return None
    return int(number[:-1]) * 1_000 if number.endswith("k") else int(number)


def _tokenizer(subject: Subject) -> tuple[Tokenizer | None, list[Fault]]:
    config = subject.recipe.tokenizer if subject.recipe is not None else TokenizerConfig()
    if subject.recipe is None and config.name not in (subject.read(CARD) or b"").decode("utf-8", "replace"):
        return None, []  # `unknown_tokenizer` says so
    try:
        tokenizer = _loaded(config)
    except (BuildError, RecipeError) as error:
        return None, [Fault("lengths", MANIFEST, "tokenizer", str(error), "and check again")]
    stated = (subject.manifest or {}).get("tokenizer", {}).get("sha256", tokenizer.sha256)
    if stated != tokenizer.sha256:
        message = f"the vocabulary of {tokenizer.name} here is not the one of the build"
        return None, [Fault("lengths", MANIFEST, "tokenizer", message, _REBUILD)]
    return tokenizer, []


# Kept: digesting a vocabulary takes a second, and a release verifies more than once.
_loaded = cache(load_tokenizer)


def unknown_tokenizer(subject: Subject) -> str:
    """Say why lengths are not checked."""
    if not subject.is_ours:
        return "the rows state no lengths"
    name = TokenizerConfig().name
    known = subject.recipe is not None or name in (subject.read(CARD) or b"").decode("utf-8", "replace")
    return "" if known else f"neither a manifest nor the card names its tokenizer as {name}"


def _encoded_lengths(subject: Subject, config: str, tokenizer: Tokenizer) -> Iterator[Fault]:
    for row in subject.rows(config, ["question_id", "turns", "num_tokens"], subject.full):
        if is_placeholder(row["turns"]):
            continue  # its text is not here: the number stands for it
        found = sum(len(tokenizer.encode_ordinary(turn)) for turn in row["turns"])
        if found != row["num_tokens"]:
            message = f"its text has {found} tokens of {tokenizer.name}, num_tokens says {row['num_tokens']}"
            yield Fault("lengths", row.file, row.name, message, _REBUILD)
