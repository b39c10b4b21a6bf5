"""Facts of a build that never was, every part of a card in them."""

from __future__ import annotations

from cards.facts import (
    AuditFacts,
    CardFacts,
    CategoryFacts,
    CellFacts,
    ConfigFacts,
    GroupFacts,
    LengthFacts,
    PlotFacts,
    SharedFacts,
    SourceFacts,
    ThroughputFacts,
)

COLUMNS = (
    ("question_id", "string"),
    ("category", "string"),
    ("turns", "list:string"),
    ("multiturn", "bool"),
    ("num_tokens", "int32"),
)
EXAMPLES = ('"0f0f"', '"math"', '["Is `a|b` the same as `b|a`?"]', "false", "11")


def lengths(*quartiles: float, mean: float) -> LengthFacts:
    least, lower, middle, upper, most = quartiles
    return LengthFacts(int(least), lower, middle, upper, int(most), mean)


MATH = GroupFacts(
    "math",
    3,
    1,
    0,
    lengths(7, 9.0, 11.0, 20.5, 30, mean=16.0),
    (("easy", 1), ("hard", 1), ("", 1)),
    (("en", 2), ("no", 1)),
)
RAG = GroupFacts("rag", 2, 0, 2, lengths(900, 925.0, 950.0, 975.0, 1000, mean=950.0), (("", 2),), (("en", 1), ("", 1)))
TIER = GroupFacts("mixed", 2, 2, 0, lengths(1000, 1000, 1000, 1000, 1000, mean=1000.0), (("hard", 2),), (("", 2),))

QUALITATIVE = ConfigFacts(
    name="qualitative",
    path="data/qualitative.parquet",
    num_rows=5,
    num_placeholders=1,
    num_bytes=12345,
    download_bytes=6789,
    sha256="a" * 64,
    columns=COLUMNS,
    examples=EXAMPLES,
    tokens=lengths(7, 11.0, 30.0, 900.0, 1000, mean=389.6),
    categories=(MATH, RAG),
)
THROUGHPUT = ConfigFacts(
    name="throughput_1k",
    path="data/throughput_1k.parquet",
    num_rows=2,
    num_placeholders=2,
    num_bytes=999,
    download_bytes=555,
    sha256="b" * 64,
    columns=COLUMNS,
    examples=(),
    tokens=TIER.tokens,
    categories=(TIER,),
)

PAPER = "@article{doe2024,\n  title = {Two Sets},\n  year = {2024}\n}"
OPEN = SourceFacts(
    name="open_set",
    title="Open [Set]",
    source="acme/open",
    url="https://huggingface.co/datasets/acme/open",
    hub_id="acme/open",
    revision="c" * 40,
    license="mit",
    license_title="MIT License",
    license_url="https://opensource.org/license/mit",
    spdx="MIT",
    published=True,
    publish_reason="The licence permits redistribution with its notice.",
    num_rows=4,
    num_placeholders=0,
    configs=(("qualitative", 4),),
    citation=PAPER,
)
CLOSED = SourceFacts(
    name="closed_set",
    title="Closed Set",
    source="https://example.org/closed",
    url="https://example.org/closed",
    hub_id="",
    revision="",
    license="unknown",
    license_title="No licence stated",
    license_url="",
    spdx="",
    published=False,
    publish_reason="The source states no licence, so the text is given by reference.",
    num_rows=3,
    num_placeholders=3,
    configs=(("qualitative", 1), ("throughput_1k", 2)),
    citation=PAPER,
)

SETTINGS = (
    ("sources", "none"),
    ("filter.max_chars", "100000"),
    ("filter.min_chars", "1"),
    ("candidates.max_per_source_language", "4000"),
    ("candidates.seed", "17"),
    ("dedup.ngram_size", "5"),
    ("dedup.num_perm", "128"),
    ("dedup.jaccard_threshold", "0.7"),
    ("dedup.max_miss_probability", "1e-09"),
    ("dedup.cosine_threshold", "0.95"),
    ("decontaminate.reference", "none"),
    ("embedder.model", "ada-7"),
    ("embedder.dimensions", "64"),
    ("selection.quota", "3"),
    ("selection.starts", "8"),
    ("selection.seed", "0"),
    ("selection.tabu_steps", "1000"),
    ("throughput.max_pad_tokens", "8"),
)

FACTS = CardFacts(
    recipe="made-up",
    recipe_digest="d" * 64,
    origin="the sources at their pinned revisions",
    embedder="ada-7",
    tokenizer="o200k_base (tiktoken 1.2.3)",
    languages=("en", "no", "zh-Hant"),
    configs=(QUALITATIVE, THROUGHPUT),
    sources=(CLOSED, OPEN),
    categories=(
        CategoryFacts("math", 9, 3, 0.125, 0.1213, 0.0123456, 0.2, 0.31, 0.13),
        CategoryFacts("rag", 4, 2, 0.5, None, None),
    ),
    drops=(
        *(("read", f"reason {i}", 20 - i) for i in range(11)),
        ("dedup_exact", "exact_duplicate", 2),
    ),
    notes=("Built for a test.",),
    settings=SETTINGS,
    versions=(("speedbench", "0.0.1"), ("numpy", "9.9")),
    throughput=ThroughputFacts(
        cells=(CellFacts("throughput_1k", "mixed", 3, 2, (("https://example.org/closed", 2),)),),
        shared=(SharedFacts("throughput_1k", 12, 0.25, 0.5),),
        tier_sentences=("throughput_1k: mixed cannot be compared with high_entropy by 8-grams in the prompt.",),
        prefix_rule="No two rows of a config share their first 64 tokens.",
    ),
    self_audit=AuditFacts((("qualitative", 5),), ("throughput_1k",), 0, 1, 2, 0.7),
    plots=(
        PlotFacts("plots/isl.png", "Input length by category"),
        PlotFacts("plots/tiers.png", "Predictability of each tier"),
    ),
)
