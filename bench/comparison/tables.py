"""A comparison as rows of text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.tables import Row, bounds, marked, shown


def comparison_rows(result: Mapping[str, Any], by: str) -> list[Row]:
    """Return a line for the whole and one for each value of the slice."""
    head = [marked(by, result), "pairs", "speed_up user_tps", "95 % interval", "geometric mean", "95 % interval"]
    rows = [[*head, "speed_up output_tps", "analytic", "analytic gap", "acceptance_length"]]
    whole = {**result["speed_up"], "acceptance_length": result["acceptance_length"][1]}
    rows.append(["(all)", *_cells(whole)])
    rows += [[value, *_cells(line)] for value, line in result["by"].items()]
    return rows


def _cells(line: Mapping[str, Any]) -> Row:
    user = line["user_tps"]
    paired = ["0", "n/a", "n/a", "n/a", "n/a"]
    if user is not None:
        ratio, mean = user["ratio"], user["geometric_mean_ratio"]
        paired = [str(user["pairs"]), shown(ratio["value"]), bounds(ratio), shown(mean["value"]), bounds(mean)]
    names = ("output_tps", "analytic", "analytic_gap", "acceptance_length")
    return [*paired, *(shown(line[name]) for name in names)]
