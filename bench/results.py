"""The folder of a run: traces as they end, and what is derived from them. The door through which results pass."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from bench.errors import BenchError
from bench.trace import Trace
from bench.worker_report import WorkerReport
from sources.disk import atomic

TRACES, WORKERS, RUN, SUMMARY = "traces.jsonl", "workers.jsonl", "run.json", "summary.json"
LOSSLESS = "lossless.json"
"""Beside a speculative run: whether its outputs are those of a plain one."""


class RunFolder:
    """`run.json` (what was run), `traces.jsonl` (one request a line), `summary.json` (derived from the two)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._stream: BinaryIO | None = None

    def open(self) -> None:
        """Make the folder and open the traces for appending; a last line that a crash cut off is dropped."""
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.root / TRACES
        if path.exists():
            _drop_cut_line(path)
        self._stream = path.open("ab")

    def append(self, trace: Trace) -> None:
        """Write one trace, whole."""
        if self._stream is None:
            raise ValueError("the run folder must be open to append to it")
        self._stream.write(orjson.dumps(trace.to_json()) + b"\n")
        self._stream.flush()

    def append_reports(self, reports: Sequence[WorkerReport]) -> None:
        """Write how the workers of one pass fared."""
        with (self.root / WORKERS).open("ab") as stream:
            stream.writelines(orjson.dumps(report.to_json()) + b"\n" for report in reports)

    def reports(self) -> list[WorkerReport]:
        """Return how the workers of every pass fared; those of a pass that was killed are not known."""
        path = self.root / WORKERS
        lines = path.read_bytes().splitlines() if path.is_file() else []
        return [WorkerReport.from_json(orjson.loads(line)) for line in lines]

    def close(self) -> None:
        """Close the traces."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def traces(self) -> Iterator[Trace]:
        """Yield every trace in the order in which the requests ended.

        Raises
        ------
        BenchError
            If a line is not a trace.
        """
        path = self.root / TRACES
        if not path.is_file():
            return
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    return  # the request that was being written when the run was killed
                try:
                    yield Trace.from_json(orjson.loads(line))
                except (ValueError, KeyError, TypeError) as error:
                    raise BenchError(f"{path}:{number}: not a trace ({error}); the file was edited") from None

    def prompts(self) -> dict[str, list[int]]:
        """Return the ids of the first prompts by their SHA-256, which each trace names; none for an engine of text."""
        data = np.fromfile(self.root / "prompts.u32", np.uint32)
        offsets = np.load(self.root / "prompts.offsets.npy").tolist()
        pieces = [data[start:end] for start, end in pairwise(offsets) if end > start]
        return {hashlib.sha256(ids.tobytes()).hexdigest(): ids.tolist() for ids in pieces}

    def write_json(self, name: str, value: Mapping[str, Any]) -> Path:
        """Write a JSON file, whole or not at all, and return its path."""
        return self.write_text(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def write_text(self, name: str, text: str) -> Path:
        """Write a file, whole or not at all, and return its path."""
        target = self.root / name
        with atomic(target) as scratch:
            # What came over the wire may hold half of a surrogate pair, which no file can.
            scratch.write_text(text, "utf-8", errors="backslashreplace")
        return target

    def read_json(self, name: str) -> dict[str, Any]:
        """Return a JSON file of the run.

        Raises
        ------
        BenchError
            If it is not there or not JSON.
        """
        path = self.root / name
        try:
            value = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise BenchError(f"{path}: not there; is {self.root} the folder of a finished run?") from None
        except (ValueError, RecursionError) as error:
            raise BenchError(f"{path}: not JSON: {error}; it was cut or edited: copy it again, or run anew") from None
        if not isinstance(value, dict):
            raise BenchError(f"{path}: holds no table, but {value!r:.40}; copy it again, or run anew")
        return value


def _drop_cut_line(path: Path) -> None:
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)


def latest_attempts(traces: Iterator[Trace]) -> list[Trace]:
    """Return the traces of the last attempt at each conversation, in order; warm-ups keep their place."""
    kept = dict[tuple[bool, str, int], list[Trace]]()
    for trace in traces:
        key = (trace.warmup, trace.conversation_id, trace.repeat)
        earlier = kept.get(key)
        if earlier is None or trace.attempt > earlier[0].attempt:
            kept[key] = [trace]
        elif trace.attempt == earlier[0].attempt:
            earlier.append(trace)
    return [trace for attempt in kept.values() for trace in attempt]
