"""Where a build reads, how it works, and what it has found out so far."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from curation.stages.base import Drop
from sources.origins import Origin


@dataclass(frozen=True, slots=True)
class Options:
    """Where a build reads and how it works; nothing here can change a published byte, `allow_short` apart.

    Attributes
    ----------
    origin
        The Hub, a mirror or the samples.
    parts
        `qualitative`, `throughput` or both.
    allow_short
        Go on where a file is absent or a pool is smaller than its quota; the manifest says so.
    workers
        Processes; None for one a core.
    """

    origin: Origin
    parts: tuple[str, ...]
    allow_short: bool = False
    workers: int | None = None

    @property
    def num_workers(self) -> int:
        """How many processes to use."""
        return self.workers or os.cpu_count() or 1


@dataclass(slots=True)
class Book:
    """What a build has found out so far: the ledger's rows and the manifest's figures."""

    drops: list[Drop] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    configs: list[str] = field(default_factory=list)
    languages: set[str] = field(default_factory=set)
