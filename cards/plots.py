"""The pictures of a card: PNG of the same bytes for the same facts and the same matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cards.facts import CardFacts, Counts, PlotFacts, total_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = "plots"
TIERS = f"{FOLDER}/tiers.png"
"""Where the throughput build's own picture goes."""

_BLUE, _GREY, _ORANGE, _RED = "#2f6f9f", "#b8b8b8", "#d98b3a", "#b3352a"
_SHADES = ("#9cc3de", "#4f8fbd", "#1f4f77", "#d5d5d5")
_DPI = 110
_WIDTH_IN = 9.0


def draw_plots(facts: CardFacts) -> dict[str, bytes]:
    """Return path in the DIST -> PNG of each picture for which there are figures."""
    return {path: picture for path, (draw, _) in _PLOTS.items() if (picture := _drawn(draw, facts)) is not None}


def plot_facts(paths: Sequence[str]) -> tuple[PlotFacts, ...]:
    """Return what the card says of each picture."""
    return tuple(PlotFacts(path, _ALTS[path]) for path in paths)


def _drawn(draw: Callable[[CardFacts], Figure | None], facts: CardFacts) -> bytes | None:
    import matplotlib

    # The defaults of matplotlib, whatever its user has in matplotlibrc; its own font, whatever is installed.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False})
        figure = draw(facts)
        if figure is None:
            return None
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return stream.getvalue()


def _axes(height_in: float) -> tuple[Figure, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _isl(facts: CardFacts) -> Figure:
    """Input length by category: a line from the shortest to the longest row, a bar over the middle half, the median."""
    groups = facts.main.categories
    figure, axes = _axes(0.9 + 0.34 * len(groups))
    places = range(len(groups))
    tokens = [group.tokens for group in groups]
    axes.hlines(places, [max(t.minimum, 1) for t in tokens], [t.maximum for t in tokens], color=_GREY, linewidth=1.5)
    left = [max(t.lower_quartile, 1.0) for t in tokens]
    widths = [t.upper_quartile - start for t, start in zip(tokens, left, strict=True)]
    axes.barh(places, widths, left=left, height=0.55, color=_SHADES[0])
    axes.plot([t.median for t in tokens], places, "|", color=_RED, markersize=13, markeredgewidth=2.2, linestyle="none")
    for place, t in zip(places, tokens, strict=True):
        axes.annotate(f"{t.median:,.0f}", (t.maximum, place), (6, 0), textcoords="offset points", va="center", size=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _name_rows(axes, [group.name for group in groups])
    axes.set_xlabel(f"tokens of all turns, {facts.tokenizer}, no chat template; the number is the median")
    axes.set_title(f"Input length of {facts.main.name}", loc="left")
    return figure


def _diversity(facts: CardFacts) -> Figure | None:
    """Mean pairwise cosine by category: the choice and its bound, beside random choice and Spec-Bench."""
    measured = [c for c in facts.categories if c.mean_cosine is not None]
    if not measured:
        return None
    figure, axes = _axes(0.9 + 0.38 * len(measured))
    series = (
        ("Spec-Bench", [c.spec_bench_cosine for c in measured], "s", _GREY),
        ("random choice", [c.random_cosine for c in measured], "D", _ORANGE),
        ("this split", [c.mean_cosine for c in measured], "o", _BLUE),
        ("bound: no choice is below", [c.bound_cosine for c in measured], "|", _RED),
    )
    for label, values, marker, colour in series:
        points = [(value, place) for place, value in enumerate(values) if value is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker, color=colour, label=label, markersize=8, markeredgewidth=2)
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
    _name_rows(axes, [c.name for c in measured])
    axes.set_xlabel(f"mean pairwise cosine by {facts.embedder}; further left is more diverse")
    axes.set_title("Diversity of each category", loc="left")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def _languages(facts: CardFacts) -> Figure | None:
    """Rows by declared language, on a logarithmic scale: most are of one language."""
    counts = [(name, n) for name, n in total_counts([g.languages for g in facts.main.categories]) if name]
    if not counts:
        return None
    figure, axes = _axes(3.4)
    axes.plot([name for name, _ in counts], [n for _, n in counts], "o", color=_BLUE, markersize=7)
    for place, (_, n) in enumerate(counts):
        axes.annotate(f"{n:,}", (place, n), (0, 7), textcoords="offset points", ha="center", size=8)
    axes.set_yscale("log")
    axes.set_ylim(0.7, max(n for _, n in counts) * 2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylabel("rows")
    axes.set_xlabel("language, as the source declares it (BCP 47)")
    axes.set_title(f"Languages of {facts.main.name}", loc="left")
    return figure


def _difficulty(facts: CardFacts) -> Figure | None:
    """Rows of each category by difficulty, where sources state one."""
    groups = facts.main.categories
    if not any(name for group in groups for name, _ in group.difficulties):
        return None
    figure, axes = _axes(0.9 + 0.34 * len(groups))
    done = [0] * len(groups)
    for (name, label), colour in zip(_DIFFICULTY_LABELS.items(), _SHADES, strict=True):
        widths = [_count(group.difficulties, name) for group in groups]
        if any(widths):
            axes.barh(range(len(groups)), widths, left=done, color=colour, label=label, height=0.65)
        done = [a + b for a, b in zip(done, widths, strict=True)]
    _name_rows(axes, [group.name for group in groups])
    axes.set_xlabel("rows")
    axes.set_title(f"Difficulty in {facts.main.name}, as the source states it", loc="left")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


_DIFFICULTY_LABELS = {"easy": "easy", "medium": "medium", "hard": "hard", "": "none stated"}


def _count(counts: Counts, name: str) -> int:
    return dict(counts).get(name, 0)


_PLOTS: dict[str, tuple[Callable[[CardFacts], Figure | None], str]] = {
    f"{FOLDER}/isl.png": (_isl, "Input length by category: range, middle half and median"),
    f"{FOLDER}/diversity.png": (_diversity, "Mean pairwise cosine by category beside Spec-Bench and random choice"),
    f"{FOLDER}/languages.png": (_languages, "Rows by declared language"),
    f"{FOLDER}/difficulty.png": (_difficulty, "Rows by category and difficulty"),
}
_ALTS = {path: alt for path, (_, alt) in _PLOTS.items()} | {TIERS: "Predictability of each entropy tier"}
