"""What a reader needs to trust the figures: gates, losslessness, failures, and how the client fared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.report.results import Results, Run, as_json
from bench.report.sections.headline import verdict
from bench.report.words import listed
from bench.self_audit import (
    LOOP_TIMER_S,
    MAX_DISPATCH_S,
    MAX_DISPATCH_SHARE_OF_TTFT,
    MAX_LOOP_LAG_SHARE_OF_STEP,
    MAX_MERGED_SHARE,
)
from cards.page import Section, Table, clipped

_LOSSLESS = (
    "Speculative decoding must not change what the model says. At temperature 0 the outputs are compared with those of "
    "the same server without drafts, token by token; above 0 the distribution of the second token is. "
    "`speedbench bench lossless` does this; speed without its verdict says nothing of quality."
)
_AUDIT = (
    "A client that lags measures itself. A result is not valid if the dispatch lag's p99 is above max({dispatch:g} ms, "
    "{ttft:.0%} of the median TTFT), more than {merged:.0%} of the chunks were merged with an earlier one in a read, "
    "the loop lag's p99 is above max({timer:g} ms, {step:.0%} of the median step), or tokens by id differ from the "
    "server's usage."
)
_AUDIT_HEAD = (
    "run",
    "valid",
    "dispatch_lag_p99, ms",
    "loop_lag_p99, ms",
    "merged reads",
    "client CPU, µs/chunk",
    "worker CPU, share of a core",
    "answers miscounted",
    "answers counted",
    "why not",
)


def gates(results: Results) -> Section | None:
    """Return the gates of the runs that are held back; none of their figures is anywhere on the page."""
    rows = [
        [clipped(run.title, 80), gate["name"], clipped(gate["detail"], 400)]
        for run in results.held_back
        for gate in run.summary["gates"]
    ]
    if not rows:
        return None
    words = (
        f"Gates hold back {listed([clipped(run.name, 60) for run in results.held_back])}: no figure of these is shown."
    )
    return Section("Held back", (words,), (Table(("run", "gate", "what it saw"), rows),))


def losslessness(results: Results) -> Section | None:
    """Return the verdict of each speculative run, and what it rests on."""
    runs = [run for run in results.shown if run.speculative]
    if not runs:
        return None
    rows = [[clipped(run.title, 80), verdict(run), *_rests_on(run)] for run in runs]
    return Section("Losslessness", (_LOSSLESS,), (Table(("run", "verdict", "temperature 0", "temperature 1"), rows),))


def _rests_on(run: Run) -> Sequence[str | None]:
    return [_in_words(run.lossless.get(key)) if run.lossless is not None else None for key in ("t0", "t1")]


def _in_words(value: Any) -> str | None:
    """Return a table of the verdict as words: its short values only, for the lists are in the file."""
    if not isinstance(value, Mapping):
        return None if value is None else clipped(as_json(value))
    told = [f"{key} {as_json(v)}" for key, v in value.items() if not isinstance(v, (Mapping, list))]
    told += [f"{key}: {len(v)}" for key, v in value.items() if isinstance(v, (Mapping, list))]
    return clipped(", ".join(told), 300)


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
        _ms(client["dispatch_lag_p99_s"]),
        _ms(client["loop_lag_p99_s"]),
        None if client["merged_share"] is None else f"{client['merged_share']:.2%}",
        client["cpu_us_per_chunk"],
        max(shares) if shares else None,
        client["miscounted"],
        client["counted"],
        clipped("; ".join(client["reasons"]), 300),
    ]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
