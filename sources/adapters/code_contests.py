"""CodeContests: competitive-programming problems behind AlphaCode (Li et al., 2022), its test split.

Rules
-----
- One turn: our instruction, then the description verbatim, with whatever the crawl left in it (it writes `<image>`
  where the statement had a picture). The id is `name`.
- The instruction asks for Python, Java or C++, chosen by a hash of the id (the paper: at random); that language is the
  `sub_category`.
- Difficulty, from the numbers of the source's enumeration: EASY, and the Codeforces letters A to I, are easy; MEDIUM,
  and J to Q, medium; HARD, HARDER, HARDEST, and R to V, hard. The paper does not name UNKNOWN and EXTERNAL: they, a
  null and a number outside the enumeration have no difficulty, rather than a guessed one.
- The record's own text is the description.
- The other columns (tests, solutions, ratings) are not read: they are most of the file's bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec, seeded_choice
from sources.licenses import CC_BY_4_0

SPEC = SourceSpec(
    name="code_contests",
    title="CodeContests",
    repo="deepmind/code_contests",
    revision="802411c3010cb00d1b05bad57ca77365a3c699d6",
    license=CC_BY_4_0,
    files={
        "test": FileSpec(
            "data/test-*.parquet",
            "parquet",
            {"name": "string", "description": "string", "difficulty": "int64?"},
        )
    },
    feeds=("coding",),
    citation="""@article{li2022competition,
  title = {Competition-Level Code Generation with {AlphaCode}},
  author = {Li, Yujia and Choi, David and Chung, Junyoung and Kushman, Nate and Schrittwieser, Julian and others},
  journal = {Science},
  volume = {378},
  number = {6624},
  pages = {1092--1097},
  year = {2022}
}""",
    priority=31,
)

LANGUAGES = ("Python", "Java", "C++")
TEMPLATE_ID = "code_contests/v1"

# The enumeration: 0 UNKNOWN, 1 EASY, 2 MEDIUM, 3 HARD, 4 HARDER, 5 HARDEST, 6 EXTERNAL, then 7 to 28 for A to V.
_LETTER_A, _LETTER_J, _LETTER_R, _LETTER_V = 7, 16, 24, 28
_NAMED = {1: "easy", 2: "medium", 3: "hard", 4: "hard", 5: "hard"}


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the problems of the test split."""
    for row in files.rows("test"):
        yield _record(row)


def _record(row: Row) -> Record | Rejected:
    name, description = row["name"], row["description"]
    if not name.strip() or not description.strip():
        return row.reject("its name or description is empty")
    language = seeded_choice(LANGUAGES, "code_contests language", name)
    return Record(
        source=SPEC.name,
        native_id=name,
        category="coding",
        turns=(f"{_instruction(language)}\n\n{description}",),
        text=description,
        sub_category=language,
        language="en",
        difficulty=difficulty(row.get("difficulty")),
        template_id=TEMPLATE_ID,
        is_code=True,
    )


def difficulty(number: int | None) -> str:
    """Return easy, medium or hard for a number of the source's enumeration, "" where it names no difficulty."""
    if number is None or not _LETTER_A <= number <= _LETTER_V:
        return _NAMED.get(number or 0, "")
    if number < _LETTER_J:
        return "easy"
    return "medium" if number < _LETTER_R else "hard"


def _instruction(language: str) -> str:
    return (
        f"The statement of a programming contest problem follows. Write a {language} program that solves it within the "
        "stated limits, reading standard input and writing standard output, and say briefly why it is correct."
    )
