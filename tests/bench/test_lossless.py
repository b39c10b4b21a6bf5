"""The two parts of the lossless check as pure functions of requests."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.acceptance import Step, from_steps
from bench.answer import Answer
from bench.lossless.greedy import compare_greedy, first_difference
from bench.lossless.sampled import compare_sampled
from bench.lossless.tables import difference_rows, verdict_rows
from bench.lossless.verdict import not_shown, overall_verdict
from bench.measured import Measured
from bench.trace import Reads, Trace

IDS = st.lists(st.integers(0, 3), max_size=6)


def said(
    name: str,
    ids: list[int] | None = None,
    *,
    text: str = "",
    turn: int = 0,
    turns: int = 1,
    repeat: int = 0,
    prompt: str = "",
    error: str = "",
    steps: int = 1,
) -> Measured:
    """One request that answered `ids`, or `text` where the engine tells none, with some verify steps."""
    key = prompt or f"{name}-{turn}"
    trace = Trace(name, turn, turns, {"category": "math"}, key, 3, 0, 0, 0, 1, Reads(), repeat=repeat)
    answer = Answer(token_ids=None if ids is None else tuple(ids), text=text, error=error)
    acceptance = from_steps([Step(3, 0, 1)] * steps, "per_step", plain_steps=0, k=3)
    return Measured(trace, answer, acceptance)


def test_the_first_difference_is_named_with_both_tokens():
    plain = [said("a", [5, 6, 7]), said("b", [1, 2]), said("c", [4, 4, 4])]
    spec = [said("a", [5, 6, 7]), said("b", [1, 9, 9]), said("c", [4, 4])]
    found = compare_greedy(plain, spec)
    assert (found["verdict"], found["equal"], found["conversations"], found["by"]) == ("differs", 1, 3, "token_ids")
    rows = [(d["conversation_id"], d["position"], d["plain"], d["speculative"]) for d in found["differences"]]
    assert rows == [("b", 1, 2, 9), ("c", 2, 4, None)], "an answer that ended early differs where it ended"
    assert found["share_equal"] == pytest.approx(1 / 3)


@given(IDS, IDS)
def test_sequences_are_equal_up_to_their_first_difference_and_not_there(a, b):
    position = first_difference(a, b)
    if position is None:
        assert a == b
    else:
        assert a[:position] == b[:position]
        assert a[position : position + 1] != b[position : position + 1]
    assert first_difference(b, a) == position


def test_turns_after_a_difference_are_not_compared_for_they_had_another_prompt():
    plain = [said("a", [1, 2], turn=0, turns=2), said("a", [3], turn=1, turns=2)]
    spec = [said("a", [1, 0], turn=0, turns=2), said("a", [9, 9], turn=1, turns=2, prompt="another")]
    found = compare_greedy(plain, spec)
    assert [(d["turn"], d["position"]) for d in found["differences"]] == [(0, 1)]
    later = compare_greedy(plain, [spec[0].__class__(plain[0].trace, plain[0].answer, spec[0].acceptance), spec[1]])
    assert [(d["turn"], d["position"], d["plain"], d["speculative"]) for d in later["differences"]] == [(1, 0, 3, 9)]


def test_without_ids_texts_are_compared_and_the_verdict_says_so():
    plain, spec = [said("a", text="seven lamps")], [said("a", text="seven lanterns")]
    found = compare_greedy(plain, spec)
    assert (found["by"], found["verdict"]) == ("text", "differs")
    assert [(d["position"], d["plain"], d["speculative"]) for d in found["differences"]] == [(8, "m", "n")]
    assert compare_greedy(plain, [said("a", text="seven lamps")])["verdict"] == "equal"
    # llama.cpp tells no ids of an answer that ends inside a character: the others are compared by theirs.
    plain, spec = (
        [*plain, said("b", [1, 2], text="x")],
        [said("a", [5], text="seven lamps"), said("b", [1, 3], text="x")],
    )
    mixed = compare_greedy(plain, spec)
    assert (mixed["by"], mixed["by_text"], mixed["equal"]) == ("token_ids", 1, 1)
    assert [d["conversation_id"] for d in mixed["differences"]] == ["b"]


def test_what_could_not_be_compared_is_listed_and_too_much_of_it_leaves_nothing_shown():
    names = [f"c{n}" for n in range(10)]
    plain = [said(name, [1]) for name in names]
    spec = [said(name, [1]) for name in names[1:]] + [said("c0", [1], error="HTTP 500")]
    found = compare_greedy(plain, spec)
    assert (found["verdict"], found["equal"]) == ("equal", 9)
    assert found["not_compared"] == [{"conversation_id": "c0", "repeat": 0, "reason": "speculative run: HTTP 500"}]
    few = compare_greedy([plain[0], *plain[2:]], spec[1:])
    assert few["verdict"] == "not shown"
    reasons = {row["conversation_id"]: row["reason"] for row in few["not_compared"]}
    assert reasons == {"c0": "speculative run: HTTP 500"}
    few = compare_greedy([plain[0], *plain[3:], said("z", [1])], spec[1:])
    reasons = {row["conversation_id"]: row["reason"] for row in few["not_compared"]}
    assert reasons == {
        "c0": "speculative run: HTTP 500",
        "c2": "not in the plain run",
        "z": "not in the speculative run",
    }
    other = compare_greedy([said("a", [1], prompt="x")], [said("a", [1], prompt="y")])
    assert (other["verdict"], other["not_compared"][0]["reason"]) == (
        "not shown",
        "the two runs sent different prompts",
    )


def test_equal_outputs_of_a_run_that_never_drafted_show_nothing():
    plain = [said("a", [1, 2])]
    assert compare_greedy(plain, [said("a", [1, 2], steps=0)])["verdict"] == "not shown"
    untold = Measured(plain[0].trace, plain[0].answer, None)
    found = compare_greedy(plain, [untold])
    assert (found["verdict"], found["speculation"]) == ("equal", None)


def test_repeats_of_the_plain_run_say_how_alike_it_is_to_itself():
    plain = [said("a", [1]), said("a", [1], repeat=1), said("b", [1]), said("b", [2], repeat=1)]
    found = compare_greedy(plain, [said("a", [1]), said("b", [1]), said("b", [1], repeat=2)])
    assert found["plain_repeats"] == {"conversations": 2, "equal": 1}
    assert found["conversations"] == 3, "a repeat that the plain run lacks is held against its first"
    assert compare_greedy(plain[:1], [said("a", [1])])["plain_repeats"] is None


def test_a_difference_at_a_near_tie_is_no_fault_of_the_speculation():
    plain = [said("a", [1, 2]), said("b", [1, 2]), said("c", [1, 2])]
    spec = [said("a", [1, 3]), said("b", [1, 3]), said("c", [1, 2])]
    close = compare_greedy(plain, spec, gaps={("a", 0): 0.02, ("b", 0): -0.05})
    assert (close["verdict"], close["near_ties"], close["equal"]) == ("equal", 2, 1)
    assert close["reason"].startswith("1 of 3 conversations; 2 part at a near-tie")
    wide = compare_greedy(plain, spec, gaps={("a", 0): 0.02, ("b", 0): 1.5})
    assert (wide["verdict"], wide["reason"]) == ("differs", "2 of 3 conversations, 1 of them at a near-tie")
    assert [row["logprob_gap"] for row in wide["differences"]] == [0.02, 1.5]
    # The plain engine itself, asked anew, finds the other token far likelier: no near-tie either.
    turned = compare_greedy(plain, spec, gaps={("a", 0): -1.5, ("b", 0): 0.0})
    assert (turned["verdict"], turned["near_ties"]) == ("differs", 1)
    untold = compare_greedy(plain, spec, gaps={("a", 0): None})
    assert (untold["verdict"], untold["near_ties"]) == ("differs", None)


def sampled(p: np.ndarray, n: int, rng: np.random.Generator, *, prompts: int = 2, steps: int = 1) -> list[Measured]:
    """Second tokens drawn from p; the first tokens are free, the copies of a prompt under ids of their own."""
    rows = []
    for prompt in range(prompts):
        for i, token in enumerate(rng.choice(len(p), n, p=p)):
            ids = [int(rng.integers(50)), int(token), 7]
            rows.append(said(f"{prompt}/{i}", ids, prompt=f"prompt-{prompt}", steps=steps))
    return rows


def peaked(k: int = 30) -> np.ndarray:
    weights = 1.0 / np.arange(1, k + 1)
    return weights / weights.sum()


def test_one_distribution_is_equal_and_a_shifted_one_differs():
    rng = np.random.default_rng(7)
    p = peaked()
    q = 0.75 * p
    q[3] += 0.25
    plain = sampled(p, 800, rng)
    same, other = (compare_sampled(plain, sampled(x, 800, rng)) for x in (p, q))
    assert same["verdict"] == "equal"
    assert same["smallest_tv_found"] < 0.2
    assert other["verdict"] == "differs"
    assert other["p_value"] == pytest.approx(1e-4)
    assert other["largest"][0]["token"] == 3
    assert other["largest"][0]["speculative"] - other["largest"][0]["plain"] == pytest.approx(0.25, abs=0.06)
    assert (other["n"], other["left_out"], other["strata"]) == ((1600, 1600), 0, 2)


def test_lossless_samples_are_flagged_no_more_often_than_stated():
    rng = np.random.default_rng(29)
    verdicts = [
        compare_sampled(sampled(peaked(), 60, rng), sampled(peaked(), 60, rng), alpha=0.1, seed=i)["verdict"]
        for i in range(40)
    ]
    assert verdicts.count("differs") <= 10, "1 in 10 on average"


def test_too_few_samples_show_nothing_but_may_still_differ():
    rng = np.random.default_rng(1)
    few = compare_sampled(sampled(peaked(), 40, rng), sampled(peaked(), 40, rng))
    assert few["verdict"] == "not shown"
    assert few["reason"].startswith("too few samples")
    single = compare_sampled([said("a", [1, 2])], [said("a", [1, 2])])
    assert (single["verdict"], single["reason"]) == ("not shown", "each prompt was sampled once; set load.repeats")


def test_later_turns_are_no_samples_of_a_prompt():
    rng = np.random.default_rng(9)
    plain, spec = sampled(peaked(), 400, rng), sampled(peaked(), 400, rng)
    later = [said(f"l/{n}", [1, 2, 3], prompt="prompt-0", turn=1, turns=2) for n in range(300)]
    found = compare_sampled(plain, [*spec, *later])
    assert (found["n"], found["left_out"]) == ((800, 800), 300)
    assert found["verdict"] != "differs"


def test_samples_that_were_hardly_drafted_show_nothing():
    rng = np.random.default_rng(6)
    plain, spec = sampled(peaked(), 800, rng), sampled(peaked(), 800, rng)
    undrafted = said("", steps=0).acceptance
    few = [m if i % 10 == 0 else replace(m, acceptance=undrafted) for i, m in enumerate(spec)]
    found = compare_sampled(plain, few)
    assert found["verdict"] == "not shown"
    assert "only 10% of the requests had a step with a draft" in found["reason"]
    assert compare_sampled(plain, spec)["verdict"] == "equal"


def test_what_hides_a_difference_is_no_proof_of_equality():
    rng = np.random.default_rng(2)
    plain = sampled(peaked(), 400, rng)
    assert compare_sampled(plain, sampled(peaked(), 400, rng, steps=0))["reason"].startswith("no step")
    copies = [said(f"a/{n}", [1, 2, 3], prompt="p") for n in range(40)]
    assert "one seed" in compare_sampled(copies, copies)["reason"]
    texts = [said(f"a/{n}", text="x", prompt="p") for n in range(40)]
    assert compare_sampled(texts, texts)["reason"] == "the engine tells no token ids"
    failed = [said(f"a/{n}", prompt="p", error="HTTP 400: no") for n in range(40)]
    assert compare_sampled(plain, failed)["reason"] == "speculative run: HTTP 400: no"
    assert compare_sampled([], plain)["reason"] == "plain run: nothing was sent"
    some = [*sampled(peaked(), 400, rng), *(said(f"t/{n}", text="x", prompt="p") for n in range(200))]
    assert (
        compare_sampled(plain, some)["reason"] == "speculative run: 800 of 1000 answers are there with their token ids"
    )


def test_an_answer_of_one_token_counts_as_one_that_ended():
    rng = np.random.default_rng(4)
    short = [said(f"s/{n}", [1], prompt="p") for n in range(150)]
    long = [said(f"l/{n}", [1, int(rng.integers(2))], prompt="p") for n in range(150)]
    found = compare_sampled(short + long, [*long, *[said(f"m/{n}", [1, 0], prompt="p") for n in range(150)]])
    assert found["verdict"] == "differs"
    assert -1 in {row["token"] for row in found["largest"]}


def test_the_parts_make_one_verdict():
    equal, differs, none = {"verdict": "equal"}, {"verdict": "differs"}, not_shown("no runs")
    assert overall_verdict(equal, differs) == overall_verdict(differs, none) == "differs"
    assert overall_verdict(equal, none) == overall_verdict(none, equal) == "equal"
    assert overall_verdict(none, none) == "not shown"


def test_tables_name_each_part_and_each_difference():
    t0 = compare_greedy([said("a", [1, 2])], [said("a", [1, 3])])
    verdict = {"verdict": "differs", "t0": t0, "t1": not_shown("no sampled runs were given")}
    rows = verdict_rows(verdict)
    assert ["", "verdict", "differs"] in rows
    assert ["t0", "share_equal", "0.0000"] in rows
    assert ["t1", "reason", "no sampled runs were given"] in rows
    assert difference_rows(verdict)[1:] == [["a", "0", "0", "1", "2", "3", "n/a"]]
    rng = np.random.default_rng(8)
    q = np.roll(peaked(), 5)
    t1 = compare_sampled(sampled(peaked(), 300, rng), sampled(q, 300, rng))
    sides = difference_rows({"verdict": "differs", "t0": not_shown(""), "t1": t1})
    assert sides[0] == ["prompt_sha256", "token", "plain", "speculative"]
    assert len(sides) == 6
