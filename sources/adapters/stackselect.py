"""Ada-LEval StackSelect: the most helpful of many answers to a Stack Overflow question (Wang et al., 2024).

Rows hold `question_id`, `question`, `all_answers`, and `answer`, the label `A<n>` of the right one, from 1.

Rules
-----
- One question may stand in several files, with more answers in the longer: the id is the question's, joined by the
  file's length, since each is a record of its own; rows of one question never meet in one config (curation).
- A label that names none of the answers is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sources import ada_leval
from sources.base import Files, Rejected, Row
from sources.passages import Part, Passage

_COLUMNS = {"question_id": "any", "question": "string", "answer": "string", "all_answers": "list<string>"}

SPEC = ada_leval.spec("stackselect", "StackSelect", "mixed", _COLUMNS, ("1k", "2k", "8k", "16k", "32k"))


def parse(files: Files) -> Iterator[Passage | Rejected]:
    """Yield the questions with their answers; `answer` is the text of the right one's label."""
    for size in SPEC.files:
        for row in files.rows(size):
            yield _passage(row, size)


def _passage(row: Row, size: str) -> Passage | Rejected:
    answers = row["all_answers"]
    label = re.fullmatch(r"A(\d+)", row["answer"].strip())
    if label is None or not 1 <= int(label[1]) <= len(answers):
        return row.reject(f"the answer {row['answer']!r} names none of its {len(answers)} answers")
    if not row["question"].strip() or not answers[int(label[1]) - 1].strip():
        return row.reject("its question or its right answer is empty")
    parts = tuple(Part(f"A{i}", text) for i, text in enumerate(answers, start=1) if text.strip())
    native_id = f"{row['question_id']}@{size}"
    group = str(row["question_id"])
    return Passage(
        SPEC.name, native_id, "stackselect", title=row["question"], group=group, answer=label[0], parts=parts
    )
