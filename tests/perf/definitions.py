"""The same requests scored by each engine's own definition of acceptance and by ours, every difference to the step.

Starts llama.cpp, transformers and vLLM on the toy pair: `SPEEDBENCH_VLLM_PYTHON=… python -m tests.perf.definitions`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.acceptance import Step
from bench.evidence import clipped_steps
from bench.measured import Measured
from tests.engines.lab import DRAFT_LENGTH, ENGINES, EngineName, Lab, Mode


@dataclass(frozen=True)
class Record:
    """Our record of all requests of a mode, by the step.

    Attributes
    ----------
    prefill_tokens
        First tokens, one a request.
    shortened_drafts
        Steps that drafted fewer than k: no definition of length counts drafts, so they change none of them.
    """

    prefill_tokens: int
    steps: Sequence[Step]
    plain_steps: int

    @property
    def kept(self) -> list[Step]:
        """The verify steps of the normal form: those that delivered something."""
        return [step for step in self.steps if step.delivered]

    @property
    def delivered(self) -> int:
        """Tokens of the verify steps."""
        return sum(step.delivered for step in self.steps)

    @property
    def overshoot_tokens(self) -> int:
        """Tokens that a last step verified beyond the budget or the end of text."""
        return sum(step.matched + 1 - step.delivered for step in self.steps)

    @property
    def shortened_drafts(self) -> int:
        """Steps with a draft shorter than k."""
        return sum((step.drafted or 0) < DRAFT_LENGTH for step in self.steps)


@dataclass(frozen=True)
class Own:
    """An engine's own figure: what it divides, and which parts of our record are in it."""

    name: str
    tokens: int
    steps: int
    counts: frozenset[str]


def record_of(requests: Sequence[Measured]) -> Record:
    """Return the record of requests whose steps are told."""
    steps, plain = list[Step](), 0
    for m in requests:
        spec, tokens = m.answer.spec, m.answer.num_tokens or 0
        assert spec is not None
        if spec.per_step is None:
            plain += tokens - 1
        elif spec.delivered is not None:
            steps += [Step(d, m_, c) for (d, m_), c in zip(spec.per_step, spec.delivered, strict=True)]
            plain += spec.plain_steps or 0
        else:
            lengths = [chunk.num_tokens for chunk in m.answer.chunks if chunk.num_tokens]
            clipped = clipped_steps(spec.per_step, tokens - 1, len(lengths))
            assert clipped is not None
            steps += clipped[0]
            plain += clipped[1]
    return Record(len(requests), steps, plain)


def own_figures(engine: EngineName, requests: Sequence[Measured], counters: dict[str, Any] | None) -> list[Own]:
    """Return what the engine says of itself, in the integers that it divides."""
    verified = frozenset({"overshoot_tokens", "empty_steps"})
    everything = frozenset({"prefill_tokens", "plain_steps"})
    figures = []
    if counters is not None:
        drafts, accepted = int(counters["drafts"]), int(counters["accepted"])
        figures.append(Own("server counters: 1 + accepted / drafts", drafts + accepted, drafts, verified))
    if engine == "vllm":
        told = [m.answer.extras.get("speculative_decoding") or {} for m in requests]
        steps = sum(t.get("num_spec_steps", 0) for t in told)
        accepted = sum(t.get("num_accepted_draft_tokens", 0) for t in told)
        for t in told:
            if t.get("num_spec_steps"):
                own = 1 + t["num_accepted_draft_tokens"] / t["num_spec_steps"]
                assert abs(own - t["mean_acceptance_length"]) < 1e-9, t
        figures.append(Own("mean_acceptance_length of requests, pooled", steps + accepted, steps, verified))
    if engine == "llamacpp":
        tokens = sum(m.answer.extras["predicted_n"] for m in requests)
        accepted = sum(m.answer.extras.get("draft_n_accepted", 0) for m in requests)
        figures.append(
            Own("timings: predicted_n / (predicted_n - draft_n_accepted)", tokens, tokens - accepted, everything)
        )
    if engine == "transformers":
        tokens = sum(m.answer.num_tokens or 0 for m in requests)
        figures.append(
            Own("tokens / forwards of the target", tokens, sum(len(m.answer.chunks) for m in requests), everything)
        )
    return figures


def explained(own: Own, record: Record) -> dict[str, Any]:
    """Return an own figure from our record: our own tokens and steps, and the parts that the definition adds.

    Raises
    ------
    AssertionError
        If the parts do not make up the engine's own integers exactly.
    """
    empty = len(record.steps) - len(record.kept)
    parts = {
        "prefill_tokens": (record.prefill_tokens, record.prefill_tokens),
        "plain_steps": (record.plain_steps, record.plain_steps),
        "overshoot_tokens": (record.overshoot_tokens, 0),
        "empty_steps": (0, empty),
    }
    added = {name: value for name, value in parts.items() if name in own.counts}
    tokens = record.delivered + sum(t for t, _ in added.values())
    steps = len(record.kept) + sum(s for _, s in added.values())
    assert (tokens, steps) == (own.tokens, own.steps), (own, tokens, steps, added)
    ours = record.delivered / len(record.kept)
    return {
        "definition": own.name,
        "own": own.tokens / own.steps,
        "ours": ours,
        "difference": own.tokens / own.steps - ours,
        "own_integers": [own.tokens, own.steps],
        "our_integers": [record.delivered, len(record.kept)],
        "explained": {name: {"tokens": t, "steps": s} for name, (t, s) in added.items()},
        "shortened_drafts": record.shortened_drafts,
        "recomputed_exactly": True,
    }


def score(lab: Lab, engine: EngineName, mode: Mode) -> list[dict[str, Any]]:
    """Return the rows of one mode of one engine."""
    ran = lab.ran(engine, mode)
    requests = [m for _, m in sorted(ran.requests().items())]
    counters = ran.summary()["server_counters"]
    told = counters if counters and counters["drafts"] is not None else None
    record = record_of(requests)
    return [{"engine": engine, "mode": mode, **explained(own, record)} for own in own_figures(engine, requests, told)]


def main() -> None:
    """Run every mode and print the table, then one JSON object."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder), samples=0)
        rows = [row for engine in ENGINES for mode in ("draft", "ngram") for row in score(lab, engine, mode)]
    for row in rows:
        print(f"{row['engine']}\t{row['mode']}\t{row['definition']}\t{row['own']:.4f}\t{row['ours']:.4f}")
    print(json.dumps({"draft_length": DRAFT_LENGTH, "rows": rows}))


if __name__ == "__main__":
    main()
