from bench.comparison.golden import reference_lengths
from bench.tables import as_text, bounds, marked, shown, slice_rows


def test_undefined_is_shown_as_such():
    assert (shown(None), shown(2.0), shown("n too small")) == ("n/a", "2.0000", "n too small")
    assert bounds(None) == "n/a"
    assert bounds({"low": None, "high": None, "note": "n too small: 3 conversations"}) == "n too small: 3 conversations"


def test_synthetic_runs_carry_their_mark_into_every_table():
    assert marked("figure", {"synthetic_prompts": True, "synthetic_acceptance": True}) == (
        "figure [SYNTHETIC PROMPTS] [SYNTHETIC ACCEPTANCE]"
    )
    assert marked("figure", {"synthetic_prompts": False, "synthetic_acceptance": False}) == "figure"


def summary():
    length = {"n": 9, "request_mean": 2.5, "request_mean_interval": None}
    figures = {"acceptance_length": length, "acceptance_rate": {"pooled": None}, "ttft_s": {"p50": 0.1}}
    figures |= {"step_latency_s": {"mean": 0.02}, "user_tps": {"p50": 90.0}}
    table = {"counts": {"conversations": 10, "failed": 1, "mean_output_tokens": 40.0}, "figures": figures}
    return {"synthetic_prompts": False, "by": {"category": {"math": table}}}


def test_a_published_figure_stands_beside_a_measured_one_only_over_the_same_rows():
    golden = {"split_sha256": "aa", "categories": {"math": {"acceptance_length": 2.4, "n": 9}}}
    same, other = ({"split": {"sha256": digest}} for digest in ("aa", "bb"))
    assert reference_lengths(golden, other) is None
    reference = reference_lengths(golden, same)
    assert as_text(slice_rows(summary(), "category", reference)).splitlines()[1].endswith("\t2.4000")
    assert "reference" not in as_text(slice_rows(summary(), "category"))


def test_a_slice_that_a_run_does_not_have_is_an_empty_table():
    assert len(slice_rows(summary(), "tier")) == 1
