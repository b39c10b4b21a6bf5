"""Accept lengths of a Spec-Bench method against the steps that they came from."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.acceptance import Step as NormalStep
from bench.acceptance import from_steps
from bench.inprocess.alignment import align, counting_of, trimmed
from bench.inprocess.device import Forward
from bench.inprocess.protocol import RequestError

PROMPT = 10


def forwards(fed):
    """Forwards of 100 ns, 20 ns apart, from 1,000 ns on."""
    return [Forward(1_000 + 120 * n, 1_100 + 120 * n, count) for n, count in enumerate(fed)]


def aligned(lengths, fed, num_tokens, *, is_chain=True):
    tokens = list(range(num_tokens))
    return align(tokens, lengths, forwards(fed), prompt_tokens=PROMPT, start_ns=980, is_chain=is_chain)


def shown(steps):
    return [(list(s.ids), s.kind, s.drafted, s.matched) for s in steps]


def test_a_prefill_that_checks_drafts_is_a_verify_step():
    # Three drafts each: 2 matched and a token of the target's own, then none, then all three.
    assert shown(aligned([3, 1, 4], [PROMPT + 3, 4, 4], 8)) == [
        ([0, 1, 2], "verify", 3, 2),
        ([3], "verify", 3, 0),
        ([4, 5, 6, 7], "verify", 3, 3),
    ]


def test_token_first_methods_deliver_what_each_forward_brought_one_place_later():
    # Medusa's way: the prefill's token 0 comes with the first step's two drafts, 1 and 2; that step's forward already
    # knew token 3. The last forward's own token is never delivered.
    assert shown(aligned([3, 1, 4], [PROMPT, 4, 4, 4], 8)) == [
        ([0], "prefill", None, None),
        ([1, 2, 3], "verify", 3, 2),
        ([4], "verify", 3, 0),
        ([5, 6, 7], "verify", 3, 3),
    ]


def test_a_last_step_without_a_match_brought_nothing_that_was_delivered():
    assert shown(aligned([2, 1], [PROMPT, 4, 4], 3))[-1] == ([], "verify", 3, 0)


def test_token_apart_methods_do_not_count_the_prefills_token():
    assert shown(aligned([3, 1], [PROMPT, 4, 4], 5)) == [
        ([0], "prefill", None, None),
        ([1, 2, 3], "verify", 3, 2),
        ([4], "verify", 3, 0),
    ]


def test_the_baseline_is_a_prefill_and_plain_steps():
    assert shown(aligned([1, 1, 1], [PROMPT, 1, 1], 3)) == [
        ([0], "prefill", None, None),
        ([1], "plain", 0, 0),
        ([2], "plain", 0, 0),
    ]


def test_of_a_tree_the_nodes_are_told_and_not_how_many_were_drafted():
    step = aligned([3], [PROMPT, 61], 3, is_chain=False)[1]
    assert (step.drafted, step.nodes, step.matched) == (None, 60, 2)


def test_times_lie_between_the_forwards():
    prefill, first, second = aligned([2, 2], [PROMPT, 4, 4], 4)
    assert (prefill.at_ns, prefill.verify_ns, prefill.draft_ns) == (1_100, 100, None)
    assert (first.at_ns, first.verify_ns, first.draft_ns) == (1_220, 100, 20)
    assert second.at_ns == 1_340
    assert aligned([2, 2], [PROMPT + 3, 4], 4)[0].draft_ns == 20, "a merged prefill drafts from the call on"


@pytest.mark.parametrize(("lengths", "count", "tokens"), [([2, 2], 4, 4), ([2, 2], 2, 5), ([2, 2], 3, 6), ([], 0, 3)])
def test_numbers_that_do_not_fit_are_refused_with_the_remedy(lengths, count, tokens):
    with pytest.raises(RequestError, match="--target"):
        counting_of(tokens, lengths, count)


STEPS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)).map(lambda p: (p[0], min(p))), min_size=1, max_size=12)
"""(drafted, matched) of each step of a chain."""


@given(STEPS)
def test_the_two_ways_of_a_prefill_of_its_own_tell_the_same_steps(steps):
    matched = [m for _, m in steps]
    num_tokens = 1 + sum(m + 1 for m in matched)
    fed = [PROMPT, *(d + 1 for d, _ in steps)]
    apart = aligned([m + 1 for m in matched], fed, num_tokens)
    # The same forwards, delivered token first: what the last one added is never shown.
    first = aligned([m + 1 for m in matched], fed, num_tokens - 1)
    assert [(s.kind, s.drafted, s.matched) for s in first] == [(s.kind, s.drafted, s.matched) for s in apart]
    assert [s.ids for s in first[:-1]] == [s.ids for s in apart[:-1]]
    assert first[-1].ids == apart[-1].ids[:-1]
    assert shown(apart)[1:] == [
        (list(range(end - m - 1, end)), "verify", d, m)
        for (d, m), end in zip(steps, accumulate((m + 1 for m in matched), initial=1), strict=False)
        for end in [end + m + 1]
    ]


@given(STEPS, st.integers(1, 60), st.integers(0, 80))
def test_a_cut_keeps_the_tokens_up_to_it_and_counts_in_the_normal_form(steps, budget, end):
    whole = aligned([m + 1 for _, m in steps], [PROMPT, *(d + 1 for d, _ in steps)], 1 + sum(m + 1 for _, m in steps))
    all_ids = [token for step in whole for token in step.ids]
    kept, reason = trimmed(whole, [end], budget)
    expected = all_ids[: min(budget, end + 1)]
    assert [token for step in kept for token in step.ids] == expected
    assert reason == ("stop" if end in expected else "length")
    verified = [s for s in kept if s.kind == "verify"]
    form = from_steps([NormalStep(s.drafted, s.matched, len(s.ids)) for s in verified], "per_step", plain_steps=0)
    assert form.delivered == len(expected) - 1
    assert all(step == original for step, original in zip(kept[:-1], whole, strict=False))
