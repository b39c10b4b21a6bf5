"""ChatRAG-Bench: passages, then the user's questions one by one."""

from __future__ import annotations

from typing import Any

import pytest

from sources.adapters.chatrag_bench import INSTRUCTION, SPEC
from sources.registry import SOURCES

SOURCE = SOURCES["chatrag_bench"]
PASSAGES = [{"title": "Mill", "text": "The mill burned in 1802."}, {"title": None, "text": "It was rebuilt in brick."}]


def _messages(*contents: Any) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(contents)]


def test_the_first_turn_holds_instruction_passages_and_question(memory_files: Any, parsed: Any) -> None:
    row = {"messages": _messages("When did it burn?", "In 1802.", "And then?"), "ctxs": PASSAGES}
    (record,), rejected = parsed(SOURCE, memory_files(SPEC, {"sqa": [row]}))
    assert rejected == []
    first = "The mill burned in 1802.\n\nIt was rebuilt in brick.\n\nWhen did it burn?"
    assert record.turns == (INSTRUCTION + first, "And then?")
    assert record.text == f"{first}\n\nAnd then?"
    assert (record.category, record.sub_category, record.template_id) == ("rag", "sqa", "chatrag_bench/v1")


def test_the_id_tells_configs_questions_and_passages_apart_but_not_answers(memory_files: Any, parsed: Any) -> None:
    def native_id(config: str, answer: str, last: str, passages: list[dict[str, Any]]) -> str:
        row = {"messages": _messages("When?", answer, last), "ctxs": passages}
        (record,), _ = parsed(SOURCE, memory_files(SPEC, {config: [row]}))
        return str(record.native_id)

    base = native_id("sqa", "1802.", "Why?", PASSAGES)
    assert native_id("sqa", "In 1802.", "Why?", PASSAGES) == base, "answers are not sent"
    others = [
        native_id("hybridial", "1802.", "Why?", PASSAGES),
        native_id("sqa", "1802.", "How?", PASSAGES),
        native_id("sqa", "1802.", "Why?", PASSAGES[:1]),
    ]
    assert len({base, *others}) == 4


def test_a_conversation_that_stands_twice_gives_one_record(memory_files: Any, parsed: Any) -> None:
    row = {"messages": _messages("When?"), "ctxs": PASSAGES}
    records, rejected = parsed(SOURCE, memory_files(SPEC, {"sqa": [row, row]}))
    assert len(records) == 1
    assert [r.line for r in rejected] == [2]


@pytest.mark.parametrize(
    ("messages", "passages", "reason"),
    [
        ([], PASSAGES, "0 messages"),
        (_messages("a", "b"), PASSAGES, "2 messages"),
        ([{"role": "assistant", "content": "a"}], PASSAGES, "message 0: role 'assistant'"),
        ([{"role": "user", "content": "a"}] * 3, PASSAGES, "message 1: role 'user'"),
        ([{"content": "a"}], PASSAGES, "message 0: role None"),
        (_messages(" "), PASSAGES, "message 0: content"),
        (_messages("a", None, "b"), PASSAGES, "message 1: content"),
        (_messages(*"abcdefghijk"), PASSAGES, "6 user turns, more than 5"),
        (_messages("a"), [], "no passages"),
        (_messages("a"), [*PASSAGES, {"title": "x"}], "passage 2: text"),
    ],
)
def test_other_shapes_are_rejected(messages: Any, passages: Any, reason: str, memory_files: Any, parsed: Any) -> None:
    rows = {"hybridial": [{"messages": messages, "ctxs": passages}]}
    records, rejected = parsed(SOURCE, memory_files(SPEC, rows))
    assert records == []
    assert rejected[0].reason.startswith(reason)


def test_five_user_turns_are_kept(memory_files: Any, parsed: Any) -> None:
    row = {"messages": _messages(*"abcdefghi"), "ctxs": PASSAGES}
    (record,), _ = parsed(SOURCE, memory_files(SPEC, {"sqa": [row]}))
    assert record.turns[1:] == ("c", "e", "g", "i")
