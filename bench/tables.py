"""Tables of a summary as rows of text, for a terminal or a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MARK_SYNTHETIC = "SYNTHETIC PROMPTS"
MARK_ACCEPTANCE = "SYNTHETIC ACCEPTANCE"

_RATIOS = ("acceptance_length", "tokens_per_step", "acceptance_rate", "rejected_drafts_per_token")
_SAMPLES = ("ttft_s", "ttft_from_intended_s", "step_latency_s", "tpot_s", "user_tps", "e2e_s")

Row = list[str]


def shown(value: Any) -> str:
    """Return a value as a table shows it; n/a for None."""
    if value is None:
        return "n/a"
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value)


def bounds(interval: Mapping[str, Any] | None) -> str:
    """Return ``[low, high]``, or why there is none."""
    if interval is None:
        return "n/a"
    if interval["low"] is None:
        return str(interval["note"])
    return f"[{interval['low']:.4f}, {interval['high']:.4f}]"


def marks(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the marks that every table and picture of a run must carry; of a note, what stands before its colon."""
    found = []
    if summary["synthetic_prompts"]:
        found.append(MARK_SYNTHETIC)
    if summary.get("synthetic_acceptance"):
        found.append(MARK_ACCEPTANCE)
    if summary.get("note"):
        found.append(str(summary["note"]).partition(":")[0].strip().upper())
    found += [f"{gate['name'].upper()} GATE SHUT" for gate in summary.get("allowed_gates", ())]
    return tuple(found)


def marked(text: str, summary: Mapping[str, Any]) -> str:
    """Return the head of a table with the marks of its run."""
    return " ".join([text, *(f"[{mark}]" for mark in marks(summary))])


def overall_rows(summary: Mapping[str, Any]) -> list[Row]:
    """Return the figures of the whole run, each under the name of its aggregation."""
    rows = [[marked("figure", summary), "aggregation", "value", "95 % interval", "n"]]
    overall, run = summary["overall"], summary["run"]
    for name in _RATIOS:
        row = overall["figures"][name]
        headline = overall["headline"][name]
        rows.append([name, "headline", shown(headline["value"]), bounds(headline["interval"]), str(row["n"])])
        rows += [
            [name, kind, shown(row[kind]), bounds(row[f"{kind}_interval"]), str(row["n"])]
            for kind in ("request_mean", "pooled")
        ]
    for name in _SAMPLES:
        row = overall["figures"][name]
        rows += [[name, kind, shown(row[kind]), "", str(row["n"])] for kind in ("mean", "p50", "p90", "p99")]
    for name, row in run.items():
        if name != "steady_state":
            rows.append([name, "run", shown(row["value"]), bounds(row["interval"]), str(len(row["runs"]))])
    return rows


def slice_rows(summary: Mapping[str, Any], by: str, reference: Mapping[str, float] | None = None) -> list[Row]:
    """Return a line for each value of a slice, with n and output lengths; none if the run has no such slice.

    Parameters
    ----------
    reference
        Published acceptance lengths of the very same rows, shown beside the measured ones.
    """
    groups = summary["by"].get(by, {})
    head = [marked(by, summary), "conversations", "failed", "mean_output_tokens", "acceptance_length", "95 % interval"]
    head += ["acceptance_rate", "ttft_s p50", "step_latency_s mean", "user_tps p50"]
    rows = [head if reference is None else [*head, "reference"]]
    for value, table in groups.items():
        counts, figures = table["counts"], table["figures"]
        length = figures["acceptance_length"]
        rows.append(
            [
                value,
                str(length["n"] or counts["conversations"]),
                str(counts["failed"]),
                shown(counts["mean_output_tokens"]),
                shown(length["request_mean"]),
                bounds(length["request_mean_interval"]),
                shown(figures["acceptance_rate"]["pooled"]),
                shown(figures["ttft_s"]["p50"]),
                shown(figures["step_latency_s"]["mean"]),
                shown(figures["user_tps"]["p50"]),
                *([] if reference is None else [shown(reference.get(value))]),
            ]
        )
    return rows


def position_rows(summary: Mapping[str, Any]) -> list[Row]:
    """Return AR_i, AR_i_drafted and survival by position; only the head where there is no histogram."""
    positions = summary["overall"]["positions"]
    rows = [[marked("position", summary), "acceptance_rate", "acceptance_rate_drafted", "survival"]]
    if positions is None or positions["acceptance_rates"] is None:
        return rows
    drafted = positions["drafted_acceptance_rates"] or [None] * len(positions["acceptance_rates"])
    survival = positions["survival"]
    for i, rate in enumerate(positions["acceptance_rates"]):
        kept = survival[i + 1] / survival[0] if survival[0] else None
        rows.append([str(i + 1), shown(rate), shown(drafted[i]), shown(kept)])
    return rows


def as_text(rows: Sequence[Row]) -> str:
    """Return rows as tab-separated lines."""
    return "\n".join("\t".join(row) for row in rows)
