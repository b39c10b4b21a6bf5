"""What a recipe says of one system: engine, command, models, method, and the figures that were published for it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from bench.config import Section

Length = Annotated[float, Field(ge=1.0)]
Environment = Literal["here", "vllm", "sglang", "specbench"]


class System(Section):
    """Where a system was described: a paper, and its column or row there; both "" for the toy pair."""

    paper: str = ""
    column: str = ""


class ModelRef(Section):
    """A model by its Hub id; `revision` and `weights_gb` only where they are known."""

    hf_id: str
    revision: str = ""
    weights_gb: float | None = Field(None, gt=0, description="parameters x bytes, GB; what the GPUs must hold at least")

    @property
    def is_toy(self) -> bool:
        """Whether it is a toy that this package makes: it needs no download, and no figure of it is a result."""
        return self.hf_id.startswith("toy-")


class EngineRecipe(Section):
    """The engine, and exactly how it is started.

    `command`, `env`, `options`, `model_name` and `tokenizer` may hold the placeholders that
    `bench.recipes.shipped` fills.
    """

    name: str = Field(description="the engine's own name")
    dialect: str = Field(description="a name of bench.engines.registry")
    environment: Environment = Field("here", description="whose interpreter: $SPEEDBENCH_<NAME>_PYTHON, or this one")
    packages: tuple[str, ...] = Field((), description="modules that the interpreter must find")
    program: str = Field("", description="program that must be on the path, where no interpreter is named")
    paper_version: str = Field("", description='version of the published figures, "" if none or not stated')
    image: str = Field("", description="container image that the paper names")
    renamed: dict[str, dict[str, str]] = Field(
        default_factory=dict, description="by an older version, its names of flags in the command"
    )
    command: tuple[str, ...] = Field(min_length=1)
    options: str = Field("", description="text of an options file, for engines that take what matters from one")
    options_name: str = "options.yaml"
    env: dict[str, str] = Field(default_factory=dict)
    health: str = "/health"
    startup_s: float = Field(1800.0, gt=0)
    model_name: str = Field("default", description="what requests call the model")
    tokenizer: str = "{tokenizer}"
    chat_template_kwargs: dict[str, bool | int | str] = Field(default_factory=dict)
    needs: tuple[str, ...] = Field((), description="names of folders or files that only the user can give")


class Method(Section):
    """How tokens are drafted and verified, in Spec-Bench's taxonomy.

    Attributes
    ----------
    strict_greedy
        Whether the output at temperature 0 is by design that of the target alone.
    stochastic
        Whether the output above temperature 0 is by design distributed as that of the target alone.
    """

    name: str
    drafting: Literal["independent", "self", "none"]
    verification: Literal["strict_greedy", "sampling", "token_tree", "none"]
    alignment: Literal["sequence_kd", "distribution_kd", "online", "none", "unknown"]
    strict_greedy: Literal["yes", "no", "unknown"]
    stochastic: Literal["yes", "no", "unknown"]


class Parallelism(Section):
    """GPUs and how the target is spread over them."""

    tp: int = Field(1, ge=1)
    ep: int = Field(1, ge=1)
    gpus: int = Field(1, ge=0, description="0: runs on the CPU")


class RecipeSampling(Section):
    """How tokens were drawn in the paper."""

    temperature: float = Field(0.0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int = Field(1024, ge=1)


class FlagsCheck(Section):
    """What the flags were held against: an engine's own parser, its text, or nothing."""

    how: Literal["parsed", "read", "run", "never"]
    against: str = Field("", description="which parser or text")
    version: str = ""

    @model_validator(mode="after")
    def _named(self) -> FlagsCheck:
        if self.how != "never" and not (self.against and self.version):
            raise ValueError(f"flags.against and flags.version must be given where flags.how is {self.how}")
        return self


class Published(Section):
    """Figures that others published for this system, with all that they hold for. Absent is not zero.

    Attributes
    ----------
    source
        Paper and table or equation.
    rows, rows_config
        Data set and config that the figures are over.
    split_sha256
        Digest of those rows as `bench.split` makes it, "" where nobody here could read them.
    self_reported
        Whether those who measured also made the method or the draft model.
    acceptance_length, speed_up
        By category, or by task; without the mean.
    """

    source: str
    rows: str
    rows_config: str = ""
    split_sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$")
    hardware: str
    batch_size: int | None = Field(None, ge=1)
    draft_length: int | None = Field(None, ge=0)
    precision: str = Field("", description='"" where the source states none')
    temperature: float | None = Field(None, ge=0, description="absent where the source states none")
    engine_version: str = ""
    self_reported: bool
    definition: str = Field("", description="of the acceptance length, where it is not SPEED-Bench's")
    acceptance_length: dict[str, Length] = Field(default_factory=dict)
    acceptance_length_mean: Length | None = None
    speed_up: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    speed_up_mean: float | None = Field(None, gt=0)


class Recipe(Section):
    """One system, whole."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    title: str
    system: System = System()
    engine: EngineRecipe
    target: ModelRef
    draft: ModelRef | None = None
    method: Method
    draft_length: int | None = Field(None, ge=0, description="0: no speculation; absent: the method has no one length")
    parallelism: Parallelism = Parallelism()
    batch_size: int = Field(1, ge=1, description="concurrency of the load, and what the server admits at once")
    repeats: int = Field(1, ge=1)
    sampling: RecipeSampling = RecipeSampling()
    flags: FlagsCheck
    ran: str = Field("", description="what was run where; empty: nothing")
    untested: str = Field("", description="what nobody here has run")
    notes: str = ""
    published: tuple[Published, ...] = ()

    @property
    def speculative(self) -> bool:
        """Whether the system drafts at all."""
        return self.method.drafting != "none"

    @model_validator(mode="after")
    def _plain_or_drafting(self) -> Recipe:
        if not self.speculative and (self.draft is not None or self.draft_length != 0):
            raise ValueError("a recipe without drafting has draft_length = 0 and no draft")
        return self
