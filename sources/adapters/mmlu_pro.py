"""MMLU-Pro: multiple-choice questions with up to ten options in fourteen subjects (Wang et al., 2024).

Rules
-----
- 2 to 5 questions of one subject make one conversation, a question a turn. The paper says only that several of one
  category are combined; ours are neighbours in the order of `question_id`, so that the order of the file does not
  matter.
- The size of a group is chosen by a hash of the subject and of its first question's id, among those sizes that do not
  leave a single question behind. So every question is used exactly once; only the lone question of a one-question
  subject is rejected.
- The first turn opens with our instruction, which names the subject (`other` as "mixed topics") and asks to reason
  before the answer; the later turns hold the question and its lettered options only.
- The id joins the questions' ids by `+` in sorted order; `sub_category` is the subject.
- Of two good rows with one id the one whose canonical digest is smaller is kept and the other rejected, again so that
  the order of the file does not matter.
- The record's own text is the questions with their options. The paper gives reasoning no difficulty.
- The validation split, from which worked examples are usually drawn, is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec, joined_id, seeded_choice
from sources.licenses import MIT

SPEC = SourceSpec(
    name="mmlu_pro",
    title="MMLU-Pro",
    repo="TIGER-Lab/MMLU-Pro",
    revision="30527804ea8854662078e457808040d872ecdf29",
    license=MIT,
    files={
        "test": FileSpec(
            "data/test-*.parquet",
            "parquet",
            {"question_id": "int64", "question": "string", "options": "list<string>", "category": "string"},
        )
    },
    feeds=("reasoning",),
    citation="""@inproceedings{wang2024mmlupro,
  title = {{MMLU-Pro}: A More Robust and Challenging Multi-Task Language Understanding Benchmark},
  author = {Wang, Yubo and Ma, Xueguang and Zhang, Ge and Ni, Yuansheng and Chandra, Abhranil and others},
  booktitle = {Advances in Neural Information Processing Systems, Datasets and Benchmarks Track},
  year = {2024}
}""",
    priority=41,
)

TEMPLATE_ID = "mmlu_pro/v1"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MIN_OPTIONS = 2
MIN_GROUP, MAX_GROUP = 2, 5


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the rejected rows, then the conversations, subject by subject."""
    subjects: dict[str, list[Row]] = {}
    last_id = None
    for row in sorted(files.rows("test"), key=lambda row: (row["question_id"], row.digest())):
        fault = _fault(row)
        if fault:
            yield row.reject(fault)
        elif row["question_id"] == last_id:
            yield row.reject(f"question_id {last_id} occurs twice")
        else:
            last_id = row["question_id"]
            subjects.setdefault(row["category"], []).append(row)
    for subject, rows in subjects.items():
        if len(rows) < MIN_GROUP:
            yield rows[0].reject(f"it is the only question of subject {subject!r}, and a conversation needs two")
        else:
            yield from _conversations(subject, rows)


def _fault(row: Row) -> str:
    if not row["question"].strip() or not row["category"].strip():
        return "its question or category is empty"
    options = row["options"]
    if not MIN_OPTIONS <= len(options) <= len(LETTERS):
        return f"it has {len(options)} options; {MIN_OPTIONS} to {len(LETTERS)} can be lettered"
    if not all(option.strip() for option in options):
        return "an option is empty"
    return ""


def _conversations(subject: str, rows: Sequence[Row]) -> Iterator[Record]:
    start = 0
    while start < len(rows):
        size = group_size(len(rows) - start, subject, str(rows[start]["question_id"]))
        yield _record(subject, rows[start : start + size])
        start += size


def group_size(num_left: int, subject: str, first_id: str) -> int:
    """Return how many of the questions that are left make the next conversation.

    Parameters
    ----------
    num_left
        Questions left in the subject, at least 2.
    subject, first_id
        What the choice is hashed from: the subject, and the id of the first question left.

    Returns
    -------
    int
        In [2, 5], at most `num_left`, and never such that exactly one question would be left over.
    """
    sizes = [size for size in range(MIN_GROUP, MAX_GROUP + 1) if num_left - size >= MIN_GROUP or num_left == size]
    return seeded_choice(sizes, "mmlu_pro group size", subject, first_id)


def _record(subject: str, rows: Sequence[Row]) -> Record:
    questions = [_lettered(row) for row in rows]
    ids = [str(row["question_id"]) for row in rows]
    return Record(
        source=SPEC.name,
        native_id=joined_id(ids),
        category="reasoning",
        turns=(f"{_instruction(subject)}\n\n{questions[0]}", *questions[1:]),
        text="\n\n".join(questions),
        sub_category=subject,
        language="en",
        template_id=TEMPLATE_ID,
        members=tuple(sorted(ids)),
    )


def _lettered(row: Row) -> str:
    options = (f"{letter}. {option}" for letter, option in zip(LETTERS, row["options"], strict=False))
    return "\n".join((row["question"], *options))


def _instruction(subject: str) -> str:
    topic = "mixed topics" if subject == "other" else subject
    return (
        f"I will ask you multiple-choice questions about {topic}, one in each message. Work through every question "
        'step by step, and close with a line "Answer: X", where X is the letter of the option that you choose.'
    )
