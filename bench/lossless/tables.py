"""The verdict of the lossless check as rows of text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.tables import Row, shown

_T0 = ("by", "conversations", "by_text", "equal", "share_equal", "near_ties", "output_tokens")
_T1 = ("n", "strata", "p_value", "alpha", "tv", "tv_if_equal", "tv_at_most", "smallest_tv_found", "power", "rare_share")


def verdict_rows(verdict: Mapping[str, Any]) -> list[Row]:
    """Return the verdict, then what each part compared and found; a part that is not shown says why."""
    rows = [["part", "figure", "value"], ["", "verdict", verdict["verdict"]]]
    for part, names in (("t0", _T0), ("t1", _T1)):
        found = verdict[part]
        rows += [[part, "verdict", found["verdict"]], [part, "reason", found["reason"]]]
        rows += [[part, name, _value(found[name])] for name in names if name in found]
        for name in ("speculation", "plain_repeats"):
            rows += [[part, f"{name}.{key}", shown(value)] for key, value in (found.get(name) or {}).items()]
        if found.get("not_compared"):
            rows.append([part, "not_compared", str(len(found["not_compared"]))])
    return rows


def _value(value: Any) -> str:
    return " and ".join(map(shown, value)) if isinstance(value, list | tuple) else shown(value)


def difference_rows(verdict: Mapping[str, Any]) -> list[Row]:
    """Return where greedy conversations part, or where sampled tokens differ most; only the head if they do not."""
    if verdict["t1"]["verdict"] == "differs" and verdict["t0"]["verdict"] != "differs":
        rows = [["prompt_sha256", "token", "plain", "speculative"]]
        return rows + [
            [row["prompt_sha256"][:12], str(row["token"]), shown(row["plain"]), shown(row["speculative"])]
            for row in verdict["t1"]["largest"]
        ]
    rows = [["conversation_id", "repeat", "turn", "position", "plain", "speculative", "logprob_gap"]]
    for row in verdict["t0"].get("differences", []):
        tokens = ["(ended)" if row[side] is None else str(row[side]) for side in ("plain", "speculative")]
        rows.append([row["conversation_id"], str(row["repeat"]), str(row["turn"]), str(row["position"]), *tokens])
        rows[-1].append(shown(row["logprob_gap"]))
    return rows
