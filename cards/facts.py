"""What a card may state: every figure of it comes from here, and comes here from files, the ledger and the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Counts = tuple[tuple[str, int], ...]
"""Names and how many rows have each, in the order in which they are printed."""


@dataclass(frozen=True, slots=True)
class LengthFacts:
    """Tokens of the rows of one group: quartiles by linear interpolation, and the mean."""

    minimum: int
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: int
    mean: float


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The rows of one category (or tier) of a config.

    Attributes
    ----------
    name
        The category.
    num_rows, num_placeholders, num_multiturn
        Rows, and how many of them are placeholders, or have more than one turn.
    tokens
        Their lengths, placeholders included: `num_tokens` is of the real text.
    difficulties
        Rows by difficulty; "" for rows whose source states none.
    languages
        Rows by declared language, BCP 47; "" for rows of which nothing is declared.
    """

    name: str
    num_rows: int
    num_placeholders: int
    num_multiturn: int
    tokens: LengthFacts
    difficulties: Counts
    languages: Counts


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """One config: its file, its rows and its columns with the types that `dataset_info` writes.

    `examples` holds what the first row whose text is published has in each column, as JSON, cut to a line.
    """

    name: str
    path: str
    num_rows: int
    num_placeholders: int
    num_bytes: int
    download_bytes: int
    sha256: str
    columns: tuple[tuple[str, str], ...]
    examples: tuple[str, ...]
    tokens: LengthFacts
    categories: tuple[GroupFacts, ...]

    @property
    def num_multiturn(self) -> int:
        """Rows of more than one turn."""
        return sum(group.num_multiturn for group in self.categories)


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """One source that gave rows: how many in which configs, from which revision, under which licence."""

    name: str
    title: str
    source: str
    url: str
    hub_id: str
    revision: str
    license: str
    license_title: str
    license_url: str
    spdx: str
    published: bool
    publish_reason: str
    num_rows: int
    num_placeholders: int
    configs: Counts
    citation: str


@dataclass(frozen=True, slots=True)
class CategoryFacts:
    """How one category was chosen: mean pairwise cosines, lower is more diverse; None where not measured.

    Attributes
    ----------
    name, candidates, chosen
        The category, the rows to choose from, and the rows chosen.
    mean_cosine, bound_cosine
        Of the chosen rows; and the value below which no choice of as many rows goes, proven.
    gap
        (objective - bound) / objective with the objective |sum of the rows|^2.
    spec_bench_cosine
        Of Spec-Bench's rows of the like category, by the same embedder.
    random_cosine
        Mean over seeded random choices of as many candidates.
    greedy_cosine
        Of greedy choice without swaps.
    """

    name: str
    candidates: int
    chosen: int
    mean_cosine: float | None
    bound_cosine: float | None
    gap: float | None
    spec_bench_cosine: float | None = None
    random_cosine: float | None = None
    greedy_cosine: float | None = None


@dataclass(frozen=True, slots=True)
class CellFacts:
    """Rows wanted and found in one config and tier of the throughput split, and the found ones by source."""

    config: str
    tier: str
    wanted: int
    found: int
    by_source: Counts


@dataclass(frozen=True, slots=True)
class SharedFacts:
    """What the rows of a throughput config share; None for a config of fewer than two rows.

    `longest_prefix` in tokens; the shares of a row's 8-grams of tokens that another row has too, in [0, 1].
    """

    config: str
    longest_prefix: int | None
    mean_share: float | None
    max_share: float | None


@dataclass(frozen=True, slots=True)
class ThroughputFacts:
    """The throughput split: its cells, what rows share, and where the order of the tiers does not hold."""

    cells: tuple[CellFacts, ...]
    shared: tuple[SharedFacts, ...]
    tier_sentences: tuple[str, ...]
    prefix_rule: str


@dataclass(frozen=True, slots=True)
class AuditFacts:
    """What `speedbench audit self` found among the rows of the full texts, as pairs of rows.

    `configs` holds the rows compared; the configs of `left_out` were too large to be compared during the build.
    """

    configs: Counts
    left_out: tuple[str, ...]
    faults: int
    contained: int
    by_construction: int
    jaccard_threshold: float


@dataclass(frozen=True, slots=True)
class PlotFacts:
    """A picture beside the card: its path in the DIST, and what it shows, in words."""

    path: str
    alt: str


@dataclass(frozen=True, slots=True)
class CardFacts:
    """All that a card of one build may state. What was not measured is None or empty, and the card says so.

    Attributes
    ----------
    recipe, recipe_digest, settings
        Name of the recipe, its SHA-256, and each of its settings under its dotted name.
    origin
        Where the records were read, in words.
    notes
        What a reader must know first about this build, e.g. that it is of samples or short.
    embedder, tokenizer
        With their versions.
    languages
        Declared languages of the rows, BCP 47, sorted.
    configs
        In the order of the card; the first is the default.
    drops
        (stage, reason, records) of the ledger.
    """

    recipe: str
    recipe_digest: str
    origin: str
    embedder: str
    tokenizer: str
    languages: tuple[str, ...]
    configs: tuple[ConfigFacts, ...]
    sources: tuple[SourceFacts, ...]
    categories: tuple[CategoryFacts, ...]
    drops: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    throughput: ThroughputFacts | None = None
    self_audit: AuditFacts | None = None
    plots: tuple[PlotFacts, ...] = ()

    @property
    def main(self) -> ConfigFacts:
        """The config whose statistics the card shows by category: the default one."""
        return self.configs[0]


def total_counts(groups: Sequence[Counts]) -> Counts:
    """Return the sum of counts over groups, most rows first, then by name."""
    totals: dict[str, int] = {}
    for counts in groups:
        for name, n in counts:
            totals[name] = totals.get(name, 0) + n
    return tuple(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
