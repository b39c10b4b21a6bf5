"""MT-Bench-101: multi-turn dialogues in thirteen tasks (Bai et al., 2024), the two that ask for reasoning.

Rules
-----
- Only general reasoning (`GR`) and mathematical reasoning (`MR`), as the paper has it, both for `reasoning`; rows of
  the other eleven tasks are not of this source. `sub_category` is the task's name in full.
- The turns are all `user` strings of `history`; the source's own answers (`bot`) are left out, since the model under
  test gives its own. The id is `id`.
- The paper gives reasoning no difficulty.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec
from sources.licenses import APACHE_2_0

SPEC = SourceSpec(
    name="mt_bench_101",
    title="MT-Bench-101",
    repo="mtbench101/mt-bench-101",
    host="github",
    license=APACHE_2_0,
    files={
        "dialogues": FileSpec(
            "data/subjective/mtbench101.jsonl",
            "jsonl",
            {"task": "string", "id": "int64", "history": "list<struct>"},
        )
    },
    feeds=("reasoning",),
    citation="""@inproceedings{bai2024mtbench101,
  title = {{MT-Bench-101}: A Fine-Grained Benchmark for Evaluating Large Language Models in Multi-Turn Dialogues},
  author = {Bai, Ge and Liu, Jie and Bu, Xingyuan and He, Yancheng and Liu, Jiaheng and Zhou, Zhanhui and others},
  booktitle = {Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics},
  year = {2024}
}""",
    priority=40,
)

_TASKS = {"GR": "general reasoning", "MR": "mathematical reasoning"}


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the dialogues of the two reasoning tasks."""
    for row in files.rows("dialogues"):
        task = _TASKS.get(row["task"])
        if task is not None:
            yield _record(row, task)


def _record(row: Row, task: str) -> Record | Rejected:
    turns = [exchange.get("user") for exchange in row["history"]]
    texts = tuple(turn for turn in turns if isinstance(turn, str) and turn.strip())
    if not texts:
        return row.reject("its history holds no user turn")
    if len(texts) != len(turns):
        return row.reject("a user turn of its history is empty or not text")
    return Record(
        source=SPEC.name,
        native_id=str(row["id"]),
        category="reasoning",
        turns=texts,
        text="\n\n".join(texts),
        sub_category=task,
        language="en",
    )
