"""What a reader needs to trust the figures: gates, losslessness, failures, and how the client fared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from bench.report.results import Results, Run
from bench.report.sections.headline import verdict
from bench.report.words import folded, listed, milliseconds
from bench.self_audit import (
    LOOP_TIMER_S,
    MAX_DISPATCH_S,
    MAX_DISPATCH_SHARE_OF_TTFT,
    MAX_LOOP_LAG_SHARE_OF_STEP,
    MAX_MERGED_SHARE,
)
from cards.page import Section, Table, clipped, render_table

MAX_DIFFERENCES = 50
"""Conversations of a run whose outputs differ that are listed; lossless.json holds them all."""

_LOSSLESS = (
    "Speculative decoding must not change what the model says. At temperature 0 the outputs are compared with those of "
    "the same server without drafts, token by token; above 0 the distribution of the second token is. "
    "speedbench bench lossless does this; speed without its verdict says nothing of quality."
)
_AUDIT = (
    "A client that lags measures itself. A result is not valid if the dispatch lag's p99 is above max({dispatch:g} ms, "
    "{ttft:.0%} of the median TTFT), more than {merged:.0%} of the chunks were merged with an earlier one in a read, "
    "the loop lag's p99 is above max({timer:g} ms, {step:.0%} of the median step) while the client itself stamped the "
    "reads, or tokens by id differ from the server's usage. Where a read lag is told, the kernel stamped them as they "
    "arrived, and the lag is how much later they were in hand."
)
_GATE_HEAD = ("run", "gate", "what it saw")
_AUDIT_HEAD = (
    "run",
    "valid",
    "dispatch_lag_p99, ms",
    "loop_lag_p99, ms",
    "read_lag_p99, ms",
    "merged reads",
    "client CPU, µs/chunk",
    "worker CPU, share of a core",
    "answers miscounted",
    "answers counted",
    "why not",
)


def gates(results: Results) -> Section | None:
    """Return the gates that are shut: of runs that are held back, and of those where somebody allowed it."""
    held = [row for run in results.held_back for row in _gate_rows(run, run.summary["gates"])]
    allowed = [row for run in results.runs for row in _gate_rows(run, run.allowed_gates)]
    words, tables = list[str](), list[Table]()
    if held:
        names = listed([clipped(run.name, 60) for run in results.held_back])
        words.append(f"Gates hold back {names}: no figure of these is shown.")
        tables.append(Table(_GATE_HEAD, held, "Held back."))
    if allowed:
        tables.append(
            Table(_GATE_HEAD, allowed, "Shut, and allowed to be: the figures are shown, and are as good as this.")
        )
    return Section("Gates", words, tables) if tables else None


def _gate_rows(run: Run, shut: Sequence[Mapping[str, str]]) -> list[list[str]]:
    return [[clipped(run.title, 80), gate["name"], clipped(gate["detail"], 400)] for gate in shut]


def losslessness(results: Results) -> Section | None:
    """Return the verdict of each speculative run, and what it rests on."""
    # The verdict is on the outputs, not on their speed: it holds for a run that is held back too.
    runs = [run for run in results.runs if run.speculative and (run.lossless is not None or not run.held_back)]
    if not runs:
        return None
    rows = [[clipped(run.title, 80), verdict(run), *_rests_on(run)] for run in runs]
    table = Table(("run", "verdict", "at temperature 0", "above it"), rows)
    return Section("Losslessness", (_LOSSLESS,), (table,), [piece for run in runs if (piece := _differences(run))])


def _rests_on(run: Run) -> Sequence[str | None]:
    return [None if run.lossless is None else _part(run.lossless.get(part)) for part in ("t0", "t1")]


def _part(found: Mapping[str, Any] | None) -> str | None:
    """Return verdict and reason of one part, and how much was compared."""
    if not found:
        return None
    words = f"{found['verdict']}: {found['reason']}"
    if found.get("conversations"):
        words += f", {found.get('output_tokens', 0):,} tokens compared by {found.get('by')}"
    return clipped(words, 300)


def _differences(run: Run) -> Markup | None:
    """Return where greedy outputs part, folded; None where none does."""
    found = ((run.lossless or {}).get("t0") or {}).get("differences") or []
    if not found:
        return None
    head = ("conversation", "repeat", "turn", "position", "plain", "speculative")
    rows = [
        [
            clipped(d["conversation_id"], 60),
            d["repeat"],
            d["turn"],
            d["position"],
            _token(d, "plain"),
            _token(d, "speculative"),
        ]
        for d in found[:MAX_DIFFERENCES]
    ]
    named = f"{clipped(run.title, 80)}: where outputs part, {len(rows)} of {len(found)} conversations"
    return folded(named, render_table(Table(head, rows)))


def _token(difference: Mapping[str, Any], side: str) -> str:
    return "(ended)" if difference[side] is None else clipped(str(difference[side]), 20)


def failures(results: Results) -> Section | None:
    """Return how many requests failed and of what, and which rows were not sent; never left out."""
    rows = [row for run in results.runs for row in _failure_rows(run)]
    clean = [clipped(run.name, 60) for run in results.runs if not run.summary["overall"]["counts"]["failed"]]
    words = [f"No request failed in {listed(clean)}."] if clean else []
    words += [f"{clipped(run.name, 60)}: {missing}." for run in results.runs if (missing := "; ".join(_not_sent(run)))]
    head = ("run", "requests", "failed", "share", "count", "error")
    return Section("Failures", words, (Table(head, rows),) if rows else ())


def _failure_rows(run: Run) -> Iterator[list[Any]]:
    counts = run.summary["overall"]["counts"]
    share = f"{counts['failed'] / counts['requests']:.1%}" if counts["requests"] else None
    for error, count in sorted(counts["errors"].items(), key=lambda item: (-item[1], item[0])):
        yield [clipped(run.title, 80), counts["requests"], counts["failed"], share, count, clipped(error, 300)]


def _not_sent(run: Run) -> Iterator[str]:
    for name, (sent, there) in run.summary.get("shortfall", {}).items():
        yield f"{sent:,} of {there:,} rows of {clipped(name, 60)} were sent"
    coverage = run.summary["evidence"]["coverage"]
    if coverage is not None and coverage < 1:
        yield f"acceptance is known of {coverage:.1%} of the requests"


def self_audit(results: Results) -> Section | None:
    """Return how the client fared in each run, with the thresholds."""
    rows = [_audit_row(run) for run in results.runs if "client" in run.summary]
    words = _AUDIT.format(
        dispatch=MAX_DISPATCH_S * 1e3,
        ttft=MAX_DISPATCH_SHARE_OF_TTFT,
        merged=MAX_MERGED_SHARE,
        timer=LOOP_TIMER_S * 1e3,
        step=MAX_LOOP_LAG_SHARE_OF_STEP,
    )
    return Section("Self-audit of the client", (words,), (Table(_AUDIT_HEAD, rows),)) if rows else None


def _audit_row(run: Run) -> list[Any]:
    client = run.summary["client"]
    shares = client["worker_cpu_share"]
    return [
        clipped(run.title, 80),
        client["valid"],
        milliseconds(client["dispatch_lag_p99_s"]),
        milliseconds(client["loop_lag_p99_s"]),
        milliseconds(client.get("read_lag_p99_s")),
        None if client["merged_share"] is None else f"{client['merged_share']:.2%}",
        client["cpu_us_per_chunk"],
        max(shares) if shares else None,
        client["miscounted"],
        client["counted"],
        clipped("; ".join(client["reasons"]), 300),
    ]
