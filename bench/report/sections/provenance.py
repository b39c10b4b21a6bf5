"""Where the figures come from, how to cite them, and what each of them means."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from bench.figures.registry import RATIO_FIGURES, RUN_FIGURES, SAMPLE_FIGURES
from bench.report.results import Results, Run, as_json
from bench.report.words import AGGREGATIONS
from cards.page import Section, Table, clipped, quoted, render_table

MAX_COLUMNS = 4
"""Runs beside one another; the settings of more are listed one under the other."""

_SECRET = re.compile(r"(?i)(?<![a-z])(key|token|secret|password|authorization)(?![a-z])")
_DIGEST = re.compile(r"[0-9a-f]{40,64}")
_HUB = re.compile(r"[\w.-]+/[\w.-]+@(?P<revision>[\w.-]+)")


def _server(run: Run) -> Mapping[str, Any]:
    return (run.described.get("probe") or {}).get("server") or {}


def _command(run: Run) -> str:
    """Return how the server was started, the values of flags that hold keys left out."""
    serve, flags = run.config["engine"].get("serve"), run.config["engine"]["flags"]
    words, hide = list[str](), False
    for word in serve["command"] if serve else flags:
        name, equals, _ = word.partition("=")
        secret = bool(_SECRET.search(name)) and (bool(equals) or word.startswith("-"))
        words.append("…" if hide else f"{name}=…" if secret and equals else shlex.quote(word))
        hide = secret and not equals
    return " ".join(words)


def _split_path(run: Run) -> str:
    path = str(run.config["data"]["path"])
    # Where a folder lies on the machine of who measured is nobody's business.
    return path if _HUB.fullmatch(path) or not path else PurePath(path).name


def _split_revision(run: Run) -> str | None:
    hub = _HUB.fullmatch(str(run.config["data"]["path"]))
    return hub["revision"] if hub else None


def _gpus(run: Run, field: str) -> str | None:
    gpus = run.described["host"]["gpus"]
    return ", ".join(sorted({gpu[field] for gpu in gpus})) if gpus else None


def _date(run: Run) -> str:
    clock = run.described["host"]["clock"]["unix_ns"]
    return datetime.fromtimestamp(clock / 1e9, UTC).strftime("%Y-%m-%d")


def _engine(run: Run, key: str) -> Any:
    return run.config["engine"].get(key)


def _in_words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {as_json(value)}" for name, value in settings.items() if value not in (None, ""))


_SETTINGS: Mapping[str, Callable[[Run], Any]] = {
    "run": lambda run: run.config["name"],
    "digest of the configuration": lambda run: run.described["digest"],
    "recipe": lambda run: _engine(run, "recipe"),
    "engine": lambda run: run.recipe.engine.name if run.recipe else None,
    "dialect": lambda run: _engine(run, "dialect"),
    "engine version": lambda run: _server(run).get("version"),
    "server command or flags": _command,
    "environment of the server": lambda run: ", ".join((_engine(run, "serve") or {}).get("env", {})),
    "model": lambda run: _engine(run, "model"),
    "model revision": lambda run: _engine(run, "model_revision"),
    "draft model": lambda run: _engine(run, "draft_model"),
    "draft revision": lambda run: _engine(run, "draft_revision"),
    "draft length": lambda run: _engine(run, "draft_length"),
    "drafting": lambda run: run.recipe.method.drafting if run.recipe else None,
    "verification": lambda run: run.recipe.method.verification if run.recipe else None,
    "alignment": lambda run: run.recipe.method.alignment if run.recipe else None,
    "GPUs of the server": lambda run: _engine(run, "num_gpus"),
    "GPU": lambda run: _gpus(run, "name"),
    "driver": lambda run: _gpus(run, "driver_version"),
    "CPU": lambda run: run.described["host"]["cpu"],
    "cores": lambda run: run.described["host"]["cores"],
    "system": lambda run: run.described["host"]["system"],
    "split": lambda run: run.described["split"]["name"],
    "data": _split_path,
    "split revision": _split_revision,
    "split sha256": lambda run: run.described["split"]["sha256"],
    "rows sent": lambda run: run.described["split"]["rows"],
    "prompts sha256": lambda run: run.described.get("prompts_sha256"),
    "chat format sha256": lambda run: run.described.get("chat_format_sha256"),
    "evidence of acceptance": lambda run: run.summary["evidence"]["source"],
    "sampling": lambda run: _in_words(run.config["sampling"]),
    "load": lambda run: _in_words(run.config["load"]),
    "client": lambda run: _in_words(run.config["client"]),
    "Python": lambda run: run.described["host"]["python"],
    "packages": lambda run: ", ".join(f"{k} {v}" for k, v in run.described["host"]["packages"].items() if v),
    "date, UTC": _date,
}
"""What is said of every run; what is the same in all of them stands once."""


def provenance(results: Results) -> Section | None:
    """Return the settings of all runs: those that they share once, the others for each run."""
    values = {name: [_cell(get(run)) for run in results.runs] for name, get in _SETTINGS.items()}
    told = {name: cells for name, cells in values.items() if any(cell is not None for cell in cells)}
    shared = [[name, cells[0]] for name, cells in told.items() if len(set(cells)) == 1]
    apart = {name: cells for name, cells in told.items() if len(set(cells)) > 1}
    absent = [name for name in values if name not in told]
    words = [f"Not told: {', '.join(absent)}."] if absent else []
    tables = [Table(("setting", "value"), shared, "The same in all runs." if len(results.runs) > 1 else "")]
    if apart:
        tables.append(_apart(results.runs, apart))
    return Section("Provenance", words, tables)


def _cell(value: Any) -> str | Markup | None:
    if value in (None, ""):
        return None
    text = str(value)
    return Markup('<span class="hash">{}</span>').format(text) if _DIGEST.fullmatch(text) else clipped(text, 600)


def _apart(runs: Sequence[Run], apart: Mapping[str, Sequence[str | None]]) -> Table:
    names = [clipped(run.name, 60) for run in runs]
    if len(runs) <= MAX_COLUMNS:
        return Table(("setting", *names), [[name, *cells] for name, cells in apart.items()], "What differs.")
    rows = [[clipped(runs[i].name, 60), *(cells[i] for cells in apart.values())] for i in range(len(runs))]
    return Table(("run", *apart), rows, "What differs.")


def citation(results: Results) -> Section | None:
    """Return what to write where a figure of the page is used."""
    words = (
        "Name the run with its configuration's digest, the engine and its version, the model and its revision, the "
        "split and its digest, and the hardware. A figure without them cannot be compared with another."
    )
    pieces: list[Markup] = [Markup('<p class="cite">{}</p>').format(quoted(_cited(run))) for run in results.shown[:8]]
    more = len(results.shown) - len(pieces)
    closing = [
        *([f"The other {more} runs are cited in the same way, from the table above."] if more > 0 else []),
        "The benchmark's method and the definition of acceptance length are those of SPEED-Bench, arXiv 2604.09557.",
    ]
    return Section("How to cite", (words, *closing), pieces=pieces)


def _cited(run: Run) -> str:
    engine = run.recipe.engine.name if run.recipe else f"{_engine(run, 'dialect')} server"
    revision = _engine(run, "model_revision")
    parts = [
        f"speedbench {run.described['host']['packages'].get('speedbench') or 'of an unknown version'}",
        f"run {replace(run, page_marks=()).title}, configuration {run.described['digest'][:16]}",
        f"{engine} {_server(run).get('version') or 'of an unknown version'}",
        f"model {_engine(run, 'model')}{f'@{revision}' if revision else ' at no stated revision'}",
        f"split {run.described['split']['name']}, sha256 {run.described['split']['sha256'][:16]}",
        _gpus(run, "name") or run.described["host"]["cpu"] or "unknown hardware",
        _date(run),
    ]
    return "; ".join(clipped(part, 160) for part in parts) + "."


def definitions(_: Results) -> Section | None:
    """Return every figure with its unit and formula, and the aggregations by their names."""
    figures = [
        [f.name, f.unit or "none", f.formula, "higher" if f.higher_is_better else "lower", ", ".join(f.needs)]
        for f in (*RATIO_FIGURES, *SAMPLE_FIGURES, *RUN_FIGURES)
    ]
    words = (
        "A verify step is one target forward that checks drafts; the prefill is none. A step that delivered c tokens, "
        "after the cut at end of text or budget, counts as c. What is undefined is shown as n/a or a dash, never as 0."
    )
    tables = [
        Table(("figure", "unit", "formula", "better", "needs"), figures),
        Table(("aggregation", "meaning"), [list(row) for row in AGGREGATIONS]),
    ]
    return Section("Definitions", (words,), pieces=[render_table(table) for table in tables])
