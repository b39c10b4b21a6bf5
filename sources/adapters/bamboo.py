"""BAMBOO: conversations that end at a name to be predicted, from meetings and television (Dong et al., 2023).

Rows hold `content`, a conversation as lines of `"…" said by <name>` whose last line stops before the name, and
`answer`, that name.

Rules
-----
- MeetingPred and ShowsPred only: the two tasks that are conversations. Both length variants are read, from `datasets/`
  of the repository or from the folder itself.
- There is no native id: the id is the digest of the row. A row that stands twice is rejected
  the second time.
- The authors' README says MIT, but there is no licence file, and the texts are transcripts of broadcasts and meetings:
  our rows are placeholders, as in the published set.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Rejected, SourceSpec
from sources.licenses import MIT
from sources.passages import Passage

_COLUMNS = {"content": "string", "answer": "string"}
_TASKS = ("meetingpred", "showspred")

SPEC = SourceSpec(
    name="bamboo",
    title="BAMBOO",
    repo="RUCAIBox/BAMBOO",
    host="github",
    mirror="RUCAIBox/BAMBOO",
    license=MIT,
    withheld="Transcripts of third parties in a repository without a licence file, so the text is given by reference.",
    files={
        f"{task}_{size}": FileSpec(f"*{task}_{size}.jsonl", "jsonl", _COLUMNS)
        for task in _TASKS
        for size in ("4k", "16k")
    },
    feeds=("high_entropy",),
    citation="""@article{dong2023bamboo,
  title   = {BAMBOO: A Comprehensive Benchmark for Evaluating Long Text Modeling Capacities of Large Language Models},
  author  = {Dong, Zican and Tang, Tianyi and Li, Junyi and Zhao, Wayne Xin and Wen, Ji-Rong},
  journal = {arXiv preprint arXiv:2309.13345},
  year    = {2023}
}""",
)


def parse(files: Files) -> Iterator[Passage | Rejected]:
    """Yield the conversations."""
    seen: set[str] = set()
    for key in SPEC.files:
        for row in files.rows(key):
            native_id = row.digest()
            if not row["content"].strip() or not row["answer"].strip():
                yield row.reject("no conversation, or no name to predict")
            elif native_id in seen:
                yield row.reject("the same conversation stands before it")
            else:
                seen.add(native_id)
                task = key.partition("_")[0]
                yield Passage(SPEC.name, native_id, task, row["content"], group=task, answer=row["answer"].strip())
