"""What is derived from the folder of a run: its requests, its summary, and one side of a comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.comparison.compare import Side
from bench.config import BenchConfig
from bench.counters import CounterDelta
from bench.engines.registry import find_engine
from bench.errors import BenchError
from bench.figures.base import Context
from bench.gates import shut_gates
from bench.measured import Measured, measure
from bench.result_shape import described_config, refuse_other_shape
from bench.results import RUN, SUMMARY, TRACES, RunFolder, latest_attempts
from bench.self_audit import audit_client
from bench.split import Split
from bench.summary import choose_evidence, summarise


def summarise_run(
    folder: RunFolder,
    config: BenchConfig,
    split: Split,
    counters: CounterDelta | None,
    energy_j: float | None,
    stopped: str,
) -> dict[str, Any]:
    """Derive the summary from the traces of a folder, write it and return it.

    Parameters
    ----------
    counters, energy_j
        What the server's counters and the GPUs' energy grew by; None where it is not known.
    stopped
        Why the run ended before its conversations did, "" if it did not.
    """
    measured = measured_traces(folder, config)
    audit = audit_client(measured, folder.reports())
    shut = shut_gates(measured, config, split, audit, counters, stopped)
    gates = [gate for gate in shut if gate.name not in config.limits.allow]
    chosen, evidence = choose_evidence(measured, config.limits.min_coverage)
    context = _context(config, counters, energy_j)
    concurrency = config.load.concurrency if config.load.mode == "closed" else None
    summary = {
        "name": config.name,
        "digest": config.digest(),
        "published": not gates,
        "gates": [asdict(gate) for gate in gates],
        "allowed_gates": [asdict(gate) for gate in shut if gate not in gates],
        "synthetic_prompts": split.synthetic,
        "synthetic_acceptance": config.engine.synthetic_acceptance,
        "note": config.note,
        "speculative": config.engine.speculative,
        "rows": {"sent": len(split.conversations), "total": sum(split.total.values())},
        "shortfall": split.shortfall(),
        "evidence": {"source": evidence.source, "coverage": evidence.coverage, "without_counters": evidence.without},
        "server_counters": None if counters is None else asdict(counters),
        "client": audit.to_json(),
        **summarise(chosen, context, concurrency),
    }
    folder.write_json(SUMMARY, summary)
    return summary


def _context(config: BenchConfig, counters: CounterDelta | None, energy_j: float | None) -> Context:
    told: dict[str, float | None] = {}
    if counters is not None and (counters.drafts is not None or counters.restarted):
        told["engine_acceptance_length"] = counters.engine_acceptance_length()
    return Context(None, config.engine.num_gpus, config.limits.ttft_s, config.limits.tpot_s, energy_j, told)


def read_measured(folder: RunFolder) -> tuple[BenchConfig, list[Measured]]:
    """Return configuration and parsed requests of a finished run, derived from its traces again.

    Raises
    ------
    BenchError
        If it has not ended, a file of it cannot be read, or its traces are not those that its summary is of.
    """
    config = described_config(folder.read_json(RUN), str(folder.root / RUN))
    summary = read_summary(folder)
    measured = measured_traces(folder, config)
    counted = summary["counts"]["requests"]
    if len(measured) != counted:
        raise BenchError(
            f"{folder.root}: {TRACES} holds {len(measured)} requests, {SUMMARY} counts {counted}: it is being written, "
            "or was cut or edited; wait for its run to end, or copy it again"
        )
    return config, measured


def read_summary(folder: RunFolder) -> dict[str, Any]:
    """Return the summary of a finished run.

    Raises
    ------
    BenchError
        If it is not there, or lacks what readers rely on.
    """
    summary = folder.read_json(SUMMARY)
    refuse_other_shape(summary, str(folder.root / SUMMARY))
    return summary


def measured_traces(folder: RunFolder, config: BenchConfig) -> list[Measured]:
    """Return the parsed requests of a folder: the last attempt at each conversation, warm-ups left out."""
    engine = find_engine(config.engine.dialect)
    traces = [trace for trace in latest_attempts(folder.traces()) if not trace.warmup]
    return [measure(trace, engine, draft_length=config.engine.draft_length) for trace in traces]


def read_side(path: Path) -> Side:
    """Return a finished run as one side of a comparison, its acceptance of one kind of evidence."""
    folder = RunFolder(path)
    config, measured = read_measured(folder)
    chosen, _ = choose_evidence(measured, config.limits.min_coverage)
    return Side(str(path), folder.read_json(RUN), read_summary(folder), chosen)
