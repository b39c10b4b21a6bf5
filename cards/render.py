"""Facts turned into the dataset card: front matter that the Hub reads, and the words that people read."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import jinja2

from cards.facts import CardFacts, ConfigFacts

TITLE = "speedbench: prompts for measuring speculative decoding"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


def render_card(facts: CardFacts) -> str:
    """Return the `README.md` of a DIST; no figure in it comes from anywhere but `facts`."""
    from huggingface_hub import DatasetCardData

    # The Hub's own writer: it quotes what YAML would misread, e.g. the language `no`.
    matter = DatasetCardData(**front_matter(facts)).to_yaml()
    body = _environment().get_template("dataset_card.md").render(facts=facts, title=TITLE)
    return f"---\n{matter.rstrip()}\n---\n\n{body}"


def front_matter(facts: CardFacts) -> dict[str, Any]:
    """Return the YAML block of the card as a mapping."""
    rows = sum(config.num_rows for config in facts.configs)
    return {
        "pretty_name": TITLE,
        "license": "other",
        "license_name": "by-source",
        "license_link": "LICENSE.md",
        "language": list(facts.languages),
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
    features = [
        {"name": name, "list": kind.removeprefix("list:")}
        if kind.startswith("list:")
        else {"name": name, "dtype": kind}
        for name, kind in config.columns
    ]
    return {
        "config_name": config.name,
        "features": features,
        "splits": [{"name": "test", "num_bytes": config.num_bytes, "num_examples": config.num_rows}],
        "download_size": config.download_bytes,
        "dataset_size": config.num_bytes,
    }


def _feature(name: str, kind: str) -> dict[str, str]:
    element = kind.removeprefix("list:")
    return {"name": name, "dtype": kind} if element == kind else {"name": name, "list": element}


@cache
def _environment() -> jinja2.Environment:
    words = (resources.files("cards") / "dataset_card.md").read_text("utf-8")
    return jinja2.Environment(
        loader=jinja2.DictLoader({"dataset_card.md": words}),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render_licenses(facts: CardFacts) -> str:
    """Return `LICENSE.md`: the licence of each source that gave rows."""
    lines = [
        "# Licences",
        "",
        "Each row is under the licence of its source, named in its column `license`.",
        "",
        "| source | rows | licence | text published |",
        "|---|---|---|---|",
    ]
    for source in facts.sources:
        named = f"[{source.license_title}]({source.license_url})" if source.license_url else source.license_title
        published = "yes" if source.published else "by reference"
        lines.append(f"| {source.title} | {source.num_rows} | {named} | {published}: {source.publish_reason} |")
    return "\n".join(lines) + "\n"
