"""What a page is about: the runs and sweeps that it was given, read from their folders. The requests are read late."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.comparison.compare import Side
from bench.errors import BenchError, ConfigError
from bench.finished import read_measured, read_summary
from bench.measured import Measured
from bench.recipes.shipped import Recipe, find_recipe
from bench.report.comparisons import Comparison, compare_runs
from bench.result_shape import described_config, refuse_other_file
from bench.results import LOSSLESS, RUN, SUMMARY, RunFolder
from bench.summary import choose_evidence
from bench.sweeps.points import TOY_NOTE
from bench.sweeps.rows import SWEEP
from bench.tables import marks
from cards.page import clipped

SYNTHETIC_PROMPTS = "synthetic prompts: random tokens, whose acceptance and speed are not those of real text"
SYNTHETIC_ACCEPTANCE = "synthetic acceptance: the server made it up"


@dataclass(frozen=True, eq=False)
class Run:
    """One finished run; two are the same only if they are one object.

    Attributes
    ----------
    name
        What the page calls it; no other run of the page has the same.
    described, summary
        `run.json` and `summary.json`.
    sweep
        Name of the sweep that it is a point of, "" if of none.
    lossless
        `lossless.json`, None if nobody checked.
    recipe
        The shipped recipe that it was made from: its kinds of drafting and verification, and the figures that others
        published; None for none, or for one that this version does not ship.
    place
        Where it lies on the axes of its sweep: server, data, config, temperature, concurrency, draft_length, repeat.
    page_marks
        Marks that all runs of the page carry: they stand in every heading, and need not stand in every row.
    """

    path: Path
    name: str
    described: Mapping[str, Any]
    summary: Mapping[str, Any]
    sweep: str = ""
    lossless: Mapping[str, Any] | None = None
    recipe: Recipe | None = None
    place: Mapping[str, Any] = field(default_factory=dict)
    page_marks: tuple[str, ...] = ()

    @cached_property
    def requests(self) -> Sequence[Measured]:
        """The requests, warm-ups left out, their acceptance of one kind of evidence; read from the traces once."""
        config, measured = read_measured(RunFolder(self.path))
        return choose_evidence(measured, config.limits.min_coverage)[0]

    @property
    def side(self) -> Side:
        """The run as one side of a comparison."""
        return Side(self.name, self.described, self.summary, self.requests)

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration as it was run."""
        config: Mapping[str, Any] = self.described["config"]
        return config

    @property
    def speculative(self) -> bool:
        """Whether the server speculated, as far as the configuration tells."""
        return bool(self.summary["speculative"])

    @property
    def held_back(self) -> bool:
        """Whether a gate is shut: then no figure of the run is shown."""
        return not self.summary["published"]

    @property
    def note(self) -> str:
        """A caution that everything shown of the run must carry, "" if none; a toy model always has one."""
        toy = self.recipe is not None and self.recipe.target.is_toy
        return str(self.summary.get("note") or "") or (TOY_NOTE if toy else "")

    @property
    def marks(self) -> tuple[str, ...]:
        """What every title over the run's figures must carry, such as SYNTHETIC PROMPTS or TOY MODEL."""
        return marks({**self.summary, "note": self.note})

    @property
    def title(self) -> str:
        """Name, and the marks that set it apart from other runs of the page."""
        return " ".join([self.name, *(f"[{mark}]" for mark in self.marks if mark not in self.page_marks)])

    @property
    def allowed_gates(self) -> Sequence[Mapping[str, str]]:
        """Gates that are shut and that whoever ran it allowed to be: the figures are shown, with a mark."""
        return tuple(self.summary.get("allowed_gates") or ())


@dataclass(frozen=True)
class Sweep:
    """A folder of points.

    Attributes
    ----------
    described
        Its `sweep.json`, with the places of all points and the servers that were skipped; empty for a folder of runs.
    unfinished
        The places of the points that have no summary.
    """

    path: Path
    name: str
    runs: tuple[Run, ...]
    described: Mapping[str, Any] = field(default_factory=dict)
    unfinished: tuple[Mapping[str, Any], ...] = ()

    @property
    def experiment(self) -> str:
        """The shipped experiment that it is a run of, "" if of none."""
        return str(self.described.get("experiment") or "")


@dataclass(frozen=True)
class Results:
    """All that one page is about; `runs` holds the points of the sweeps too."""

    runs: tuple[Run, ...]
    sweeps: tuple[Sweep, ...] = ()

    @property
    def shown(self) -> tuple[Run, ...]:
        """The runs whose figures are shown: those that no gate holds back."""
        return tuple(run for run in self.runs if not run.held_back)

    @property
    def held_back(self) -> tuple[Run, ...]:
        """The runs whose gates are shown instead of figures."""
        return tuple(run for run in self.runs if run.held_back)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each shown run against its baseline, paired by conversation, or why not."""
        return compare_runs(self.shown)

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of all runs, each once."""
        return all_marks(self.runs)

    @property
    def banner(self) -> str:
        """What stands above everything else on the page, "" if nothing has to."""
        noted = {run.note: [other for other in self.runs if other.note == run.note] for run in self.runs if run.note}
        prompts = [run for run in self.runs if run.summary["synthetic_prompts"]]
        acceptance = [run for run in self.runs if run.summary.get("synthetic_acceptance")]
        noted |= {SYNTHETIC_PROMPTS: prompts, SYNTHETIC_ACCEPTANCE: acceptance}
        for run in self.runs:
            for gate in run.allowed_gates:
                noted.setdefault(f"the gate {gate['name']} is shut, which whoever ran it allowed", []).append(run)
        return " ".join(self._said(note, runs) for note, runs in noted.items() if runs)

    def _said(self, note: str, runs: Sequence[Run]) -> str:
        """Return a note as a sentence, with the names of its runs where it does not hold for all."""
        sentence = f"{note[0].upper()}{note[1:].rstrip('.')}"
        names = ", ".join(clipped(run.name, 40) for run in runs[:6]) + (" and more" if len(runs) > 6 else "")
        return f"{sentence}." if len(runs) == len(self.runs) else f"{sentence} (holds for {names})."

    def experiment(self, name: str) -> tuple[Sweep, ...]:
        """Return the sweeps that are runs of a shipped experiment."""
        return tuple(sweep for sweep in self.sweeps if sweep.experiment == name)


def derived(run: Run, name: str) -> dict[str, Any] | None:
    """Return a JSON file that an experiment derived of a run; None where it did not.

    Raises
    ------
    BenchError
        If it cannot be read, or lacks what the page shows.
    """
    path = run.path / name
    if not path.is_file():
        return None
    values = RunFolder(run.path).read_json(name)
    refuse_other_file(values, path)
    return values


def all_marks(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return the marks of runs, each once, in the order in which they are met."""
    return tuple(dict.fromkeys(mark for run in runs for mark in run.marks))


def read_results(paths: Sequence[Path]) -> Results:
    """Return what lies in folders of runs and of sweeps.

    Raises
    ------
    BenchError
        If a folder is neither, or holds a file that cannot be read: with its path.
    """
    runs, sweeps = list[Run](), list[Sweep]()
    for path in dict.fromkeys(Path(p).resolve() for p in paths):
        if (path / SUMMARY).is_file():
            runs.append(_read_run(path))
        else:
            sweep = _read_sweep(path)
            sweeps.append(sweep)
            runs += sweep.runs
    shared = tuple(mark for mark in all_marks(runs) if all(mark in run.marks for run in runs))
    named = [replace(run, page_marks=shared) for run in _named_apart(runs)]
    by_path = {run.path: run for run in named}
    kept = tuple(replace(s, runs=tuple(by_path[run.path] for run in s.runs)) for s in sweeps)
    return Results(tuple(named), kept)


def _read_run(path: Path, sweep: str = "", place: Mapping[str, Any] | None = None) -> Run:
    folder = RunFolder(path)
    described, summary = folder.read_json(RUN), read_summary(folder)
    # What an earlier version did not write is what it did by default.
    config = described_config(described, str(path / RUN)).model_dump(mode="json")
    described = {**described, "config": config}
    return Run(
        path,
        path.name if sweep else str(config["name"]),
        described,
        summary,
        sweep,
        folder.read_json(LOSSLESS) if (path / LOSSLESS).is_file() else None,
        _recipe(config["engine"].get("recipe", "")),
        place or _place(path.name, config),
    )


def _place(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a run lies whose sweep did not write it down."""
    concurrency = config["load"]["concurrency"]
    return {
        "point": name,
        "server": name.removesuffix(f"-c{concurrency}"),
        "data": "",
        "config": config["data"]["config"],
        "temperature": config["sampling"]["temperature"],
        "concurrency": concurrency,
        "draft_length": config["engine"]["draft_length"],
        "repeat": 0,
    }


def _recipe(name: str) -> Recipe | None:
    try:
        return find_recipe(name) if name else None
    except ConfigError:  # of another version; the name itself is shown all the same
        return None


def _read_sweep(path: Path) -> Sweep:
    finished = sorted(found.parent for found in path.glob(f"*/{SUMMARY}"))
    if not finished:
        raise BenchError(f"{path}: neither a finished run (no {SUMMARY}) nor a sweep of such; give a folder of either")
    described = RunFolder(path).read_json(SWEEP) if (path / SWEEP).is_file() else {}
    refuse_other_file(described, path / SWEEP)
    places = {place["point"]: place for place in described.get("points", ())}
    order = {name: number for number, name in enumerate(places)}
    finished.sort(key=lambda folder: order.get(folder.name, len(order)))
    runs = [_read_run(folder, path.name, places.get(folder.name)) for folder in finished]
    if not order:
        runs.sort(key=lambda run: (run.place["server"], run.place["concurrency"]))
    done = frozenset(folder.name for folder in finished)
    begun = {found.parent.name: {"point": found.parent.name} for found in sorted(path.glob(f"*/{RUN}"))}
    return Sweep(
        path, path.name, tuple(runs), described, tuple(p for n, p in {**begun, **places}.items() if n not in done)
    )


def _named_apart(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with names that differ: a name that two have becomes that of their folders, or paths."""
    for again in (_folder_name, _two_folders_name, _path_name):
        counts = Counter(run.name for run in runs)
        runs = [replace(run, name=again(run)) if counts[run.name] > 1 else run for run in runs]
    return list(runs)


def _folder_name(run: Run) -> str:
    return run.path.name


def _two_folders_name(run: Run) -> str:
    return f"{run.path.parent.name}/{run.path.name}"


def _path_name(run: Run) -> str:
    return str(run.path)


def as_json(value: Any) -> str:
    """Return a setting as one line of JSON, a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
