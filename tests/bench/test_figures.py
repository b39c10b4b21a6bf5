import json
from dataclasses import replace

import numpy as np
import pytest

from bench.acceptance import Acceptance, Step, from_steps
from bench.answer import Answer, Chunk, Usage
from bench.figures import base
from bench.figures.acceptance import AcceptanceLength, AcceptanceRate
from bench.figures.base import Context
from bench.figures.latency import (
    EndToEndLatency,
    StepLatency,
    TimePerOutputToken,
    TimeToFirstToken,
    TimeToFirstTokenFromIntended,
    UserThroughput,
)
from bench.figures.registry import RATIO_FIGURES, RUN_FIGURES, SAMPLE_FIGURES
from bench.figures.throughput import BatchSpread, EnergyPerToken, Goodput, OutputThroughput, OutputThroughputPerGpu
from bench.measured import Measured, by_conversation, is_complete
from bench.trace import Reads, Trace
from bench.window import Window, steady_state, tokens_within, whole_run

S = 1_000_000_000


def ns(seconds: float) -> int:
    return round(seconds * S)


def request(
    name: str,
    sent: float,
    chunks: list[tuple[float, int]],
    *,
    error: str = "",
    turn: int = 0,
    num_turns: int = 1,
    category: str = "math",
    steps: list[int] | None = None,
) -> Measured:
    end = chunks[-1][0] if chunks else sent
    trace = Trace(
        name, turn, num_turns, {"category": category}, "", None, ns(sent), ns(sent), ns(sent), ns(end), Reads()
    )
    pieces = tuple(Chunk(ns(at), n, read=i) for i, (at, n) in enumerate(chunks))
    answer = Answer(pieces, usage=Usage(5, sum(n for _, n in chunks)), finish_reason="stop", error=error)
    acceptance = from_steps([Step(None, c - 1, c) for c in steps], "chunks", plain_steps=None) if steps else None
    return Measured(trace, answer, acceptance)


def mean(figure, requests):
    return float(np.mean(base.all_samples(figure, requests)))


def test_the_gap_before_the_first_token_is_no_step():
    runs = [
        request("a", 0.0, [(0.4, 1), (0.43, 2), (0.46, 3), (0.52, 1)]),
        request("b", 0.2, [(1.0, 1), (1.04, 5)]),
    ]
    assert base.all_samples(TimeToFirstToken(), runs).tolist() == pytest.approx([0.4, 0.8])
    assert base.all_samples(StepLatency(), runs).tolist() == pytest.approx([0.03, 0.03, 0.06, 0.04])
    assert base.all_samples(UserThroughput(), runs).tolist() == pytest.approx([6 / 0.12, 5 / 0.04])
    assert base.all_samples(TimePerOutputToken(), runs).tolist() == pytest.approx([0.02, 0.008])
    assert base.all_samples(EndToEndLatency(), runs).tolist() == pytest.approx([0.52, 0.84])
    assert OutputThroughput().value(runs, Context()) == pytest.approx(13 / 1.04)


def test_one_token_answers_errors_and_empty_streams_add_nothing():
    runs = [
        request("many", 0.0, [(0.1, 1), (0.5, 10)]),
        request("one", 0.0, [(0.3, 1)]),
        request("refused", 0.0, [], error="HTTP 503: busy"),
        request("empty", 0.1, [], error="empty stream"),
    ]
    assert mean(TimeToFirstToken(), runs) == pytest.approx(0.2)
    assert base.percentile(base.all_samples(TimeToFirstToken(), runs), 50) == pytest.approx(0.2)
    assert base.all_samples(TimePerOutputToken(), runs).tolist() == pytest.approx([0.04])
    assert OutputThroughput().value(runs, Context()) == pytest.approx(12 / 0.5)
    failed = [request("x", 0.0, [], error="HTTP 500")]
    assert OutputThroughput().value(failed, Context()) is None
    assert whole_run(failed) is None


def test_a_first_chunk_of_several_tokens_does_not_inflate_the_rate():
    assert base.all_samples(UserThroughput(), [request("a", 0, [(1, 4), (2, 2), (3, 2)])]).tolist() == [2.0]


def test_the_three_aggregations_of_acceptance_length_have_their_own_names():
    # roleplay: 12 tokens in 8 steps over two turns; math: 10 in 2, and 4 in 2 with a second turn that failed.
    runs = [
        request("p", 0, [(1, 1)], category="roleplay", num_turns=2, steps=[3, 3, 2]),
        request("p", 2, [(3, 1)], category="roleplay", num_turns=2, turn=1, steps=[1, 1, 1, 1, 0 + 1]),
        request("q", 0, [(1, 1)], steps=[5, 5]),
        request("r", 0, [(1, 1)], num_turns=2, steps=[2, 2]),
        request("r", 2, [], num_turns=2, turn=1, error="HTTP 500"),
    ]
    figure = AcceptanceLength()
    assert base.pooled(figure, runs) == pytest.approx((13 + 10 + 4) / (8 + 2 + 2))
    assert base.request_mean(figure, runs) == pytest.approx((13 / 8 + 5 + 2) / 3)
    assert base.headline(figure, runs) == pytest.approx((13 / 8 + (5 + 2) / 2) / 2)
    for order in ([4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        assert base.headline(figure, [runs[i] for i in order]) == pytest.approx(base.headline(figure, runs))
    complete = {key: is_complete(turns) for key, turns in by_conversation(runs).items()}
    assert complete == {("p", 0): True, ("q", 0): True, ("r", 0): False}


def test_undefined_is_none_for_every_figure():
    for figure in RATIO_FIGURES:
        assert base.pooled(figure, []) is base.request_mean(figure, []) is base.headline(figure, []) is None
    for figure in SAMPLE_FIGURES:
        assert base.percentile(base.all_samples(figure, []), 50) is None
    for figure in RUN_FIGURES:
        assert figure.value([], Context()) is None


def test_every_figure_states_itself_and_names_are_unique():
    figures = [*RATIO_FIGURES, *SAMPLE_FIGURES, *RUN_FIGURES]
    assert len({f.name for f in figures}) == len(figures)
    assert all(f.formula and isinstance(f.needs, tuple) for f in figures)
    json.dumps([[f.name, f.unit, f.formula, f.needs, f.higher_is_better] for f in figures])


def test_a_percentile_that_cannot_be_known_is_not_stated():
    values = np.arange(499.0)
    assert base.percentile(values, 99) is None
    assert base.percentile(np.arange(500.0), 99) == pytest.approx(494.01)
    assert base.percentile(values, 90) is not None
    assert base.percentile(np.arange(49.0), 90) is None


def test_latency_counts_from_the_intended_time_in_an_open_loop():
    late = request("a", 1.0, [(1.5, 1)])
    late = replace(late, trace=replace(late.trace, intended_ns=ns(0.25)))
    assert mean(TimeToFirstTokenFromIntended(), [late]) == pytest.approx(1.25)
    assert mean(TimeToFirstToken(), [late]) == pytest.approx(0.5)


def test_goodput_counts_requests_within_both_limits():
    runs = [request("a", 0, [(0.1, 1), (0.2, 2)]), request("b", 0, [(0.5, 1), (2.0, 2)]), request("c", 0, [(0.1, 1)])]
    assert Goodput().value(runs, Context()) is None
    assert Goodput().value(runs, Context(ttft_limit_s=0.2)) == pytest.approx(2 / 2.0)
    assert Goodput().value(runs, Context(ttft_limit_s=1.0, tpot_limit_s=0.06)) == pytest.approx(2 / 2.0)


def test_throughput_and_energy_by_gpu_and_token():
    runs = [request("a", 0, [(1, 1), (2, 9)])]
    assert OutputThroughputPerGpu().value(runs, Context(num_gpus=4)) == pytest.approx(1.25)
    assert OutputThroughputPerGpu().value(runs, Context()) is None
    assert EnergyPerToken().value(runs, Context(energy_j=50.0)) == pytest.approx(5.0)


def test_spread_across_a_batch_is_the_deviation_within_a_step():
    runs = [request("a", 0, [(0.1, 1), (1.1, 1), (2.1, 3)]), request("b", 0, [(0.2, 1), (1.2, 3), (2.2, 3)])]
    assert BatchSpread().value(runs, Context()) == pytest.approx((np.std([1, 3], ddof=1) + 0) / 2)
    assert BatchSpread().value(runs[:1], Context()) is None


def test_the_steady_state_is_the_longest_span_of_full_load():
    runs = [request(str(i), 0, [(100, 10)]) for i in range(3)] + [request("late", 50, [(180, 13)])]
    window = steady_state(runs, concurrency=4)
    assert window is not None
    assert (window.start_ns, window.end_ns) == (50 * S, 100 * S)
    assert window.refused.startswith("steady for 50.0 s")
    assert tokens_within(runs, window) == pytest.approx(3 * 5 + 13 * 50 / 130)
    assert tokens_within(runs, Window(0, 180 * S)) == pytest.approx(43)
    assert steady_state(runs, concurrency=9) is None


def test_a_stream_between_two_requests_does_not_end_the_steady_state():
    one_after_another = [request(str(n), n * 10.2, [(n * 10.2 + 10, 10)]) for n in range(5)]
    window = steady_state(one_after_another, concurrency=1)
    assert window is not None
    assert (window.start_ns, window.end_ns) == (0, ns(4 * 10.2 + 10))
    idle = [request(str(n), n * 11, [(n * 11 + 10, 10)]) for n in range(5)]
    window = steady_state(idle, concurrency=1)
    assert window is not None
    assert window.duration_s == pytest.approx(10.0), "a second in eleven is no pause between two requests"


def test_acceptance_rate_is_over_drafted_tokens():
    told = Measured(request("a", 0, [(1, 3)]).trace, Answer(), Acceptance("totals", 4, 10, drafted=12, accepted=6))
    assert base.pooled(AcceptanceRate(), [told]) == 0.5
