"""LiveCodeBench, code generation lite: contest problems by date of release (Jain et al., 2024).

Rules
-----
- All six JSONL files are read; each holds the problems that its release added. The loading script is never run. The id
  is `question_id`.
- One turn: our instruction, the problem, and the starter code if there is any. The instruction asks for one of Python,
  Java, C++, Go, JavaScript and Rust, chosen by a hash of the id (the paper: at random), which is also the
  `sub_category`.
- The source's starter code is Python. Where another language is asked for, the instruction says to keep its names and
  parameters in that language; without starter code the program reads standard input and writes standard output.
- Difficulty is the source's own; a word that is not easy, medium or hard gives none.
- The record's own text is the problem and the starter code.
- The card says "cc" and no more, and the problems belong to three contest sites: our rows are placeholders.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import DIFFICULTIES, Files, FileSpec, Record, Rejected, Row, SourceSpec, seeded_choice
from sources.licenses import CC_UNSPECIFIED

_COLUMNS = {"question_id": "string", "question_content": "string", "starter_code": "string?", "difficulty": "string?"}

SPEC = SourceSpec(
    name="livecodebench",
    title="LiveCodeBench",
    repo="livecodebench/code_generation_lite",
    revision="0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
    license=CC_UNSPECIFIED,
    files={
        name: FileSpec(f"{name}.jsonl", "jsonl", _COLUMNS)
        for name in ("test", "test2", "test3", "test4", "test5", "test6")
    },
    feeds=("coding",),
    citation="""@article{jain2024livecodebench,
  title = {{LiveCodeBench}: Holistic and Contamination Free Evaluation of Large Language Models for Code},
  author = {Jain, Naman and Han, King and Gu, Alex and Li, Wen-Ding and Yan, Fanjia and Zhang, Tianjun and others},
  journal = {arXiv preprint arXiv:2403.07974},
  year = {2024}
}""",
    priority=30,
)

LANGUAGES = ("Python", "Java", "C++", "Go", "JavaScript", "Rust")
TEMPLATE_ID = "livecodebench/v1"


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the problems of every release."""
    for key in SPEC.files:
        for row in files.rows(key):
            yield _record(row)


def _record(row: Row) -> Record | Rejected:
    native_id, problem = row["question_id"], row["question_content"]
    if not native_id.strip() or not problem.strip():
        return row.reject("its question_id or question_content is empty")
    language = seeded_choice(LANGUAGES, "livecodebench language", native_id)
    starter_code = row.get("starter_code", "")
    if not starter_code.strip():
        starter_code = ""
    own = f"{problem}\n\n{starter_code}" if starter_code else problem
    difficulty = row.get("difficulty", "")
    return Record(
        source=SPEC.name,
        native_id=native_id,
        category="coding",
        turns=(f"{_instruction(language, bool(starter_code))}\n\n{own}",),
        text=own,
        sub_category=language,
        language="en",
        difficulty=difficulty if difficulty in DIFFICULTIES else "",
        template_id=TEMPLATE_ID,
        is_code=True,
    )


def _instruction(language: str, has_starter_code: bool) -> str:
    if not has_starter_code:
        return (
            f"Solve the problem below with a complete {language} program that reads its input from standard input "
            "and prints its output to standard output. Explain the idea in a few sentences, then give the program."
        )
    if language == "Python":
        return (
            "Solve the problem below in Python by completing the starter code that follows it. "
            "Explain the idea in a few sentences, then give the whole code."
        )
    return (
        f"Solve the problem below in {language}. The starter code that follows it is Python: keep its names and "
        f"parameters in your {language} code. Explain the idea in a few sentences, then give the whole code."
    )
