"""ChatRAG-Bench, hybridial and sqa: conversations over retrieved passages (Liu et al., 2024).

Rows hold `messages` (`role`, `content`; user and assistant in turn, a user turn last), `ctxs` (`title`, `text`: the
retrieved passages) and `answers`. The schema is known from public readers of the files; this adapter has not seen the
files themselves.

Rules
-----
- First turn: an instruction of ours, the texts of all passages joined by blank lines, and the first user message.
  Each further turn is the next user message. The assistant's messages are not sent: the measured model answers itself.
- A row whose roles do not alternate from user to user, or that holds anything but texts, is rejected.
- A row of more than five user turns is rejected, not cut: the passages were retrieved for its last question, and
  five turns is the longest conversation of the paper.
- There is no native id. It is the digest of the config, the user messages and the passages with their titles: all
  that is sent, and no more. A row that stands twice is rejected the second time.
- The sub-category is the config, `hybridial` or `sqa`. Our instruction is no part of the text; the passages and the
  questions are.
- The card's licence is "other": terms of ten different data sets. The text is given by reference.
- At the pinned revision both files lie under `data/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sources.base import Files, FileSpec, Record, Rejected, Row, SourceSpec, canonical_id
from sources.licenses import OTHER

_COLUMNS = {"messages": "list<struct>", "ctxs": "list<struct>"}

SPEC = SourceSpec(
    name="chatrag_bench",
    title="ChatRAG-Bench",
    repo="nvidia/ChatRAG-Bench",
    revision="af6c7d420ddddf21f54f8ab3394bbf462aad2577",
    license=OTHER,
    files={
        "hybridial": FileSpec("data/hybridial/test.json", "json", _COLUMNS),
        "sqa": FileSpec("data/sqa/test.json", "json", _COLUMNS),
    },
    feeds=("rag",),
    citation="""@inproceedings{liu2024chatqa,
  title     = {ChatQA: Surpassing GPT-4 on Conversational QA and RAG},
  author    = {Liu, Zihan and Ping, Wei and Roy, Rajarshi and Xu, Peng and Lee, Chankyu and Shoeybi, Mohammad and
               Catanzaro, Bryan},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}""",
)

INSTRUCTION = "Answer the questions that follow from the passages below. If they do not hold the answer, say so.\n\n"
MAX_TURNS = 5


def parse(files: Files) -> Iterator[Record | Rejected]:
    """Yield the conversations of both configs."""
    seen: set[str] = set()
    for config in SPEC.files:
        for row in files.rows(config):
            reason = _fault(row["messages"], row["ctxs"])
            if reason:
                yield row.reject(reason)
                continue
            record = _record(row, config)
            if record.native_id in seen:
                yield row.reject("the same conversation was read before")
            else:
                seen.add(record.native_id)
                yield record


def _fault(messages: list[dict[str, Any]], passages: list[dict[str, Any]]) -> str:
    if not messages or len(messages) % 2 == 0:
        return f"{len(messages)} messages: expected an odd number, a user turn first and last"
    for i, message in enumerate(messages):
        expected = ("user", "assistant")[i % 2]
        if message.get("role") != expected:
            return f"message {i}: role {message.get('role')!r} where {expected!r} is expected"
        if not _is_text(message.get("content")):
            return f"message {i}: content is empty or not a text"
    if len(messages) // 2 >= MAX_TURNS:
        return f"{len(messages) // 2 + 1} user turns, more than {MAX_TURNS}"
    if not passages:
        return "no passages"
    bad = [i for i, passage in enumerate(passages) if not _is_text(passage.get("text"))]
    return f"passage {bad[0]}: text is empty or not a text" if bad else ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _record(row: Row, config: str) -> Record:
    questions = [message["content"] for message in row["messages"][::2]]
    passages = [{"title": str(passage.get("title") or ""), "text": passage["text"]} for passage in row["ctxs"]]
    context = "\n\n".join(passage["text"] for passage in passages)
    first = f"{context}\n\n{questions[0]}"
    return Record(
        SPEC.name,
        canonical_id({"config": config, "questions": questions, "passages": passages}),
        "rag",
        turns=(INSTRUCTION + first, *questions[1:]),
        text="\n\n".join([first, *questions[1:]]),
        sub_category=config,
        language="en",
        template_id=f"{SPEC.name}/v1",
    )
