import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.acceptance import Acceptance, Step, from_steps, pooled
from bench.answer import Answer, Chunk, SpecCounters, Usage
from bench.evidence import clipped_steps, engine_totals, normal_form


def answer(*lengths: int, spec: SpecCounters | None = None, ids: bool = True) -> Answer:
    chunks = tuple(Chunk(10 * i, n, read=i) for i, n in enumerate(lengths))
    tokens = sum(lengths)
    return Answer(
        chunks, token_ids=tuple(range(tokens)) if ids else None, chunk_ids=ids, usage=Usage(7, tokens), spec=spec
    )


def test_end_of_text_inside_an_accepted_draft_counts_what_was_delivered():
    # k = 5: the third step matched all five drafts, but the second of them ended the text.
    eos = answer(1, 4, 6, 2, spec=SpecCounters(per_step=((5, 3), (5, 5), (5, 5)), draft_length=5))
    budget = answer(1, 4, 3, spec=SpecCounters(per_step=((5, 3), (5, 5)), draft_length=5))
    a, b = normal_form(eos), normal_form(budget)
    assert a is not None
    assert b is not None
    assert a.acceptance_length() == 12 / 3
    assert a.histogram == (0, 1, 0, 1, 0, 1)
    assert b.acceptance_length() == 7 / 2
    assert a.acceptance_rate() == (3 + 5 + 2) / 15
    assert b.acceptance_rate() == (3 + 3) / 10
    assert 1 + a.delivered == eos.usage.completion_tokens
    assert 1 + b.delivered == budget.usage.completion_tokens
    both = pooled([a, b])
    assert both is not None
    assert both.acceptance_length() == 19 / 5
    assert both.acceptance_rate() == 16 / 25
    totals = engine_totals(eos)
    assert totals is not None
    assert 1 + totals.matched / totals.steps == pytest.approx(1 + 13 / 3)


def test_unknown_zero_and_not_applicable_are_three_things():
    plain = answer(1, *[1] * 60)
    useless = answer(1, spec=SpecCounters(steps=60, matched=0, drafted=240), ids=False)
    useless = Answer(usage=Usage(7, 61), spec=useless.spec)
    untold = Answer(usage=Usage(7, 61))
    useful = Answer(usage=Usage(7, 91), spec=SpecCounters(steps=30, matched=60, drafted=120))
    assert normal_form(plain, draft_length=0) is None
    a, b = normal_form(useless), normal_form(useful)
    assert normal_form(untold) is None
    assert a is not None
    assert a.acceptance_length() == 1.0
    assert a.acceptance_rate() == 0.0
    assert b is not None
    assert b.acceptance_length() == 3.0
    assert b.acceptance_rate() == 0.5
    both = pooled([a, b])
    assert both is not None
    assert both.acceptance_length() == 150 / 90
    assert both.acceptance_rate() == 60 / 360


def test_a_drafter_that_never_proposed_has_no_acceptance_length():
    a = normal_form(answer(1, 1, 1, spec=SpecCounters(steps=0, matched=0, drafted=0, draft_length=3)))
    assert a is not None
    assert a.acceptance_length() is None
    assert a.tokens_per_step() == 1.0


def test_evidence_is_taken_best_first_and_never_pooled_across_kinds():
    per_step = normal_form(answer(1, 3, spec=SpecCounters(per_step=((3, 2),))))
    chunks = normal_form(answer(1, 3))
    assert per_step is not None
    assert chunks is not None
    assert (per_step.source, chunks.source) == ("per_step", "chunks")
    assert chunks.acceptance_rate() is None
    assert chunks.drafted_acceptance_rates() is None
    with pytest.raises(ValueError, match="different evidence"):
        pooled([per_step, chunks])


def test_totals_of_a_cut_step_are_clipped_by_the_delivered_tokens():
    # Steps matched 2, 3, 3 of 3; the last delivered 1 of 4, so the totals overshoot by 3.
    spec = SpecCounters(histogram=(0, 0, 1, 2), steps=3, matched=8, drafted=9, draft_length=3)
    a = normal_form(answer(1, 3, 4, 1, spec=spec))
    assert a is not None
    assert a.source == "totals"
    assert a.histogram == (1, 0, 1, 1)
    assert a.acceptance_length() == 8 / 3
    assert a.accepted == 2 + 3 + 1


def test_totals_with_steps_that_drafted_nothing_are_not_acceptance():
    spec = SpecCounters(steps=3, matched=6)
    a = normal_form(answer(1, 3, 3, 3, 1, 1, spec=spec))
    assert a is not None
    assert a.source == "chunks"
    assert normal_form(Answer(usage=Usage(7, 12), spec=spec)) is None


def test_a_gap_in_the_histogram_keeps_its_place():
    a = from_steps([Step(3, 0, 1)] * 50 + [Step(3, 2, 3)] * 50, "per_step", plain_steps=0, k=3)
    assert a.histogram == (50, 0, 50, 0)
    assert a.acceptance_rates() == (0.5, 1.0, 0.0)
    assert a.acceptance_length() == 2.0


def test_plain_steps_are_told_from_an_overshoot_by_the_chunks():
    # Steps of 3 and 4 tokens, three plain ones between, and a last draft of which one token was left.
    found = clipped_steps([(3, 2), (3, 3)], decoded=3 + 3 + 1, num_chunks=1 + 5)
    assert found is not None
    steps, plain = found
    assert [s.delivered for s in steps] == [3, 1]
    assert plain == 3
    assert clipped_steps([(3, 2), (3, 3)], decoded=9, num_chunks=None) is None


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    k = draw(st.integers(1, 8))
    steps = draw(st.lists(st.tuples(st.integers(1, k), st.integers(0, k)).map(lambda p: (p[0], min(p))), min_size=1))
    return steps, draw(st.integers(0, steps[-1][1]))


@given(runs())
def test_mean_of_the_histogram_is_one_plus_the_sum_of_products(run):
    per_step, overshoot = run
    decoded = sum(m + 1 for _, m in per_step) - overshoot
    found = clipped_steps(per_step, decoded, None)
    assert found is not None
    assert found[1] == 0
    a = from_steps(found[0], "per_step", plain_steps=0, k=8)
    assert a.delivered == decoded == sum((i + 1) * n for i, n in enumerate(a.histogram or ()))
    total, product = 1.0, 1.0
    for rate in a.acceptance_rates() or ():
        product *= rate or 0.0
        total += product
    assert total == pytest.approx(a.acceptance_length())
    rate = a.acceptance_rate()
    assert rate is not None
    assert 0 <= rate <= 1
    for told, survived in zip(a.tried or (), (a.survival() or ())[1:], strict=True):
        assert survived <= told


@given(st.lists(runs(), min_size=1, max_size=4))
def test_pooling_is_the_same_as_one_long_request(parts):
    forms = [from_steps([Step(d, m, m + 1) for d, m in steps], "per_step", plain_steps=1, k=8) for steps, _ in parts]
    whole = from_steps(
        [Step(d, m, m + 1) for steps, _ in parts for d, m in steps], "per_step", plain_steps=len(parts), k=8
    )
    assert pooled(forms) == whole


def test_depth_of_a_tree_and_its_nodes_stay_apart():
    a = Acceptance("totals", 10, 25, drafted=None, accepted=15, nodes=600)
    assert a.acceptance_length() == 2.5
    assert a.acceptance_rate() is None


def test_a_step_that_delivered_nothing_does_not_count():
    found = clipped_steps([(3, 3), (3, 2), (3, 1)], decoded=4, num_chunks=None)
    assert found is not None
    assert [step.delivered for step in found[0]] == [4, 0, 0]
    a = from_steps(found[0], "per_step", plain_steps=0, k=3)
    assert (a.steps, a.delivered, a.histogram, a.drafted) == (1, 4, (0, 0, 0, 1), 3)
