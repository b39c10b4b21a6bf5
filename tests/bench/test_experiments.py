"""The experiments' figures: worked by hand, held against their definitions, and by laws."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.acceptance import Step, from_steps
from bench.answer import Answer, Chunk, SpecCounters, Usage
from bench.experiments.detectors import detect
from bench.experiments.draft_latency import from_gauge, inferred, step_latencies, timed
from bench.experiments.draft_length import Measurement, best_lengths
from bench.experiments.experts import expert_counts, expert_coverage
from bench.experiments.spec_bench import OVERALL, spec_bench_rows
from bench.experiments.tasks import end_to_end_tps, tasks_of
from bench.experiments.temperature import temperature_rows
from bench.experiments.tiers import tier_order
from bench.experiments.vocabulary import counted, pruned, top_tokens, verified_tokens
from bench.measured import Measured
from bench.trace import Reads, Trace

S = 1_000_000_000


def request(
    name: str,
    category: str = "qa",
    *,
    steps: list[int],
    plain: int | None = 0,
    sent_s: float = 0.0,
    prefill_s: float = 1.0,
    step_s: float = 0.5,
    ids: tuple[int, ...] | None = None,
    turn: int = 0,
    num_turns: int = 1,
    repeat: int = 0,
    speculative: bool = True,
    error: str = "",
    extras: dict | None = None,
) -> Measured:
    """One token after the prefill, then a chunk a step; the last `plain` steps drafted nothing."""
    at = [sent_s + prefill_s + i * step_s for i in range(len(steps) + 1)]
    sizes = [1, *steps]
    trace = Trace(
        name, turn, num_turns, {"category": category}, "", 5, 0, 0, round(sent_s * S), round(at[-1] * S), Reads(),
        repeat=repeat,
    )  # fmt: skip
    chunks = tuple(Chunk(round(t * S), n, read=i) for i, (t, n) in enumerate(zip(at, sizes, strict=True)))
    tokens = tuple(range(sum(sizes))) if ids is None else ids
    answer = Answer(
        chunks, token_ids=tokens, chunk_ids=True, usage=Usage(5, sum(sizes)), finish_reason="length", error=error,
        extras=extras or {},
    )  # fmt: skip
    verify = steps[: len(steps) - (plain or 0)]
    form = from_steps([Step(3, c - 1, c) for c in verify], "per_step", plain_steps=plain, k=3)
    return Measured(trace, answer, form if speculative else None)


# ---- per task, and Spec-Bench's own definitions


def test_end_to_end_speed_is_tokens_of_all_turns_over_their_time_with_the_prefill():
    turns = [
        request("a", steps=[2, 3], turn=0, num_turns=2),  # 6 tokens in 1 + 2 x 0.5 s
        request("a", steps=[3], turn=1, num_turns=2, sent_s=10.0, prefill_s=2.5),  # 4 tokens in 3 s
    ]
    assert end_to_end_tps(turns) == {("a", 0): pytest.approx(10 / 5)}
    (task,) = tasks_of(turns)
    assert task.e2e_tps is not None
    assert task.acceptance_length is not None
    assert (task.conversations, task.incomplete, task.e2e_tps.value) == (1, 0, pytest.approx(2.0))
    assert task.acceptance_length.value == pytest.approx(8 / 3)


def test_repeats_of_a_conversation_are_no_further_units_of_an_interval():
    copies = [request(f"{n}", steps=[1 + n % 3, 2], repeat=repeat) for n in range(9) for repeat in range(3)]
    (once,), (thrice,) = tasks_of([m for m in copies if not m.trace.repeat]), tasks_of(copies)
    assert thrice.acceptance_length == once.acceptance_length, "copies tell nothing new"
    assert thrice.e2e_tps == once.e2e_tps
    assert (thrice.acceptance_length.n, thrice.conversations) == (9, 27)
    (few,) = tasks_of([m for m in copies if m.trace.conversation_id < "3"])
    assert (few.acceptance_length.n, few.acceptance_length.low) == (3, None), "nine answers of three conversations"
    kept = pruned(copies, {0, 1}, 2)[0].outside
    assert kept == pruned([m for m in copies if not m.trace.repeat], {0, 1}, 2)[0].outside


def test_a_conversation_that_lacks_a_turn_is_counted_and_has_no_speed():
    broken = [request("a", steps=[2], num_turns=2), request("b", steps=[2])]
    (task,) = tasks_of(broken)
    assert (task.conversations, task.incomplete) == (2, 1)
    assert end_to_end_tps(broken).keys() == {("b", 0)}


def test_spec_bench_speed_is_a_mean_of_quotients_and_its_tokens_are_pooled_over_steps():
    # Two questions: 10 tokens in 2 s and 4 tokens in 4 s: (5 + 1) / 2 = 3, not 14 / 6.
    fast = request("q1", "qa", steps=[4, 4, 1], plain=1, prefill_s=0.5)
    slow = request("q2", "qa", steps=[2, 1], plain=1, prefill_s=3.0)
    base = [
        request("q1", "qa", steps=[1] * 9, plain=0, speculative=False),  # 10 tokens in 5.5 s
        request("q2", "qa", steps=[1] * 3, plain=0, speculative=False),  # 4 tokens in 2.5 s
    ]
    (task, overall) = spec_bench_rows([fast, slow], base)
    assert (task.task, overall.task, task.questions) == ("qa", OVERALL, 2)
    assert task.tokens_per_second is not None
    assert task.tokens_per_second.value == pytest.approx(3.0)
    assert task.tokens_per_second.std is None
    assert task.baseline_tokens_per_second is not None
    assert task.baseline_tokens_per_second.value == pytest.approx((10 / 5.5 + 4 / 2.5) / 2)
    assert task.speed_up is not None
    assert task.speed_up.value == pytest.approx(3.0 / ((10 / 5.5 + 1.6) / 2))
    # Steps that drafted nothing count with one token: (4 + 4 + 1 + 2 + 1) / 5, against ours over verify steps: 10 / 3.
    assert task.mean_accepted_tokens == pytest.approx(12 / 5)
    assert task.acceptance_length == pytest.approx(10 / 3)


def test_repeats_have_a_mean_and_a_deviation_with_n_less_one():
    runs = [request("q", "rag", steps=[3, 3], prefill_s=p, repeat=i) for i, p in enumerate((1.0, 2.5, 0.75))]
    base = [request("q", "rag", steps=[1] * 6, repeat=i, speculative=False) for i in range(3)]
    row = spec_bench_rows(runs, base)[0]
    speeds = [7 / 2.0, 7 / 3.5, 7 / 1.75]
    assert row.tokens_per_second is not None
    assert row.speed_up is not None
    assert row.tokens_per_second.value == pytest.approx(np.mean(speeds))
    assert row.tokens_per_second.std == pytest.approx(np.std(speeds, ddof=1))
    assert row.speed_up.value == pytest.approx(np.mean(speeds) / (7 / 4.0))


def test_the_six_tasks_stand_in_spec_benchs_order_with_mt_bench_as_one():
    names = ["rag", "writing", "qa", "coding", "translation", "summarization", "math_reasoning"]
    rows = spec_bench_rows([request(n, n, steps=[2]) for n in names], [])
    tasks = ["mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag", OVERALL]
    assert [row.task for row in rows] == tasks
    assert [row.questions for row in rows] == [2, 1, 1, 1, 1, 1, 7]
    assert all(row.speed_up is None for row in rows)


# ---- draft and verify latency


def test_times_that_an_engine_tells_are_means_over_steps_by_task():
    told = {"draft_ns": [2_000_000, 4_000_000], "verify_ns": [9_000_000, 11_000_000]}
    rows = timed([request("a", "qa", steps=[2, 2], extras=told), request("b", "rag", steps=[2])], 3)
    (row,) = rows
    assert (row.task, row.steps, row.evidence) == ("qa", 2, "timed")
    assert (row.draft_s, row.verify_s) == (pytest.approx(0.003), pytest.approx(0.010))
    assert row.draft_share == pytest.approx(3 / 13)


def test_a_gauge_splits_each_tasks_own_step():
    rows = from_gauge([request("a", "qa", steps=[2, 2]), request("b", "rag", steps=[2, 2], step_s=1.0)], 3, 0.25)
    assert [(r.task, r.draft_s, r.verify_s) for r in rows] == [
        ("qa", pytest.approx(0.125), pytest.approx(0.375)),
        ("rag", pytest.approx(0.25), pytest.approx(0.75)),
    ]
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        from_gauge([], 3, 1.2)


@given(st.floats(1e-3, 1.0), st.floats(0.0, 0.5), st.lists(st.integers(0, 12), min_size=2, max_size=5, unique=True))
def test_a_line_in_the_draft_length_is_found_again(base, slope, lengths):
    by_length = {k: {"qa": np.full(7, base + slope * k)} for k in lengths}
    rows = inferred(by_length)
    assert [row.draft_length for row in rows] == sorted(k for k in lengths if k)
    for row in rows:
        assert row.draft_s == pytest.approx(slope * row.draft_length, abs=1e-9)
        assert row.verify_s == pytest.approx(base, abs=1e-9)
        if len(lengths) > 2:
            assert row.residual_s == pytest.approx(0.0, abs=1e-9)
        else:
            assert row.residual_s is None, "a line goes through any two points"
        assert row.evidence == "inferred"


def test_a_line_that_falls_or_begins_below_zero_infers_no_time():
    falls = inferred({0: {"qa": np.full(3, 2.0)}, 4: {"qa": np.full(3, 1.0)}})
    below = inferred({1: {"qa": np.full(3, 1.0)}, 2: {"qa": np.full(3, 3.0)}})
    for rows in (falls, below):
        assert all((row.draft_s, row.verify_s, row.draft_share) == (None, None, None) for row in rows)
        assert all(row.steps == 3 for row in rows)


def test_one_draft_length_infers_nothing_and_a_bend_shows_as_residual():
    assert inferred({3: {"qa": np.ones(4)}}) == []
    rows = inferred({0: {"qa": np.full(3, 1.0)}, 1: {"qa": np.full(3, 1.0)}, 2: {"qa": np.full(3, 4.0)}})
    assert rows[0].residual_s == pytest.approx(1.0)
    assert step_latencies([request("a", steps=[1, 1])])["qa"].tolist() == [0.5, 0.5]


# ---- draft length, tiers, temperature


def test_the_best_length_differs_by_concurrency_and_none_may_be_best():
    tps = {
        (1, 0): 100,
        (1, 1): 150,
        (1, 3): 200,
        (64, 0): 900,
        (64, 1): 1000,
        (64, 3): 800,
        (256, 0): 2000,
        (256, 1): 1500,
    }
    best = best_lengths(Measurement("2k", c, k, v) for (c, k), v in tps.items())
    assert [(b.concurrency, b.draft_length) for b in best] == [(1, 3), (64, 1), (256, 0)]
    assert [b.gain for b in best] == [2.0, pytest.approx(10 / 9), 1.0]
    assert all(b.separated is None for b in best)


def test_a_best_length_is_separated_only_if_its_starts_lie_above_all_others():
    def cell(k, *values):
        return [Measurement("q", 8, k, v) for v in values]

    (clear,) = best_lengths(cell(0, 100, 101, 102) + cell(3, 150, 151, 152))
    (unclear,) = best_lengths(cell(0, 100, 101, 102) + cell(3, 95, 104, 110))
    (tied,) = best_lengths(cell(1, 100.0) + cell(3, 100.0))
    assert (clear.separated, unclear.separated) == (True, False)
    assert tied.draft_length == 1, "the shorter of two alike"
    assert tied.gain is None


def test_tiers_hold_fall_short_or_stay_open():
    rng = np.random.default_rng(0)
    low, mixed, high = (rng.normal(mean, 0.2, 40) for mean in (3.0, 2.5, 2.5))
    first, second = tier_order({"low_entropy": low, "mixed": mixed, "high_entropy": high})
    assert (first.first, first.second, first.verdict) == ("low_entropy", "mixed", "holds")
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.difference < first.high
    assert second.verdict == "not shown"
    (wrong,) = tier_order({"low_entropy": mixed, "mixed": low})
    assert wrong.verdict == "does not hold"
    (alike,) = tier_order({"low_entropy": np.full(9, 3.0), "mixed": np.full(9, 2.0)})
    assert (alike.verdict, alike.difference) == ("not shown", 1.0)
    (few,) = tier_order({"low_entropy": low[:3], "high_entropy": high})
    assert (few.verdict, few.low) == ("not shown", None)


def test_a_row_a_temperature_with_what_is_kept_of_the_lowest():
    cold = [request(f"{c}{i}", c, steps=[4, 4]) for c in ("qa", "rag") for i in range(9)]
    warm = [request(f"{c}{i}", c, steps=[2, 2]) for c in ("qa", "rag") for i in range(9)]
    plain = [request("x", "qa", steps=[1], speculative=False)]
    rows = temperature_rows({("k3", 1.0): warm, ("k3", 0.0): cold, ("plain", 0.0): plain})
    assert [(r.server, r.temperature, r.kept) for r in rows] == [
        ("k3", 0.0, 1.0),
        ("k3", 1.0, 0.5),
        ("plain", 0.0, None),
    ]
    assert rows[1].acceptance_length is not None
    assert rows[1].acceptance_length.value == 2.0
    assert rows[1].by_category == {"qa": 2.0, "rag": 2.0}


# ---- vocabulary


def test_a_draft_outside_the_vocabulary_ends_its_step_and_costs_one_more():
    # Prefill 9; steps (1 2 3), (7 4), (5). Outside of {1, 2, 3, 4, 5}: 9 and 7. Only 7 was a draft.
    ids = (9, 1, 2, 3, 7, 4, 5)
    (row,) = pruned([request("a", steps=[3, 2, 1], ids=ids)], {1, 2, 3, 4, 5}, 5)
    assert row.outside.value == pytest.approx(2 / 7)
    assert row.acceptance_length == pytest.approx(6 / 3)
    assert row.pruned_length == pytest.approx(6 / 4)
    assert row.cost == pytest.approx(0.25)
    assert (row.steps, row.untold, row.tokens) == (3, 0, 7)


def test_the_last_token_of_a_step_is_the_targets_own_and_costs_nothing():
    (row,) = pruned([request("a", steps=[2, 2], ids=(1, 1, 8, 1, 8))], {1}, 1)
    assert row.outside.value == pytest.approx(2 / 5)
    assert row.cost == 0.0


def test_plain_steps_are_no_steps_of_the_acceptance_length():
    (row,) = pruned([request("a", steps=[3, 1, 1], plain=2)], set(range(10)), 10)
    assert (row.acceptance_length, row.steps) == (3.0, 1)


def test_steps_that_chunks_do_not_tell_are_taken_from_counters_or_counted_as_untold():
    whole = request("a", steps=[3, 2])
    merged = replace(whole, answer=replace(whole.answer, chunks=(Chunk(S, 1), Chunk(2 * S, 5))))
    assert verified_tokens(whole) == [(1, 2, 3), (4, 5)]
    assert verified_tokens(merged) is None
    # The engine verified past the budget in its last step: three tokens, of which two were delivered.
    spec = SpecCounters(per_step=((3, 2), (3, 2)))
    assert verified_tokens(replace(merged, answer=replace(merged.answer, spec=spec))) == [(1, 2, 3), (4, 5)]
    (row,) = pruned([whole, replace(merged, trace=replace(merged.trace, conversation_id="b"))], {0}, 1)
    assert (row.untold, row.steps) == (1, 2)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=8),
    st.lists(st.integers(0, 9), min_size=40, max_size=40),
    st.integers(0, 10),
)
def test_a_larger_vocabulary_never_costs_more_and_the_whole_costs_nothing(steps, ids, k):
    one = request("a", steps=steps, ids=tuple(ids[: sum(steps) + 1]))
    counts = counted(ids)
    rows = [pruned([one], top_tokens(counts, size), size)[0] for size in range(1, 12)]
    costs = [row.cost for row in rows]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0.0
    assert rows[-1].outside.value == 0.0
    smaller = rows[min(k, 10)]
    assert smaller.pruned_length is not None
    assert smaller.acceptance_length is not None
    assert 1.0 <= smaller.pruned_length <= smaller.acceptance_length


def test_the_top_tokens_are_the_most_frequent_the_lower_id_at_a_tie():
    counts = counted([5, 5, 5, 2, 2, 9, 9, 1])
    assert counts == {1: 1, 2: 2, 5: 3, 9: 2}
    assert top_tokens(counts, 2) == {5, 2}
    assert top_tokens({**counts, 7: 0}, 99) == {1, 2, 5, 9}
    with pytest.raises(ValueError, match="k must be >= 1"):
        top_tokens(counts, 0)


# ---- experts


def test_coverage_of_a_layer_by_hand():
    even, narrow, none = [6, 6, 6, 6], [12, 12, 0, 0], [0, 0, 0, 0]
    first, second = expert_coverage(np.array([even, narrow, none]))
    assert (first.layer, first.used, first.effective, first.busiest) == (0, 1.0, pytest.approx(4.0), 1.0)
    assert (second.used, second.effective, second.busiest) == (0.5, pytest.approx(2.0), 2.0)


@given(st.integers(1, 6), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_every_token_goes_to_its_highest_experts(top_k, tokens, seed):
    logits = np.random.default_rng(seed).normal(size=(tokens, 6))
    counts = expert_counts(logits, top_k)
    slow = np.zeros(6, int)
    for row in logits:
        for expert in sorted(range(6), key=lambda e: -row[e])[:top_k]:
            slow[expert] += 1
    assert counts.tolist() == slow.tolist()
    assert counts.sum() == tokens * top_k
    with pytest.raises(ValueError, match="top_k"):
        expert_counts(logits, 7)


# ---- detectors, on outputs labelled by hand

LABELLED = [
    json.loads(line) for line in (Path(__file__).parent / "labelled_outputs.jsonl").read_text("utf-8").splitlines()
]


def test_the_labels_cover_kinds_languages_and_code():
    assert len(LABELLED) >= 40
    assert {row["label"] for row in LABELLED} == {"trivial", "topic_latching", "other"}
    assert len({row["lang"] for row in LABELLED}) >= 12
    assert sum(row["lang"] == "code" for row in LABELLED) >= 6


@pytest.mark.parametrize(("which", "most_wrong"), [("tuned", 0), ("held_out", 2)])
def test_the_detectors_agree_with_the_labels(which, most_wrong):
    """The held-out set was labelled once the rules stood, and did not change them."""
    rows = [row for row in LABELLED if row["set"] == which]
    wrong = [row for row in rows if detect(row["prompt"], row["output"]).kind != row["label"]]
    assert len(wrong) <= most_wrong, [row["output"][:60] for row in wrong]
    assert all(row["label"] == "trivial" for row in wrong), "what is missed is a way of saying that was not foreseen"


def test_a_topic_must_come_from_the_noise():
    latched = next(row for row in LABELLED if row["label"] == "topic_latching" and row["lang"] == "en")
    assert detect(latched["prompt"], latched["output"]).evidence == "porcelain"
    assert detect("kettle zel molto", latched["output"]).kind == "other"


def test_a_word_in_one_part_only_or_now_and_then_is_no_topic():
    other = "They walked along a wall and counted gates, birds, carts and open windows until evening came. "
    gathered = "Porcelain rings. Porcelain shines. Porcelain breaks. Porcelain, porcelain, porcelain. " + 9 * other
    assert detect("kettle porcelain zel", gathered).kind == "other"
    rare = " ".join(other * 6 + "Porcelain broke." for _ in range(6))
    assert detect("kettle porcelain zel", rare).kind == "other"
    dense = " ".join(other + "Porcelain rings, and porcelain breaks." for _ in range(6))
    assert detect("kettle porcelain zel", dense).evidence == "porcelain"


def test_a_short_answer_is_generic_at_either_end_and_a_long_one_at_both():
    words = "The letters stand in rows of uneven length, separated by commas, semicolons, brackets and numerals; " * 4
    ask, close = "I do not understand this message. ", "Please let me know what to do."
    assert len(words) > 320
    assert detect("zel", words[:330] + close).kind == "trivial"
    assert detect("zel", ask + words[:330]).kind == "trivial"
    long = words + words
    assert detect("zel", ask + long + close).kind == "trivial"
    assert detect("zel", ask + long).kind == "other", "it goes on to say something"
    assert detect("zel", long + close).kind == "other", "an offer at the end is manners"


def test_carrying_the_noise_on_is_no_topic():
    noise = "falcon mosaic " * 30
    assert detect(noise, noise).kind == "other"
    assert detect(noise, " .,; \n").kind == "trivial"


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_judged_and_judged_alike_twice(prompt, output):
    assert detect(prompt, output) == detect(prompt, output)
