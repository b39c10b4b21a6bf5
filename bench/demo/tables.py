"""What a demo tells at its end, as text and as JSON values. Pure."""

from __future__ import annotations

from typing import Any

from bench.demo.flow import Demo, Mode
from bench.tables import Row, bounds, marks, shown

POINTS = ("point", "output_tps", "acceptance_length", "speed_up")


def mode_rows(demo: Demo) -> list[Row]:
    """Return a line for each way to draft, over the qualitative rows."""
    rows = [["mode", "acceptance_length", "95 % interval", "speed_up", "95 % interval", "outputs", "golden table"]]
    return rows + [_mode_row(mode) for mode in demo.modes]


def _mode_row(mode: Mode) -> Row:
    title = " ".join([mode.name, *(f"[{mark}]" for mark in marks(mode.summary))])
    if not mode.summary["published"]:
        shut = "; ".join(f"{gate['name']} ({gate['detail']})" for gate in mode.summary["gates"])
        return [title, f"held back: {shut}"]
    length = mode.summary["overall"]["headline"]["acceptance_length"]
    user = mode.comparison["speed_up"]["user_tps"] if mode.comparison else None
    ratio = user["ratio"] if user else None
    outputs = mode.lossless["verdict"] if mode.lossless else "baseline"
    interval = bounds(length["interval"])
    return [title, shown(length["value"]), interval, *_ratio(ratio), outputs, _gate(mode)]


def _ratio(ratio: dict[str, Any] | None) -> tuple[str, str]:
    return (shown(ratio["value"]), bounds(ratio)) if ratio else ("n/a", "n/a")


def _gate(mode: Mode) -> str:
    if mode.gate is None:
        return mode.why_no_gate or "n/a"
    short = [row["category"] for row in mode.gate if not row["holds"]]
    return f"below it in {', '.join(short)}" if short else f"holds in {len(mode.gate)} categories"


def point_rows(demo: Demo) -> list[Row]:
    """Return a line for each point of the throughput sweep."""
    return [list(POINTS), *([shown(point[name]) for name in POINTS] for point in demo.points)]


def next_steps(demo: Demo) -> list[str]:
    """Return where everything is, and commands that go on from here."""
    drafting = next((mode for mode in reversed(demo.modes) if mode.lossless), demo.modes[-1])
    return [
        f"page        {demo.page}",
        f"runs        {', '.join(str(mode.folder) for mode in demo.modes)}, {demo.throughput}",
        f"rows        {demo.rows}",
        "",
        "What to try next:",
        f"  speedbench bench compare {demo.modes[0].folder} {drafting.folder} --by category",
        f"  speedbench bench lossless {demo.modes[0].folder} {drafting.folder}",
        "  speedbench bench recipes list",
        f"  speedbench bench sweep --list          # experiments; each takes --data {demo.rows}",
        "  speedbench bench demo --model smollm2 --out out/bench-smollm2   # real language",
    ]


def as_document(demo: Demo) -> dict[str, Any]:
    """Return what came out as JSON values."""
    return {
        "model": demo.model.name,
        "note": demo.model.note,
        "rows": str(demo.rows),
        "page": str(demo.page),
        "modes": [
            {
                "mode": mode.name,
                "path": str(mode.folder),
                "published": mode.summary["published"],
                "acceptance_length": mode.summary["overall"]["headline"]["acceptance_length"]["value"],
                "speed_up": mode.comparison["speed_up"] if mode.comparison else None,
                "lossless": mode.lossless["verdict"] if mode.lossless else None,
                "gate": mode.gate,
            }
            for mode in demo.modes
        ],
        "throughput": demo.points,
    }
