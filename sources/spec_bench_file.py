"""The one file of Spec-Bench that four adapters read.

Spec-Bench (Xia et al., 2024) ships its 480 questions as one JSONL file; a row is `{question_id, category, turns}` and,
in some, `reference`, which nobody needs here. MT-Bench, GSM8K and Natural Questions are taken from it rather than from
their own repositories, as SPEED-Bench does, so that our categories hold the very rows of Spec-Bench that they are
compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sources.base import Files, FileSpec, Record, Rejected, Row

REPO = "hemingkx/Spec-Bench"

FILES: Mapping[str, FileSpec] = MappingProxyType(
    {
        "questions": FileSpec(
            "data/spec_bench/question.jsonl",
            "jsonl",
            {"question_id": "int64", "category": "string", "turns": "list<string>"},
        )
    }
)

MT_BENCH_CATEGORIES = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
TASK_CATEGORIES = ("translation", "summarization", "qa", "math_reasoning", "rag")

_DIFFICULTY = {"math": "medium", "stem": "medium", "humanities": "medium", "coding": "medium", "math_reasoning": "easy"}


def language(category: str) -> str:
    """Return the BCP 47 tag of the texts of one of Spec-Bench's categories; its translations start from German."""
    return "de" if category == "translation" else "en"


def difficulty(category: str) -> str:
    """Return the paper's difficulty of one of Spec-Bench's categories, "" where it states none.

    MT-Bench is medium and GSM8K easy, in the four categories that have a difficulty at all.
    """
    return _DIFFICULTY.get(category, "")


def records(
    files: Files, source: str, categories: Mapping[str, str], sub_categories: Mapping[str, str]
) -> Iterator[Record | Rejected]:
    """Yield the rows of some of Spec-Bench's categories as records; rows of the others are not this source's.

    Parameters
    ----------
    files
        What holds the rows, under the key of `FILES`.
    source
        Name of the source that the records belong to.
    categories
        Spec-Bench's category to the record's.
    sub_categories
        Spec-Bench's category to the record's sub-category; "" where it is not listed.
    """
    for row in files.rows("questions"):
        theirs = row["category"]
        if theirs in categories:
            yield record(row, source, categories[theirs], sub_categories.get(theirs, ""))


def record(row: Row, source: str, category: str, sub_category: str) -> Record | Rejected:
    """Return a row as a record of this source and category, or say what is wrong with its turns."""
    turns = row["turns"]
    if not turns:
        return row.reject("it has no turns")
    if not all(turn.strip() for turn in turns):
        return row.reject("a turn is empty")
    return Record(
        source=source,
        native_id=str(row["question_id"]),
        category=category,
        turns=tuple(turns),
        text="\n\n".join(turns),
        sub_category=sub_category,
        language=language(row["category"]),
        difficulty=difficulty(row["category"]),
    )
