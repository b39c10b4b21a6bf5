import pytest

from bench.answer import Answer, Usage
from bench.measured import Measured
from bench.slices import SLICES, slice_value, sliced
from bench.trace import Reads, Trace


def request(turn=0, tokens=300, **slices):
    trace = Trace("q", turn, 2, slices, "", None, 0, 0, 0, 0, Reads())
    return Measured(trace, Answer(usage=Usage(prompt_tokens=tokens)))


def test_input_lengths_are_buckets_of_the_split_else_powers_of_two():
    assert slice_value(request(isl="8k"), "isl") == "8k"
    assert slice_value(request(tokens=300), "isl") == "<=512"
    assert slice_value(request(tokens=512), "isl") == "<=512"
    assert slice_value(request(tokens=40_000), "isl") == ">32768"


def test_values_of_a_slice_come_in_the_order_of_their_size():
    values = [request(isl=isl) for isl in ("16k", "2k", "1k", "32k", "8k")]
    assert list(sliced(values, "isl")) == ["1k", "2k", "8k", "16k", "32k"]
    lengths = [request(tokens=n) for n in (40_000, 9, 3000, 300)]
    assert list(sliced(lengths, "isl")) == ["<=128", "<=512", "<=4096", ">32768"]
    assert list(sliced([request(turn=10), request(turn=1), request(turn=0)], "turn")) == ["1", "2", "11"]


def test_every_slice_has_a_value_or_none_and_no_other_is_taken():
    values = [slice_value(request(category="qa"), by) for by in SLICES if by not in ("isl", "turn")]
    assert values == ["qa", "", "", "", "", ""]
    with pytest.raises(ValueError, match="by must be one of"):
        slice_value(request(), "colour")
