"""HumanEvalPack: HumanEval's 164 functions by hand in six languages (Muennighoff et al., 2023).

Rules
-----
- The turn is `prompt`: signature and comment of a function to complete, without instruction, as the paper has it. The
  id is `task_id`, e.g. `Go/17`.
- `sub_category` is the programming language. The text is code with an English comment, so no language detector judges
  it.
- Difficulty is not stated in the paper. We call all of it easy: short functions at the level of a first interview.
- A function occurs in six languages. These are six candidates; near duplicates among them are for the dedup to find.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec
from sources.licenses import MIT

LANGUAGES = {"python": "Python", "js": "JavaScript", "java": "Java", "go": "Go", "cpp": "C++", "rust": "Rust"}

SPEC = SourceSpec(
    name="humanevalpack",
    title="HumanEvalPack",
    repo="bigcode/humanevalpack",
    license=MIT,
    files={
        key: FileSpec(f"data/{key}/data/humanevalpack.jsonl", "jsonl", {"task_id": "string", "prompt": "string"})
        for key in LANGUAGES
    },
    feeds=("coding",),
    citation="""@article{muennighoff2023octopack,
  title = {{OctoPack}: Instruction Tuning Code Large Language Models},
  author = {Muennighoff, Niklas and Liu, Qian and Zebaze, Armel and Zheng, Qinkai and Hui, Binyuan and others},
  journal = {arXiv preprint arXiv:2308.07124},
  year = {2023}
}""",
    priority=32,
)


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the functions of every language."""
    for key, language in LANGUAGES.items():
        for row in files.rows(key):
            yield _record(row, language)


def _record(row: Row, language: str) -> Record | Rejected:
    task_id, prompt = row["task_id"], row["prompt"]
    if not task_id.strip() or not prompt.strip():
        return row.reject("its task_id or prompt is empty")
    return Record(
        source=SPEC.name,
        native_id=task_id,
        category="coding",
        turns=(prompt,),
        text=prompt,
        sub_category=language,
        language="en",
        difficulty="easy",
        is_code=True,
    )
