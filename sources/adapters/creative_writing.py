"""EQ-Bench Creative Writing v3: short fiction from a base prompt and a seed modifier (Paech, 2025).

The file is one object: key to `category`, `title`, `writing_prompt` (with the mark `<SEED>`) and `seed_modifiers`, a
list of sentences. Each modifier replaces the mark and gives one prompt; no instruction of ours is added.

Rules
-----
- The native id is `<key>_<index of the modifier>`, the index from 0: its place in the pinned file.
- The sub-category is the prompt's own category (`historical fiction`, `noir romance`, ...).
- All expansions of one base prompt share most of their words. They are all yielded: which of them are too alike is
  decided by dedup, not here.
- A base prompt without exactly one mark, or without modifiers, is rejected whole; an empty modifier alone is rejected
  alone.
- Licence: MIT, as NVIDIA's list of licences and the sister repository EQ-bench/EQ-Bench have it; the repository of the
  prompts itself holds no licence file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec
from sources.licenses import MIT

SPEC = SourceSpec(
    name="creative_writing",
    title="EQ-Bench Creative Writing v3",
    repo="EQ-bench/creative-writing-bench",
    host="github",
    license=MIT,
    files={
        "prompts": FileSpec("data/creative_writing_prompts_v3.json", "json_dict", {"key": "string", "value": "struct"})
    },
    feeds=("writing",),
    citation="""@misc{paech2025creativewriting,
  title        = {EQ-Bench Creative Writing Benchmark v3},
  author       = {Paech, Samuel J.},
  year         = {2025},
  howpublished = {https://github.com/EQ-bench/creative-writing-bench}
}""",
)

MARK = "<SEED>"


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield one record for each seed modifier of each base prompt."""
    for row in files.rows("prompts"):
        reason = _fault(row["value"])
        if reason:
            yield row.reject(f"prompt {row['key']}: {reason}")
        else:
            yield from _expansions(row)


def _fault(value: dict[str, Any]) -> str:
    prompt, modifiers = value.get("writing_prompt"), value.get("seed_modifiers")
    if not isinstance(prompt, str):
        return "no writing_prompt"
    if prompt.count(MARK) != 1:
        return f"writing_prompt holds {MARK} {prompt.count(MARK)} times, expected once"
    if not isinstance(modifiers, list) or not modifiers:
        return "no seed_modifiers"
    return ""


def _expansions(row: Row) -> Iterator[Record | Rejected]:
    prompt, category = row["value"]["writing_prompt"], row["value"].get("category")
    for i, modifier in enumerate(row["value"]["seed_modifiers"]):
        if not isinstance(modifier, str) or not modifier.strip():
            yield row.reject(f"prompt {row['key']}: seed modifier {i} is empty or not a text")
            continue
        text = prompt.replace(MARK, modifier)
        yield Record(
            SPEC.name,
            f"{row['key']}_{i}",
            "writing",
            turns=(text,),
            text=text,
            sub_category=category if isinstance(category, str) else "",
            language="en",
        )
