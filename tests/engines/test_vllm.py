"""What a real vLLM tells of its speculation, and that we read it as it is meant."""

from __future__ import annotations

import pytest

from bench.evidence import engine_totals
from bench.results import RUN, RunFolder
from tests.engines.lab import DRAFT_LENGTH, GREEDY_TOKENS, TEXTS, Lab, Mode

MODES: tuple[Mode, ...] = ("draft", "ngram")


@pytest.mark.parametrize("mode", MODES)
def test_every_request_has_counters_of_its_steps(lab: Lab, mode: Mode) -> None:
    ran = lab.ran("vllm", mode)
    assert ran.summary()["evidence"] == {"source": "per_step", "coverage": 1.0, "without_counters": 0}
    for name, m in ran.requests().items():
        spec, form = m.answer.spec, m.acceptance
        assert spec is not None
        assert form is not None
        tokens = m.answer.num_tokens
        assert tokens == m.answer.usage.completion_tokens
        assert (tokens == GREEDY_TOKENS) == (m.answer.finish_reason == "length")
        assert form.plain_steps is not None
        assert form.delivered + form.plain_steps == (tokens or 0) - 1, name
        if mode == "draft":
            assert form.plain_steps == 0
            assert {drafted for drafted, _ in spec.per_step or ()} == {DRAFT_LENGTH}


@pytest.mark.parametrize("mode", MODES)
def test_counters_of_the_server_are_the_sums_of_those_of_its_requests(lab: Lab, mode: Mode) -> None:
    ran = lab.ran("vllm", mode)
    told = [engine_totals(m.answer) for m in ran.requests().values()]
    totals = [t for t in told if t is not None]
    counters = ran.summary()["server_counters"]
    assert (counters["drafts"], counters["accepted"]) == (sum(t.steps for t in totals), sum(t.matched for t in totals))
    assert counters["draft_tokens"] == sum(t.drafted or 0 for t in totals)
    kept = [matched for m in ran.requests().values() for _, matched in (m.answer.spec and m.answer.spec.per_step) or ()]
    expected = [float(sum(matched >= i for matched in kept)) for i in range(1, DRAFT_LENGTH + 1)]
    assert counters["accepted_at"] == expected


def test_its_own_length_is_longer_than_ours_by_what_it_threw_away(lab: Lab) -> None:
    ran = lab.ran("vllm", "draft")
    ours = ran.summary()["overall"]["figures"]["acceptance_length"]["pooled"]
    own = ran.summary()["run"]["engine_acceptance_length"]["value"]
    forms = [(m.acceptance, engine_totals(m.answer)) for m in ran.requests().values()]
    beyond = sum(t.steps + t.matched - a.delivered for a, t in forms if a is not None and t is not None)
    steps = sum(a.steps for a, _ in forms if a is not None)
    assert beyond > 0, "some last step of 16 answers was cut, by the budget or by the end of text"
    assert own == pytest.approx(ours + beyond / steps)


def test_a_server_without_drafts_tells_of_none(lab: Lab) -> None:
    ran = lab.ran("vllm", "plain")
    assert ran.summary()["evidence"]["source"] is None
    assert all(m.acceptance is None and m.answer.spec is None for m in ran.requests().values())
    assert len(ran.requests()) == len(TEXTS)
    assert RunFolder(ran.greedy).read_json(RUN)["probe"]["server"]["version"]
