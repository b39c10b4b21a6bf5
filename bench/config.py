"""The configuration of a run: one TOML file, every key known, digested."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench.engines.base import Sampling
from bench.errors import ConfigError

AllowedGate = Literal["client", "looping", "one_token"]
"""A gate that whoever runs may leave shut and still be shown the figures, marked."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""A part of the name of a file or folder that a run leaves: it cannot lead out of the folder."""
RUN_FILES = frozenset({"run.json", "summary.json", "traces.jsonl", "workers.jsonl", "lossless.json", "server.log"})


class Section(BaseModel):
    """A frozen table; an unknown key is an error, and so is a number that is none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ServeConfig(Section):
    """A server that the runner starts and stops."""

    command: tuple[str, ...] = Field(min_length=1)
    health: str = Field("/health", description="path that answers 200 once the engine is up")
    env: dict[str, str] = {}
    startup_s: float = Field(900.0, gt=0)
    shutdown_s: float = Field(30.0, gt=0)


class EngineConfig(Section):
    """The server, how it is spoken to, and what is known of it."""

    dialect: str = Field(description="a name of bench.engines.registry")
    url: str = Field(pattern=r"^https?://")
    model: str = "default"
    tokenizer: str = Field("", description="folder or Hub id: tokenizer.json and the chat template; needed for ids")
    chat_template_kwargs: dict[str, Any] = {}
    draft_length: int | None = Field(None, ge=0, description="k as the server was started; 0: no speculation")
    draft_model: str = ""
    model_revision: str = ""
    draft_revision: str = ""
    num_gpus: int | None = Field(None, ge=1)
    synthetic_acceptance: bool = Field(False, description="the server makes acceptance up; no figure is published")
    flags: tuple[str, ...] = Field((), description="how the server was started, where the runner did not start it")
    recipe: str = Field("", description="name of the shipped recipe that this table was made from")
    headers: dict[str, str] = {}
    api_key_env: str = Field("", description="environment variable that holds the key; the key itself is never kept")
    serve: ServeConfig | None = None

    @property
    def speculative(self) -> bool:
        """Whether the server speculates, as far as the configuration tells."""
        return self.draft_length != 0


class DataConfig(Section):
    """The rows that are sent."""

    format: Literal["dist", "spec_bench", "mt_bench", "jsonl", "random"] = "dist"
    path: str = Field("", description="DIST, or the file of another format")
    config: FileName = Field("qualitative", description="config of a DIST")
    limit: int | None = Field(None, ge=1, description="first rows of each category")
    categories: tuple[str, ...] = Field((), description="categories, or tiers, that are sent; empty: all")
    allow_partial: bool = Field(False, description="leave placeholder rows out and say how many")
    first_turn_only: bool = False
    random_rows: int = Field(64, ge=1)
    random_isl: int = Field(256, ge=1, description="tokens of a random prompt")
    random_tokenizer: str = Field(
        "", description="folder with tokenizer.json: ids over its whole vocabulary, as vLLM's"
    )
    seed: int = 0


class LoadConfig(Section):
    """How the requests arrive."""

    mode: Literal["closed", "constant", "poisson", "gamma", "trace"] = "closed"
    concurrency: int = Field(1, ge=1, description="conversations at once in a closed loop")
    rate_per_s: float | None = Field(None, gt=0)
    shape: float = Field(1.0, gt=0, description="of gamma gaps")
    trace: str = Field("", description="file with one arrival a line, seconds")
    seed: int = 0
    repeats: int = Field(1, ge=1)
    warmup_requests: int = Field(8, ge=0)
    cache: Literal["cold", "warm"] = "cold"

    @model_validator(mode="after")
    def _stated(self) -> LoadConfig:
        if self.mode in ("constant", "poisson", "gamma") and self.rate_per_s is None:
            raise ValueError(f"load.rate_per_s must be given for mode {self.mode}")
        if self.mode == "trace" and not self.trace:
            raise ValueError("load.trace must name a file for mode trace")
        return self


class SamplingConfig(Section):
    """How tokens are drawn."""

    max_tokens: int = Field(1024, ge=1)
    temperature: float = Field(0.0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = 0
    ignore_eos: bool = False

    def sampling(self) -> Sampling:
        """Return the settings as engines take them."""
        return Sampling(self.max_tokens, self.temperature, self.top_p, self.seed, self.ignore_eos)


class ClientConfig(Section):
    """The client itself; not part of the digest."""

    transport: Literal["lean", "aiohttp"] = "lean"
    workers: int | None = Field(None, ge=1, description="default: cores less one")
    request_timeout_s: float = Field(600.0, gt=0)


class LimitsConfig(Section):
    """Goodput limits, and when a run or its figures are refused."""

    ttft_s: float | None = Field(None, gt=0)
    tpot_s: float | None = Field(None, gt=0)
    max_failed_share: Share = 0.05
    max_consecutive_failures: int = Field(20, ge=1, description="after as many the engine counts as gone")
    min_coverage: Share = Field(0.9, description="share of requests with acceptance counters below which none is shown")
    max_looping_share: Share = 0.2
    allow: tuple[AllowedGate, ...] = Field(
        (), description="gates that hold no figure back; every table and page names those of them that are shut"
    )
    max_run_s: float | None = Field(None, gt=0)


class ServerVariant(Section):
    """One way to start or find the server in a sweep; the fields replace those of `engine`, a recipe all of it."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    recipe: str = Field("", description="name of a shipped recipe; it fills `engine`, its command included")
    paths: dict[str, str] = Field({}, description="folders and files that the recipe's command names")
    url: str | None = Field(None, pattern=r"^https?://")
    draft_length: int | None = Field(None, ge=0)
    flags: tuple[str, ...] = ()
    serve: ServeConfig | None = None


class VocabularyConfig(Section):
    """Token counts of a training text, for the experiment on pruned vocabularies."""

    counts: str = Field("", description="JSON of id to count, or .npy of counts by id")
    corpus: str = Field("", description="text file, folder of text files, or .npy of ids; `{stdlib}`: Python's library")
    top_k: tuple[Annotated[int, Field(ge=1)], ...] = (16_000, 32_000, 64_000)

    @model_validator(mode="after")
    def _one_source(self) -> VocabularyConfig:
        if bool(self.counts) == bool(self.corpus):
            raise ValueError("give sweep.vocabulary.counts or sweep.vocabulary.corpus, and not both")
        return self


class SweepConfig(Section):
    """The grid of a sweep: servers x data x configs x temperatures x concurrencies, each `repeats` times."""

    experiment: str = Field("", description="name of the experiment that the points are read as; empty: a plain sweep")
    concurrency: tuple[Annotated[int, Field(ge=1)], ...] = Field((1, 8, 64), min_length=1)
    config: tuple[FileName, ...] = Field((), description="configs of the DIST; empty: the one of [data]")
    data: dict[FileName, dict[str, Any]] = Field({}, description="by name, fields of [data] that a variant replaces")
    temperature: tuple[Annotated[float, Field(ge=0)], ...] = Field((), description="empty: the one of [sampling]")
    servers: tuple[ServerVariant, ...] = ()
    repeats: int = Field(1, ge=1, description="times that each server is started and its points are run")
    pages: dict[FileName, str] = Field({}, description="file and path of JSON pages kept before and after each point")
    vocabulary: VocabularyConfig | None = None

    @model_validator(mode="after")
    def _each_once(self) -> SweepConfig:
        axes: dict[str, tuple[Any, ...]] = {
            "concurrency": self.concurrency,
            "config": self.config,
            "temperature": self.temperature,
            # Folders of points: two names that differ in case only are one on some disks.
            "servers": tuple(server.name.lower() for server in self.servers),
            "data": tuple(name.lower() for name in self.data),
        }
        for axis, values in axes.items():
            for value in values:
                if values.count(value) > 1:
                    raise ValueError(f"sweep.{axis} has {value!r} twice; each point is run once, repeats set aside")
        kept = sorted(RUN_FILES & self.pages.keys())
        if kept:
            raise ValueError(f"sweep.pages would write over the run's own {kept[0]}; name the page otherwise")
        return self


class BenchConfig(Section):
    """One run, whole."""

    name: str = Field("run", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    note: str = Field("", description="a caution that every table and page must carry: 'short mark: what it means'")
    engine: EngineConfig
    data: DataConfig = DataConfig()
    load: LoadConfig = LoadConfig()
    sampling: SamplingConfig = SamplingConfig()
    client: ClientConfig = ClientConfig()
    limits: LimitsConfig = LimitsConfig()
    sweep: SweepConfig | None = None

    def digest(self) -> str:
        """Return the SHA-256 of everything that can change a trace: not recipe, note, client, limits and sweep."""
        values = self.model_dump(mode="json", exclude={"note", "client", "limits", "sweep"})
        # Where the table came from cannot change a trace; what it holds can.
        values["engine"].pop("recipe")
        text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def load_config(path: str | Path) -> BenchConfig:
    """Return the configuration in a TOML file.

    Raises
    ------
    ConfigError
        If there is no such file, it is not TOML, or a field is unknown, missing or out of range.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; give the path of a TOML file") from None
    return parse_config(parse_toml(decoded(data, str(path)), str(path)), str(path))


def decoded(data: bytes, where: str) -> str:
    """Return the text of a file that a person wrote: UTF-8, and a byte order mark, which editors put there, is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: byte {error.start}: not UTF-8; save the file as UTF-8") from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the values of a TOML text; `where` names it in errors."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply to be read") from None


def parse_config(values: dict[str, Any], where: str) -> BenchConfig:
    """Return the configuration in parsed values; `where` names them in errors."""
    try:
        return BenchConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "configuration"
        raise ConfigError(f"{where}: {field}: {first['msg']}") from None
