"""How the embedded server is started. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EmbeddedOptions:
    """What the embedded server serves, and how it drafts.

    Attributes
    ----------
    draft
        GGUF of the drafter; None where no model drafts.
    draft_length
        Most tokens of a draft, k >= 1, where one is given by `draft`.
    ngram
        Most tokens of a draft that repeats what followed the last `ngram_match` tokens before; 0: no such drafts.
    ngram_match
        Tokens that must be found again before what followed them is drafted.
    parallel
        Requests that are decoded at once; a further one waits.
    context
        Positions of one request, prompt and answer together.
    threads
        Threads of a forward; more than one pays for larger models only.
    probabilistic
        Draft by sampling from the drafter's distribution, as speculative sampling does; else its likeliest token.
    """

    model: Path
    port: int
    draft: Path | None = None
    draft_length: int = 3
    ngram: int = 0
    ngram_match: int = 3
    parallel: int = 1
    context: int = 8192
    threads: int = 1
    probabilistic: bool = False

    def __post_init__(self) -> None:
        if self.draft is not None and self.ngram:
            raise ConfigError("--draft and --ngram exclude each other: an engine drafts in one way")
        if self.probabilistic and self.draft is None:
            raise ConfigError("--probabilistic: only a drafter has a distribution; give --draft as well")
        for option, path in (("--model", self.model), ("--draft", self.draft)):
            if path is not None and not path.is_file():
                raise ConfigError(f"{option} {path}: no such file; name a .gguf")
