import pytest

from bench.gates import loops


@pytest.mark.parametrize("period", [1, 2, 7, 40])
def test_an_answer_that_ends_by_repeating_itself_loops(period):
    assert loops([999, *list(range(100, 160)), *(list(range(period)) * 200)[:200]])


def test_text_loops_are_seen_too():
    assert loops("And so it was that " + "the fox ran. " * 20)


def test_an_answer_that_repeats_a_little_does_not_loop():
    assert not loops(list(range(300)))
    assert not loops([*range(300), *[7] * 60])
    assert not loops([])
    assert not loops([1, 1, 1])


def test_saying_a_thing_twice_is_no_loop():
    assert not loops(list(range(50)) * 2)
    assert loops(list(range(50)) * 4)
