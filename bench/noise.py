"""How a finished run answered its prompts: trivially, latched onto a topic, or otherwise. Reads, writes its folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from bench.acceptance import ratio
from bench.config import BenchConfig
from bench.experiments.detectors import Detection, detect, generic_phrase
from bench.finished import measured_traces
from bench.measured import Measured
from bench.prompts import ChatFormat, load_chat_format
from bench.results import RUN, RunFolder
from bench.split import load_split
from bench.summary import choose_evidence

NOISE_EXPERIMENT = "random_tokens"
"""The experiment whose answers are judged."""
ANSWERS = "answers.json"
"""How each prompt of a run was answered; lies in its folder."""
MAX_SHOWN_CHARS = 400
KINDS = ("trivial", "topic_latching", "other")


def write_answers(run: Path) -> dict[str, Any]:
    """Write how each prompt was answered, and return it.

    Of real prompts only trivial answers are told: an answer to a real question is about its words by right.
    """
    folder = RunFolder(run)
    config = BenchConfig.model_validate(folder.read_json(RUN)["config"])
    chat = load_chat_format(config.engine.tokenizer, {}) if config.engine.tokenizer else None
    split = load_split(config.data)
    noise = {c.question_id: c.turns[0] or bytes(c.random_ids).decode() for c in split.conversations if c.random_ids}
    requests, _ = choose_evidence(measured_traces(folder, config), config.limits.min_coverage)
    rows = [_judged(m, noise, _text(m, chat)) for m in requests if m.ok]
    table = {"synthetic": split.synthetic, "kinds": [_pooled(kind, rows) for kind in KINDS], "answers": rows}
    folder.write_json(ANSWERS, table)
    return table


def _judged(request: Measured, noise: dict[str, str], text: str) -> dict[str, Any]:
    name = request.trace.conversation_id
    phrase = generic_phrase(text)
    real = Detection("trivial", phrase) if phrase else Detection("other")
    found = detect(noise[name], text) if name in noise else real
    form = request.acceptance
    return {
        "question_id": name,
        "kind": found.kind,
        "evidence": found.evidence,
        "tokens": request.answer.num_tokens,
        "steps": form.steps if form else None,
        "delivered": form.delivered if form else None,
        "text": text[:MAX_SHOWN_CHARS],
    }


def _text(request: Measured, chat: ChatFormat | None) -> str:
    answer = request.answer
    if answer.text or answer.token_ids is None or chat is None:
        return answer.text
    return chat.tokenizer.decode(answer.token_ids)


def _pooled(kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many answers were of a kind, and the acceptance length pooled over them."""
    own = [row for row in rows if row["kind"] == kind]
    told = [row for row in own if row["steps"]]
    length = ratio(sum(row["delivered"] for row in told), sum(row["steps"] for row in told))
    evidence = Counter(row["evidence"] for row in own if row["evidence"]).most_common(3)
    return {"kind": kind, "answers": len(own), "acceptance_length": length, "evidence": [name for name, _ in evidence]}
