import numpy as np
import pytest

from bench.comparison.compare import Side
from bench.comparison.predict import Cell, lengths_by_draft, predict_cells, predict_from
from bench.errors import BenchError


def test_the_length_of_a_shorter_draft_follows_from_the_rates_of_a_longer():
    survival = np.array([100.0, 80.0, 40.0, 10.0])
    assert lengths_by_draft(survival).tolist() == pytest.approx([1.0, 1.8, 2.2, 2.3])


def test_speed_up_is_steps_saved_over_time_added_and_the_best_draft_is_marked():
    def cell(k, step):
        return Cell("t", 4, k, np.full(50, step))

    cells = [cell(0, 0.010), cell(1, 0.012), cell(3, 0.020)]
    rows = predict_cells({"math": np.tile([10.0, 8.0, 4.0, 1.0], (20, 1))}, cells)
    assert [(r["draft_length"], r["best"]) for r in rows] == [(1, True), (3, False)]
    assert rows[0]["speed_up"] == pytest.approx(10 * 1.8 / 12)
    assert rows[1]["speed_up"] == pytest.approx(10 * 2.3 / 20)
    assert rows[0]["low"] == pytest.approx(rows[0]["high"]), "alike conversations and steps leave nothing open"


def test_an_interval_covers_what_other_conversations_would_have_given():
    rng = np.random.default_rng(0)
    rates = rng.beta(8, 2, 80)
    survival = np.stack([np.full(80, 100.0), rng.binomial(100, rates)], axis=1)
    cells = [Cell("t", 1, 0, np.full(9, 0.01)), Cell("t", 1, 1, np.full(9, 0.01))]
    row = predict_cells({"x": survival}, cells)[0]
    assert row["low"] < 1.8 < row["high"]
    assert row["low"] < row["speed_up"] < row["high"]


def test_a_cell_without_a_baseline_is_not_predicted():
    assert predict_cells({"x": np.ones((9, 2))}, [Cell("t", 1, 1, np.ones(3))]) == []


def test_a_sweep_with_two_points_in_a_cell_is_refused(monkeypatch, tmp_path):
    rows = [
        {"point": name, "path": name, "config": "t", "concurrency": 4, "draft_length": k, "gates": []}
        for name, k in (("plain-r0", 0), ("k3-r0", 3), ("k3-r1", 3))
    ]
    monkeypatch.setattr("bench.comparison.predict.read_side", lambda path: Side(str(path), {}, {"gates": []}, []))
    monkeypatch.setattr("bench.comparison.predict._survival_by_category", lambda _: {"x": np.ones((9, 4))})
    monkeypatch.setattr("bench.comparison.predict.read_sweep", lambda _: rows)
    with pytest.raises(BenchError, match="k3-r0 and k3-r1 have one config, concurrency and draft length"):
        predict_from(tmp_path, tmp_path)
