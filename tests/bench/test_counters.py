import pytest

from bench.counters import CounterNames, difference, parse_snapshot

NAMES = CounterNames("toy:drafts_total", "toy:draft_tokens_total", "toy:accepted_total", "toy:accepted_at_total")


def page(**ranks: tuple[int, int, int]) -> dict:
    lines = ["# TYPE toy:drafts counter", "# TYPE toy:draft_tokens counter", "# TYPE toy:accepted counter"]
    for name, column in (("drafts", 0), ("draft_tokens", 1), ("accepted", 2)):
        lines += [f'toy:{name}_total{{rank="{rank}"}} {values[column]}' for rank, values in ranks.items()]
    return parse_snapshot("\n".join(lines) + "\n")


WARM = page(a=(50, 200, 40), c=(10, 40, 30))
DONE = page(a=(90, 360, 60), b=(100, 400, 210), c=(20, 80, 60))


def test_differences_are_summed_over_ranks_and_a_new_rank_starts_at_zero():
    delta = difference(WARM, DONE, NAMES)
    assert (delta.drafts, delta.draft_tokens, delta.accepted) == (150, 600, 260)
    assert delta.engine_acceptance_length() == pytest.approx(1 + 260 / 150)
    assert delta.engine_acceptance_rate() == pytest.approx(260 / 600)


def test_a_counter_that_fell_gives_no_number_and_names_the_rank():
    fell = page(a=(90, 360, 60), b=(100, 400, 210), c=(5, 20, 9))
    delta = difference(WARM, fell, NAMES)
    assert 'rank="c"' in delta.restarted
    assert delta.engine_acceptance_length() is None
    assert delta.engine_acceptance_rate() is None


def test_a_rank_that_vanished_is_a_restart():
    assert difference(WARM, page(a=(90, 360, 60)), NAMES).restarted


def test_an_absent_counter_is_none_and_no_traffic_is_undefined():
    assert difference({}, {}, NAMES).drafts is None
    assert difference(WARM, WARM, NAMES).drafts == 0
    assert difference(WARM, WARM, NAMES).engine_acceptance_length() is None


def test_positions_are_summed_over_ranks():
    text = 'toy:accepted_at_total{rank="%s",position="%d"} %d\n'
    after = parse_snapshot("".join(text % row for row in (("a", 0, 9), ("a", 1, 4), ("b", 0, 1), ("b", 2, 1))))
    assert difference({}, after, NAMES).accepted_at == (10, 4, 1)
