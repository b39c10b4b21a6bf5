"""One drafter, one target, three engines: in the normal form their acceptance is the same, step by step."""

from __future__ import annotations

import pytest

from bench.acceptance import Acceptance, pooled
from bench.measured import Measured
from tests.engines.lab import CONTROL_STEPS, DRAFT_LENGTH, ENGINES, TEXTS, EngineName, Lab

LEAST_AGREEING = 14
"""Of 16 prompts; on the others a near-tie of two tokens falls otherwise in another engine's arithmetic."""


def agreeing(lab: Lab) -> tuple[list[str], dict[str, str]]:
    """Return the prompts whose plain outputs are the same on all engines, and where each other one parts."""
    plain = {engine: lab.ran(engine, "plain").requests() for engine in ENGINES}
    same, apart = list[str](), dict[str, str]()
    for name, first in plain[ENGINES[0]].items():
        outputs = {engine: plain[engine][name].answer.token_ids for engine in ENGINES}
        if len(set(outputs.values())) == 1:
            same.append(name)
        else:
            apart[name] = ", ".join(f"{engine} {_parts(first, plain[engine][name])}" for engine in ENGINES[1:])
    return same, apart


def _parts(first: Measured, other: Measured) -> str:
    a, b = first.answer.token_ids or (), other.answer.token_ids or ()
    place = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    return "agrees" if place is None else f"parts at token {place} ({a[place]} and {b[place]})"


def test_acceptance_is_the_same_on_every_engine(lab: Lab, record_property: pytest.RecordProperty) -> None:
    same, apart = agreeing(lab)
    record_property("apart", apart)
    assert len(same) >= LEAST_AGREEING, apart
    forms = {
        engine: {name: m.acceptance for name, m in lab.ran(engine, "draft").requests().items()} for engine in ENGINES
    }
    for name in same:
        told = {engine: _counted(forms[engine][name]) for engine in ENGINES}
        assert len(set(told.values())) == 1, (name, told)
    lengths = {engine: pooled(form for name in same if (form := forms[engine][name])) for engine in ENGINES}
    values = {engine: form.acceptance_length() for engine, form in lengths.items() if form is not None}
    record_property("acceptance_length", values)
    assert len(values) == len(ENGINES)
    assert len(set(values.values())) == 1
    assert 1.2 < values["vllm"] < 1 + DRAFT_LENGTH


def _counted(form: Acceptance | None) -> tuple[object, ...]:
    """Return what the engines must agree in.

    Accepted and drafted tokens they need not: near the budget llama.cpp and transformers draft less, vLLM checks its
    drafts in full; and llama.cpp does not count an end of text that was drafted as accepted.
    """
    assert form is not None
    assert form.source == "per_step"
    return form.steps, form.delivered, form.histogram, form.plain_steps


@pytest.mark.parametrize("engine", ENGINES)
def test_a_target_that_drafts_for_itself_has_every_draft_kept(lab: Lab, engine: EngineName) -> None:
    requests = lab.ran(engine, "draft", "target").requests()
    assert len(requests) == len(TEXTS)
    whole = 0
    for name, m in requests.items():
        form = m.acceptance
        assert form is not None
        assert form.histogram is not None
        if m.answer.finish_reason == "length":
            assert form.acceptance_length() == DRAFT_LENGTH + 1, (name, form)
            assert (form.steps, form.plain_steps) == (CONTROL_STEPS, 0)
            whole += 1
        else:  # the last step was cut at the end of text
            assert form.histogram[-1] >= form.steps - 1, (name, form)
    assert whole == len(TEXTS) or (engine == "llamacpp" and whole >= 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_drafter_that_knows_nothing_is_hardly_ever_right(lab: Lab, engine: EngineName) -> None:
    form = pooled(m.acceptance for m in lab.ran(engine, "draft", "random_draft").requests().values() if m.acceptance)
    assert form is not None
    length = form.acceptance_length()
    assert length is not None
    assert 1 <= length < 1.2
