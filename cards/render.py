"""Facts turned into the dataset card: front matter that the Hub reads, and the words that people read."""

from __future__ import annotations

import re
import uuid
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from cards.columns import MEANINGS
from cards.facts import CardFacts, ConfigFacts, total_counts
from cards.stamps import place

TITLE = "speedbench: prompts for measuring speculative decoding"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))

MAX_REASONS = 8
"""Reasons of one stage that the card prints; the others of the stage are summed in one line."""


def render_card(facts: CardFacts) -> str:
    """Return the `README.md` of a DIST; no figure in it comes from anywhere but `facts`."""
    from huggingface_hub import DatasetCardData

    # The Hub's own writer: it quotes what YAML would misread, e.g. the language `no`.
    matter = DatasetCardData(**front_matter(facts)).to_yaml()
    body = (
        _environment()
        .get_template("dataset_card.md")
        .render(
            facts=facts,
            title=TITLE,
            place=place,
            meanings=MEANINGS,
            setting=dict(facts.settings),
            dropped=_dropped(facts),
            languages=[(name, n) for name, n in total_counts([g.languages for g in facts.main.categories]) if name],
            citations=_citations(facts),
            canary=canary(facts.recipe),
        )
    )
    # A section that has nothing to say leaves its blank lines behind.
    body = re.sub("\n{3,}", "\n\n", body)
    return f"---\n{matter.rstrip()}\n---\n\n{body}"


def front_matter(facts: CardFacts) -> dict[str, Any]:
    """Return the YAML block of the card as a mapping."""
    rows = sum(config.num_rows for config in facts.configs)
    return {
        "pretty_name": TITLE,
        "license": "other",
        "license_name": "by-source",
        "license_link": "LICENSE.md",
        # The Hub takes ISO 639 codes: of `zh-Hant` the first part.
        "language": sorted({language.partition("-")[0].lower() for language in facts.languages}),
        "task_categories": ["text-generation"],
        "size_categories": [next((name for bound, name in SIZES if rows < bound), "100K<n<1M")],
        "tags": ["benchmark", "evaluation", "speculative-decoding"],
        "source_datasets": sorted({source.hub_id for source in facts.sources if source.hub_id}),
        "configs": [_config_entry(config, default=i == 0) for i, config in enumerate(facts.configs)],
        "dataset_info": [_info_entry(config) for config in facts.configs],
    }


def _config_entry(config: ConfigFacts, *, default: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "config_name": config.name,
        "data_files": [{"split": "test", "path": config.path}],
    }
    if default:
        entry["default"] = True
    return entry


def _info_entry(config: ConfigFacts) -> dict[str, Any]:
    return {
        "config_name": config.name,
        "features": [_feature(name, kind) for name, kind in config.columns],
        "splits": [{"name": "test", "num_bytes": config.num_bytes, "num_examples": config.num_rows}],
        "download_size": config.download_bytes,
        "dataset_size": config.num_bytes,
    }


def _feature(name: str, kind: str) -> dict[str, str]:
    element = kind.removeprefix("list:")
    return {"name": name, "dtype": kind} if element == kind else {"name": name, "list": element}


def _dropped(facts: CardFacts) -> list[tuple[str, str, int]]:
    """Return the ledger's counts with the rare reasons of each stage in one line, nothing left uncounted."""
    by_stage: dict[str, list[tuple[str, int]]] = {}
    for stage, reason, records in facts.drops:
        by_stage.setdefault(stage, []).append((reason, records))
    rows = []
    for stage, reasons in by_stage.items():
        shown = reasons if len(reasons) <= MAX_REASONS + 1 else reasons[:MAX_REASONS]
        rows += [(stage, reason, records) for reason, records in shown]
        rest = reasons[len(shown) :]
        if rest:
            rows.append((stage, f"{len(rest)} other reasons", sum(records for _, records in rest)))
    return rows


def _citations(facts: CardFacts) -> list[str]:
    """Return the BibTeX entries of the sources, each once, though two sources may be of one paper."""
    return list(dict.fromkeys(source.citation.strip() for source in facts.sources if source.citation))


def canary(recipe: str) -> str:
    """Return the text by which the card is found in a training corpus: the same in every release of a recipe."""
    return f"speedbench:canary:{uuid.uuid5(uuid.NAMESPACE_URL, f'speedbench/{recipe}')}"


@cache
def _environment() -> jinja2.Environment:
    words = (resources.files("cards") / "dataset_card.md").read_text("utf-8")
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({"dataset_card.md": words}),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cell": cell, "num": _number, "cosine": _cosine, "share": _share, "code": _code}
    return environment


def cell(text: object) -> str:
    """Return a text as one cell of a Markdown table, in which nothing of it is markup."""
    flat = " ".join(str(text).split())
    return re.sub(r"([\\`*_~&\[\]<>|])", r"\\\1", flat)


def _code(text: str) -> str:
    # Code spans end at the next run of as many backticks; a pipe would end the cell even there.
    flat = " ".join(text.split()).replace("`", "ˋ").replace("|", "\\|")
    return f"`{flat}`" if flat else ""


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"


def render_licenses(facts: CardFacts) -> str:
    """Return `LICENSE.md`: the licence of each source that gave rows, what it permits, and whom to name."""
    lines = [
        "# Licences",
        "",
        "Each row is under the licence of its source, named in its column `license`. Rows of a source whose text may",
        "not be passed on hold its address and a digest in place of the text.",
        "",
        "| source | revision | rows | licence | SPDX | text published | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for s in facts.sources:
        licence = f"[{cell(s.license_title)}]({s.license_url})" if s.license_url else cell(s.license_title)
        lines.append(
            f"| [{cell(s.title)}]({s.url}) | {s.revision or 'not pinned'} | {s.num_rows} | {licence} | {s.spdx or '–'} "
            f"| {'yes' if s.published else 'by reference'} | {cell(s.publish_reason)} |"
        )
    lines += ["", "Whom to name with each source:", "", "```bibtex", *_citations(facts), "```"]
    return "\n".join(lines) + "\n"
