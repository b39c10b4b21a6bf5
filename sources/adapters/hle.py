"""Humanity's Last Exam: expert questions across the disciplines (Phan et al., 2025).

Rules
-----
- Text only (`image` empty) and answer type `exactMatch`, as the paper has it; rows with a picture and multiple-choice
  rows are not of this source. The question is the one turn, without instruction. The id is `id`.
- Physics, Chemistry, Engineering, Biology/Medicine and Computer Science/AI go to `stem`, Humanities/Social Science to
  `humanities`, Math to `math`; `Other` feeds nothing. A category outside these eight is rejected: the source would
  have changed.
- `sub_category` is the source's own category, e.g. `Physics`: its finer `raw_subject` is free text.
- Difficulty: hard, as the paper has it.
- For the throughput split (`passages`) every text-only question counts, of any answer type and category; what stands
  behind the question in a demonstration is the rationale and the answer.
- The licence is MIT, but the repository is gated and its card asks not to pass the questions on: our rows are
  placeholders.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec
from sources.licenses import MIT
from sources.passages import Passage

SPEC = SourceSpec(
    name="hle",
    title="Humanity's Last Exam",
    repo="cais/hle",
    revision="021a3d71f516a7ac28ceb8d284969902edf1edeb",
    license=MIT,
    gated=True,
    files={
        "test": FileSpec(
            "data/test-*.parquet",
            "parquet",
            {
                "id": "string",
                "question": "string",
                "image": "string?",
                "answer_type": "string",
                "category": "string",
                "answer": "string?",
                "rationale": "string?",
            },
        )
    },
    feeds=("stem", "humanities", "math", "mixed"),
    citation="""@article{phan2025humanity,
  title = {Humanity's Last Exam},
  author = {Phan, Long and Gatti, Alice and Han, Ziwen and Li, Nathaniel and Hu, Josephina and others},
  journal = {arXiv preprint arXiv:2501.14249},
  year = {2025}
}""",
    priority=20,
)

_CATEGORIES = {
    "Biology/Medicine": "stem",
    "Chemistry": "stem",
    "Computer Science/AI": "stem",
    "Engineering": "stem",
    "Humanities/Social Science": "humanities",
    "Math": "math",
    "Other": "",
    "Physics": "stem",
}


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the questions that are text only and answered by an exact match."""
    for row in files.rows("test"):
        if row["answer_type"] == "exactMatch" and not row.get("image", ""):
            record = _record(row)
            if record is not None:
                yield record


def _record(row: Row) -> Record | Rejected | None:
    theirs = row["category"]
    category = _CATEGORIES.get(theirs)
    if category is None:
        return row.reject(f"category {theirs!r} is none of the source's eight")
    if not category:
        return None
    if not row["id"].strip() or not row["question"].strip():
        return row.reject("its id or question is empty")
    return Record(
        source=SPEC.name,
        native_id=row["id"],
        category=category,
        turns=(row["question"],),
        text=row["question"],
        sub_category=theirs,
        language="en",
        difficulty="hard",
    )


def passages(files: Files) -> Iterator[Passage | Rejected]:
    """Yield every text-only question, its solution as the expected answer, grouped by the source's category."""
    for row in files.rows("test"):
        if row.get("image", ""):
            continue
        solution = [text.strip() for text in (row.get("rationale", ""), row.get("answer", "")) if text.strip()]
        if not row["id"].strip() or not row["question"].strip() or not solution:
            yield row.reject("its id, question or answer is empty")
            continue
        yield Passage(
            SPEC.name,
            row["id"],
            row["category"],
            row["question"],
            group=row["category"],
            answer="\nAnswer: ".join(solution),
        )
