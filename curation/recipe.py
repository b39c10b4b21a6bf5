"""The recipe: everything that can change a published byte, read from TOML and digested."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from curation.errors import RecipeError
from sources.base import CATEGORIES

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Section(BaseModel):
    """A frozen table of the recipe; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FilterConfig(Section):
    """Which records are too odd to be candidates, and when their language is doubted."""

    max_chars: int = Field(100_000, gt=0, description="longest text of all turns together, in code points")
    min_chars: int = Field(1, gt=0, description="shortest own text, in code points")
    language_warning_from: Share = Field(0.9, description="langdetect probability from which it may warn")
    language_min_chars: int = Field(40, ge=0, description="texts shorter than this are not judged")
    language_max_judged: int = Field(
        250, ge=0, description="texts of a source and language, by a seeded hash of the id"
    )
    seed: int = 0


class CandidatesConfig(Section):
    """How many candidates of one source and language may go on, chosen by a seeded hash of the id."""

    max_per_source_language: int = Field(4_000, gt=0)
    seed: int = 0


class DedupConfig(Section):
    """What counts as the same text inside the pool."""

    ngram_size: int = Field(5, ge=1, description="tokens in a shingle")
    num_perm: int = Field(128, ge=16)
    jaccard_threshold: float = Field(0.7, gt=0.0, le=1.0)
    max_miss_probability: float = Field(1e-9, gt=0.0, lt=1.0, description="of a pair at the threshold, by the LSH")
    cosine_threshold: float = Field(0.95, gt=0.0, le=1.0)
    max_pairs: int = Field(20_000_000, gt=0, description="semantic pairs after which the build refuses")


class ReferenceConfig(Section):
    """A training set whose texts must not be candidates: files of a mirror, or of the Hub at a pinned revision."""

    name: str = Field(min_length=1)
    path: str = Field(description="a pattern under the mirror, or hf://datasets/org/name@<40 hex digits>/pattern")
    text: str = Field("", description="column of the text or of the chat; found where empty")

    @field_validator("path")
    @classmethod
    def _is_pinned(cls, path: str) -> str:
        if path.startswith("hf://") and not re.fullmatch(r"hf://datasets/[^/@]+/[^/@]+@[0-9a-f]{40}/.+", path):
            raise ValueError(f"must read hf://datasets/org/name@<40 hex digits>/path, got {path!r}")
        return path


class DecontaminateConfig(Section):
    """Reference sets against which candidates are checked."""

    reference: tuple[ReferenceConfig, ...] = ()
    action: Literal["drop", "flag"] = "drop"

    @field_validator("reference")
    @classmethod
    def _names_differ(cls, reference: tuple[ReferenceConfig, ...]) -> tuple[ReferenceConfig, ...]:
        names = [one.name for one in reference]
        if len(set(names)) < len(names):
            raise ValueError(f"two reference sets share a name: {', '.join(sorted(names))}")
        return reference


class EmbedderConfig(Section):
    """What turns a text into a vector."""

    name: Literal["openai", "use"] = "openai"
    model: str = "text-embedding-3-large"
    dimensions: int = Field(3072, gt=0)
    max_tokens: int = Field(8_192, gt=0, description="tokens of one input; the rest of a longer one is not embedded")


class SelectionConfig(Section):
    """How many rows a category gets, and how hard the search for them is."""

    quota: int = Field(80, ge=2)
    nested: tuple[int, ...] = Field((), description="smaller sets inside the larger, e.g. 20 -> qualitative_20")
    starts: int = Field(8, ge=1, description="greedy starts; the best result wins")
    seed: int = 0
    tabu_steps: int = Field(1_000, ge=0, description="steps of the search beyond single swaps, from each start")
    core_rows: int = Field(300, ge=0, description="rows whose shifts strengthen the bound; 0: the plain relaxation")
    bound_rounds: int = Field(2, ge=1, description="times the core is chosen anew")
    categories: tuple[str, ...] = Field((), description="empty: all eleven")

    @field_validator("categories")
    @classmethod
    def _are_known(cls, categories: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in categories if name not in CATEGORIES]:
            raise ValueError(f"no category {unknown[0]!r}; the categories are {', '.join(CATEGORIES)}")
        if len(set(categories)) < len(categories):
            raise ValueError(f"a category is named twice: {', '.join(categories)}")
        return categories


class TokenizerConfig(Section):
    """The tokenizer by which lengths are stated."""

    name: str = Field("o200k_base", description="a tiktoken encoding, or the path of a tokenizers JSON")
    sha256: str = Field("", description="digest of the JSON, for a path")


class SampledConfig(Section):
    """Rows of drawn lengths, the config `throughput_sampled`; every row is exact at its own."""

    distribution: Literal["lognormal", "uniform", "empirical"]
    rows: int = Field(gt=0, description="over all tiers, which take turns")
    min_tokens: int = Field(256, ge=64, description="shorter draws become this long")
    max_tokens: int = Field(32_000, ge=64, description="longer draws become this long")
    median_tokens: float = Field(2_000.0, gt=0.0, description="of the lognormal")
    sigma: float = Field(1.0, gt=0.0, description="standard deviation of the natural logarithm, of the lognormal")
    values: tuple[int, ...] = Field((), description="observed lengths, of the empirical")
    seed: int = 0

    @model_validator(mode="after")
    def _is_drawable(self) -> SampledConfig:
        if self.max_tokens < self.min_tokens:
            raise ValueError(f"max_tokens must be at least min_tokens {self.min_tokens}, got {self.max_tokens}")
        if self.distribution == "empirical" and not self.values:
            raise ValueError("the empirical distribution needs values")
        return self


class ThroughputConfig(Section):
    """The cells of the throughput split."""

    buckets: tuple[int, ...] = Field((1_000, 2_000, 8_000, 16_000, 32_000), description="tokens of each config's rows")
    rows_per_cell: int = Field(512, gt=0, description="rows a config and tier")
    max_pad_tokens: int = Field(8, ge=0, description="padding of a row, where no cut gives its length")
    max_shared_prefix_tokens: int = Field(63, ge=1, description="longest prefix that two rows of a config may share")
    seed: int = Field(0, description="of the order in which records are tried")
    sampled: SampledConfig | None = Field(None, description="absent: no config throughput_sampled")

    @model_validator(mode="after")
    def _buckets_are_usable(self) -> ThroughputConfig:
        if len(set(self.buckets)) != len(self.buckets):
            raise ValueError(f"buckets must differ, got {list(self.buckets)}")
        if not self.buckets and self.sampled is None:
            raise ValueError("no lengths: give buckets, or a table [throughput.sampled]")
        for n in self.buckets:
            if not 64 <= n <= 10_000_000:
                raise ValueError(f"a bucket must have 64 to 10,000,000 tokens, got {n}")
        return self


class Recipe(Section):
    """One build, whole."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    version: int = Field(1, ge=1)
    sources: tuple[str, ...] = Field((), description="names of the registry; empty: all that the splits need")
    filter: FilterConfig = FilterConfig()
    candidates: CandidatesConfig = CandidatesConfig()
    dedup: DedupConfig = DedupConfig()
    decontaminate: DecontaminateConfig = DecontaminateConfig()
    embedder: EmbedderConfig = EmbedderConfig()
    selection: SelectionConfig = SelectionConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    throughput: ThroughputConfig = ThroughputConfig()

    @model_validator(mode="after")
    def _nested_sets_fit(self) -> Recipe:
        for k in self.selection.nested:
            if not 2 <= k < self.selection.quota:
                raise ValueError(f"selection.nested must lie in [2, {self.selection.quota}), got {k}")
        return self

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON of every field, defaults included."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def shipped_recipes() -> tuple[str, ...]:
    """Return the names of the recipes in the package."""
    folder = resources.files("curation") / "recipes"
    return tuple(sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")))


def load_recipe(name_or_path: str) -> Recipe:
    """Return a shipped recipe by name, or one from a TOML file; `extends` names the recipe it starts from.

    Raises
    ------
    RecipeError
        If there is no such recipe, it is not TOML, or a field is unknown or out of range.
    """
    data = _read(name_or_path, seen=())
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "recipe"
        raise RecipeError(f"recipe {name_or_path}: {where}: {first['msg']}") from None


def _read(name_or_path: str, seen: tuple[str, ...]) -> dict[str, Any]:
    if name_or_path in seen:
        raise RecipeError(f"recipe {name_or_path}: extends itself through {' -> '.join(seen)}")
    shipped = shipped_recipes()
    if name_or_path in shipped:
        text = (resources.files("curation") / "recipes" / f"{name_or_path}.toml").read_text("utf-8")
    elif Path(name_or_path).is_file():
        text = _text_of(Path(name_or_path))
    else:
        raise RecipeError(f"recipe {name_or_path}: not a file and not one of {', '.join(shipped)}")
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RecipeError(f"recipe {name_or_path}: not TOML: {error}") from None
    parent = data.pop("extends", None)
    if parent is None:
        return data
    return _merged(_read(str(parent), (*seen, name_or_path)), data)


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError(f"recipe {path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except OSError as error:
        raise RecipeError(f"recipe {path}: cannot be read ({error.strerror}); check its permissions") from None


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged
