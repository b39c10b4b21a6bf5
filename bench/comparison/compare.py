"""Two runs side by side: paired by conversation, refused where they are not alike. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import UnlikeRuns, UnpublishedFigure
from bench.figures.acceptance import AcceptanceLength, TokensPerStep
from bench.figures.base import Context, all_samples, conversation_values, headline
from bench.figures.latency import EndToEndLatency, StepLatency, TimePerOutputToken, TimeToFirstToken
from bench.figures.throughput import OutputThroughput
from bench.measured import Measured
from bench.slices import slice_value
from bench.statistics import paired_intervals

SAME_QUESTION = (
    "split.sha256",
    "prompts_sha256",
    "chat_format_sha256",
    "config.engine.dialect",
    "config.engine.model",
    "config.engine.model_revision",
)
"""Settings without which two runs did not ask the same of the same model."""

LIKE = (
    *SAME_QUESTION,
    "config.engine.num_gpus",
    "config.engine.chat_template_kwargs",
    "config.engine.synthetic_acceptance",
    "config.sampling",
    "config.load",
    "probe.server.version",
    "host.gpus",
    "host.cpu",
)
"""Settings that two runs must share; whatever a drafter changes is not among them."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs: what `run.json` and `summary.json` say, and its requests."""

    name: str
    run: Mapping[str, Any]
    summary: Mapping[str, Any]
    requests: Sequence[Measured]


def compare(first: Side, second: Side, *, allow: Collection[str] = (), by: str = "category") -> dict[str, Any]:
    """Return the second run against the first; ratios above 1 mean that it has more.

    Parameters
    ----------
    allow
        Settings that may differ.
    by
        The slice whose values get a line each.

    Raises
    ------
    UnlikeRuns
        If a setting differs that is not allowed to; named with both values.
    UnpublishedFigure
        If a gate holds one of the runs back.
    """
    for side in (first, second):
        refuse_unpublished(side.name, [gate["name"] for gate in side.summary["gates"]], allow)
    _refuse_unlike(first, second, allow)
    return {
        "first": first.name,
        "second": second.name,
        "synthetic_prompts": bool(first.summary["synthetic_prompts"] or second.summary["synthetic_prompts"]),
        "speed_up": _speed_up(first.requests, second.requests),
        "acceptance_length": [headline(AcceptanceLength(), side.requests) for side in (first, second)],
        "acceptance_length_paired": _paired(_lengths(first.requests), _lengths(second.requests)),
        "ttft_p50_s": [_median(TimeToFirstToken(), side.requests) for side in (first, second)],
        "by": {
            value: _speed_up(a, b) | {"acceptance_length": headline(AcceptanceLength(), b)}
            for value, (a, b) in _both(first.requests, second.requests, by).items()
        },
    }


def refuse_unpublished(name: str, gates: Collection[str], allow: Collection[str]) -> None:
    """Refuse a result that a gate holds back, unless the gate is allowed to be shut.

    Raises
    ------
    UnpublishedFigure
        With the gates.
    """
    shut = [gate for gate in gates if gate not in allow]
    if shut:
        raise UnpublishedFigure(f"{name}: held back by {', '.join(shut)}; see its summary.json, or --allow it")


def _refuse_unlike(first: Side, second: Side, allow: Collection[str]) -> None:
    found = unlike_setting(first.run, second.run, [path for path in LIKE if path not in allow])
    if found is not None:
        path, a, b = found
        raise UnlikeRuns(
            f"{first.name} and {second.name} differ in {path}: {a!r} and {b!r}; "
            f"run them alike, or allow it with --allow {path}"
        )


def unlike_setting(
    first: Mapping[str, Any], second: Mapping[str, Any], paths: Sequence[str]
) -> tuple[str, Any, Any] | None:
    """Return the first of the dotted paths at which two `run.json` differ, and both values; None if they are alike."""
    for path in paths:
        a, b = _at(first, path), _at(second, path)
        if a != b:
            return path, a, b
    return None


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _both(
    first: Sequence[Measured], second: Sequence[Measured], by: str
) -> dict[str, tuple[list[Measured], list[Measured]]]:
    groups = dict[str, tuple[list[Measured], list[Measured]]]()
    for side, requests in enumerate((first, second)):
        for request in requests:
            groups.setdefault(slice_value(request, by), ([], []))[side].append(request)
    return dict(sorted(groups.items()))


def _speed_up(first: Sequence[Measured], second: Sequence[Measured]) -> dict[str, Any]:
    """Return the measured speed-ups with intervals, and the analytic one with its gap.

    That of `user_tps` is the ratio of its harmonic means over conversations, by category and then over categories.
    """
    # Of seconds a token, the baseline's over the run's: an answer that came in a read or two has hardly any time
    # between its tokens, and its tokens a second would outweigh all others.
    user = _paired(_token_seconds(second), _token_seconds(first))
    if user is not None:
        del user["difference"]  # of seconds a token, which is no figure of user_tps
    whole = [OutputThroughput().value(requests, Context()) for requests in (first, second)]
    analytic = analytic_speed_up(first, second)
    measured = user["ratio"]["value"] if user else None
    return {
        "user_tps": user,
        "e2e_s": _paired(_per_conversation(EndToEndLatency(), first), _per_conversation(EndToEndLatency(), second)),
        "output_tps": whole[1] / whole[0] if whole[0] and whole[1] else None,
        "analytic": analytic,
        "analytic_gap": analytic / measured - 1.0 if analytic and measured else None,
    }


def analytic_speed_up(baseline: Sequence[Measured], speculative: Sequence[Measured]) -> float | None:
    """Return ``t_ar * AL / t_sd``: step latencies of both runs, and tokens a step of the speculative one.

    Tokens a step count the steps without a draft where they are told, for their time is in the mean latency too.
    """
    t_ar, t_sd = (all_samples(StepLatency(), requests) for requests in (baseline, speculative))
    length = _pooled_length(speculative)
    # Steps that all came in one read have no time between them.
    if not len(t_ar) or not len(t_sd) or length is None or not t_sd.mean():
        return None
    return float(t_ar.mean() * length / t_sd.mean())


def _pooled_length(requests: Sequence[Measured]) -> float | None:
    for figure in (TokensPerStep(), AcceptanceLength()):
        terms = [t for t in map(figure.terms, requests) if t is not None]
        if terms and sum(t[1] for t in terms):
            return sum(t[0] for t in terms) / sum(t[1] for t in terms)
    return None


Values = dict[tuple[str, int], tuple[str, float]]
"""Category and value of each conversation."""


def _token_seconds(requests: Sequence[Measured]) -> Values:
    return _per_conversation(TimePerOutputToken(), requests)


def _per_conversation(figure: TimePerOutputToken | EndToEndLatency, requests: Sequence[Measured]) -> Values:
    """Return the mean over the turns of each conversation."""
    samples = dict[tuple[str, int], list[float]]()
    categories = dict[tuple[str, int], str]()
    for request in requests:
        samples.setdefault(request.conversation, []).extend(figure.samples(request))
        categories[request.conversation] = request.trace.slices.get("category", "")
    return {key: (categories[key], float(np.mean(values))) for key, values in samples.items() if values}


def _lengths(requests: Sequence[Measured]) -> Values:
    """Return the acceptance length of each conversation; none for a run that does not speculate."""
    categories = {request.conversation: request.trace.slices.get("category", "") for request in requests}
    values = conversation_values(AcceptanceLength(), requests)
    return {key: (categories[key], value) for key, value in values.items()}


def _paired(first: Values, second: Values) -> dict[str, Any] | None:
    pairs = sorted(first.keys() & second.keys())
    if not pairs:
        return None
    groups = dict[str, dict[str, list[tuple[float, float]]]]()
    for key in pairs:
        groups.setdefault(first[key][0], {}).setdefault(key[0], []).append((first[key][1], second[key][1]))
    # The repeats of one conversation together are one unit of the intervals.
    columns = {name: np.array([np.mean(p, axis=0) for p in units.values()]) for name, units in groups.items()}
    a: dict[str, NDArray[np.float64]] = {name: rows[:, 0] for name, rows in columns.items()}
    b: dict[str, NDArray[np.float64]] = {name: rows[:, 1] for name, rows in columns.items()}
    return asdict(paired_intervals(a, b)) | {"pairs": len(pairs), "unpaired": len(first.keys() ^ second.keys())}


def _median(figure: TimeToFirstToken, requests: Sequence[Measured]) -> float | None:
    values = all_samples(figure, requests)
    return float(np.median(values)) if len(values) else None
