"""Ada-LEval TextSort: four segments of a book in a wrong order (Wang et al., 2024).

Rows hold `book_id`, `para_offset`, a ready-made `prompt` (instruction, the paragraph before, parts 1 to 4, the
paragraph after), and `answer`: the parts in the right order, as numbers from 1.

Rules
-----
- The instruction is left out: ours asks for the text of the parts, not for their numbers. The rest is taken apart at
  the marks `Before:`, `Part <n>:` and `After:`, the last of each, since the instruction has an example with the same.
- The id is the book's, the offsets and the file's length. The file beyond the longest prompt is read because segments
  are only ever shortened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sources import ada_leval
from sources.base import Files, Rejected, Row
from sources.passages import Part, Passage

_COLUMNS = {"book_id": "any", "para_offset": "any", "prompt": "string", "answer": "any"}

SPEC = ada_leval.spec("textsort", "TextSort", "low_entropy", _COLUMNS, ("1k", "2k", "8k", "16k", "32k", "64k"))

_MARK = re.compile(r"(?m)^(Before|Part [1-4]|After): ?")
_MARKS = ["Before", "Part 1", "Part 2", "Part 3", "Part 4", "After"]


def parse(files: Files) -> Iterator[Passage | Rejected]:
    """Yield the segments in the order shown; `answer` is the right order, e.g. `3,1,4,2`."""
    for size in SPEC.files:
        for row in files.rows(size):
            yield _passage(row, size)


def _passage(row: Row, size: str) -> Passage | Rejected:
    order = _order(row["answer"])
    pieces = _pieces(row["prompt"])
    if order is None:
        return row.reject(f"its answer {row['answer']!r} is no order of four parts")
    if pieces is None or not all(pieces[1:5]):
        return row.reject("its prompt does not end with Before, four parts and After")
    offsets = row["para_offset"]
    where = "-".join(str(o) for o in offsets) if isinstance(offsets, list) else str(offsets)
    return Passage(
        SPEC.name,
        f"{row['book_id']}/{where}@{size}",
        "textsort",
        group=str(row["book_id"]),
        before=pieces[0],
        after=pieces[5],
        answer=",".join(map(str, order)),
        parts=tuple(Part(f"Part {i}", pieces[i]) for i in range(1, 5)),
    )


def _order(answer: Any) -> list[int] | None:
    try:
        numbers = [int(n) for n in (json.loads(answer) if isinstance(answer, str) else answer)]
    except (TypeError, ValueError):
        return None
    return numbers if sorted(numbers) == [1, 2, 3, 4] else None


def _pieces(prompt: str) -> list[str] | None:
    """Return the texts behind the last six marks, if these are the six in order."""
    marks = list(_MARK.finditer(prompt))[-len(_MARKS) :]
    if [m[1] for m in marks] != _MARKS:
        return None
    ends = [m.start() for m in marks[1:]] + [len(prompt)]
    return [prompt[m.end() : end].strip() for m, end in zip(marks, ends, strict=True)]
