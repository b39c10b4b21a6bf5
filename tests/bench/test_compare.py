import pytest

from bench.answer import Answer, Chunk, Usage
from bench.comparison.compare import Side, compare
from bench.measured import Measured
from bench.trace import Reads, Trace

MS = 1_000_000


def answered(name: str, first_ms: float, last_ms: float, tokens: int, repeat: int = 0) -> Measured:
    """One request sent at 0: its first token at `first_ms`, the others up to `last_ms`."""
    at = [int(first_ms * MS), int(last_ms * MS)]
    trace = Trace(name, 0, 1, {"category": "math"}, "", None, 0, 0, 0, at[1], Reads(), repeat=repeat)
    chunks = (Chunk(at[0], 1), Chunk(at[1], tokens - 1, read=1))
    return Measured(trace, Answer(chunks, usage=Usage(5, tokens), finish_reason="stop"), None)


def side(name: str, requests: list[Measured]) -> Side:
    return Side(name, {}, {"gates": [], "synthetic_prompts": False}, requests)


def ratio(first: list[Measured], second: list[Measured]) -> float:
    return compare(side("plain", first), side("draft", second))["speed_up"]["user_tps"]["ratio"]["value"]


def test_the_speed_up_is_the_baselines_time_a_token_over_the_runs():
    plain = [answered("a", 10, 110, 11), answered("b", 10, 310, 11)]  # 10 and 30 ms a token
    draft = [answered("a", 10, 60, 11), answered("b", 10, 310, 11)]  # 5 and 30 ms
    assert ratio(plain, draft) == pytest.approx((10 + 30) / (5 + 30))
    speed_up = compare(side("plain", plain), side("draft", draft))["speed_up"]
    assert "difference" not in speed_up["user_tps"], "it would be one of seconds a token"
    assert speed_up["e2e_s"]["difference"]["value"] == pytest.approx(-0.025)


def test_an_answer_whose_tokens_came_in_one_burst_does_not_outweigh_the_others():
    plain = [answered(str(n), 10, 110, 11) for n in range(4)]
    steady = [answered(str(n), 10, 60, 11) for n in range(4)]
    burst = [*steady[:3], answered("3", 59.999, 60, 11)]
    assert ratio(plain, steady) == pytest.approx(2.0)
    assert 2.0 < ratio(plain, burst) < 2.7, "its 10 million tokens a second would make it thousands"


def test_only_pairs_count():
    compared = compare(
        side("plain", [answered("a", 10, 110, 11), answered("b", 10, 110, 11)]),
        side("draft", [answered("a", 10, 60, 11), answered("c", 10, 60, 11)]),
    )
    assert (compared["speed_up"]["user_tps"]["pairs"], compared["speed_up"]["user_tps"]["unpaired"]) == (1, 2)


def test_repeats_of_a_pair_narrow_no_interval():
    def sides(repeats: int) -> tuple[Side, Side]:
        runs = [(n, repeat) for n in range(9) for repeat in range(repeats)]
        plain = [answered(str(n), 10, 110 + n, 11, repeat) for n, repeat in runs]
        return side("plain", plain), side("draft", [answered(str(n), 10, 60 + n * n, 11, repeat) for n, repeat in runs])

    once, thrice = (compare(*sides(repeats))["speed_up"]["user_tps"]["ratio"] for repeats in (1, 3))
    for bound in ("value", "low", "high"):
        assert thrice[bound] == pytest.approx(once[bound])
    assert thrice["n"] == once["n"] == 9
