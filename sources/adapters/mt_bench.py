"""MT-Bench: 80 two-turn open questions in eight categories (Zheng et al., 2023), as Spec-Bench ships them.

Rules
-----
- Turns are used as they are. The id is Spec-Bench's `question_id` (81 to 160), which is MT-Bench's own.
- Seven of its categories bear the names of ours. `extraction` asks about a text given in the prompt, so it goes to
  `rag`, as the paper consolidates it, with sub_category `extraction`.
- Difficulty: medium in math, stem, humanities and coding, as the paper has it; none elsewhere.
- Coding questions are prose about code, so the language detector may judge them; they name no language as a field and
  have no sub_category.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources import spec_bench_file
from sources.base import Files, Record, Rejected, SourceSpec
from sources.licenses import APACHE_2_0

SPEC = SourceSpec(
    name="mt_bench",
    title="MT-Bench",
    repo=spec_bench_file.REPO,
    host="github",
    license=APACHE_2_0,
    files=spec_bench_file.FILES,
    feeds=("coding", "humanities", "math", "rag", "reasoning", "roleplay", "stem", "writing"),
    citation="""@inproceedings{zheng2023judging,
  title = {Judging {LLM}-as-a-Judge with {MT-Bench} and Chatbot Arena},
  author = {Zheng, Lianmin and Chiang, Wei-Lin and Sheng, Ying and Zhuang, Siyuan and Wu, Zhanghao and others},
  booktitle = {Advances in Neural Information Processing Systems, Datasets and Benchmarks Track},
  year = {2023}
}""",
    priority=10,
    samples="spec_bench",
)

_CATEGORIES = {name: "rag" if name == "extraction" else name for name in spec_bench_file.MT_BENCH_CATEGORIES}


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield MT-Bench's conversations under our categories."""
    return spec_bench_file.records(files, SPEC.name, _CATEGORIES, {"extraction": "extraction"})
