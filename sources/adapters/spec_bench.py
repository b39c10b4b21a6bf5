"""Spec-Bench itself: all 480 questions under its own category names (Xia et al., 2024).

It is no source of candidates: it makes the config `spec_bench`, so that a change can be measured on the rows that
earlier work reports on, and it is what our diversity is compared with.

Rules
-----
- Turns as they are, one record a row, the id is `question_id`; `category` is Spec-Bench's own of thirteen.
- `sub_category` is the task, one of Spec-Bench's six: `mt_bench` (its eight categories), `translation`,
  `summarization`, `qa`, `math_reasoning`, `rag`.
- Difficulty as for the sources that are read from the same file.
- A category that is none of the thirteen is rejected here, and only here: the other three readers of the file take the
  rows they know.
- The text is withheld: a sixth of the file is CNN/DailyMail articles and another sixth sentences of newspapers, in
  which the file's licence cannot settle the publishers' rights. Its parts that we do publish come in as sources of
  their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources import spec_bench_file
from sources.base import Files, Record, Rejected, SourceSpec
from sources.licenses import APACHE_2_0

SPEC = SourceSpec(
    name="spec_bench",
    title="Spec-Bench",
    repo=spec_bench_file.REPO,
    host="github",
    license=APACHE_2_0,
    files=spec_bench_file.FILES,
    feeds=("spec_bench",),
    citation="""@inproceedings{xia2024unlocking,
  title = {Unlocking Efficiency in Large Language Model Inference: A Comprehensive Survey of Speculative Decoding},
  author = {Xia, Heming and Yang, Zhe and Dong, Qingxiu and Wang, Peiyi and Li, Yongqi and Ge, Tao and others},
  booktitle = {Findings of the Association for Computational Linguistics: ACL 2024},
  year = {2024}
}""",
    withheld=(
        "Its summarization and translation rows are newspapers' text, whose rights the file's licence does not settle, "
        "so the text is given by reference."
    ),
    priority=99,
)

_TASKS = dict.fromkeys(spec_bench_file.MT_BENCH_CATEGORIES, "mt_bench") | {
    name: name for name in spec_bench_file.TASK_CATEGORIES
}


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield every row of the file."""
    for row in files.rows("questions"):
        category = row["category"]
        if category in _TASKS:
            yield spec_bench_file.record(row, SPEC.name, category, _TASKS[category])
        else:
            yield row.reject(f"category {category!r} is none of Spec-Bench's thirteen")
