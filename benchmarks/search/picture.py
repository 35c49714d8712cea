"""The plot of the evaluation: best so far against measurements and against seconds, a line for each strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.search.figures import mean
from benchmarks.search.runs import SearchRun
from benchmarks.search.scores import Score
from poly.pictures.files import save, settled
from poly.pictures.style import INK, QUIET, light

COLOURS = {
    "droplet": "orange",
    "raindrop": "blue",
    "annealing": "purple",
    "evolution": "green",
    "random": "grey",
    "droplet-origin": "yellow",
    "model": "teal",
}
"""Colours of strategies, in the order of the legend; any other, such as one that a user added, is dark."""
LEFT_OUT = {"exhaustive", "model"}
"""Strategies that are not drawn: the order of a list says nothing about a search, and one measurement is no line."""
BANDS = {"droplet", "random"}
"""Strategies with a band; more bands would hide the lines."""
SOMETHING = 1e-6
"""The quality of a search that has found anything."""

Curve = Sequence[tuple[float, float, float, float]]
"""Positions from left to right, each with the lower quartile, the mean and the upper quartile of the qualities."""


def draw(scores: Sequence[Score], path: Path) -> None:
    """Draw the runs of all strategies on all problems; the file's suffix selects the format."""
    settled()
    from matplotlib import ticker
    from matplotlib.figure import Figure

    names = [name for name in scores[0].runs if name not in LEFT_OUT]
    names.sort(key=lambda name: list(COLOURS).index(name) if name in COLOURS else len(COLOURS))
    figure = Figure(figsize=(11, 4.8))
    left, right = figure.subplots(1, 2, sharey=True)
    for name in names:
        colour = light(COLOURS.get(name, "ink"))
        _line(left, by_measurements(scores, name), colour, name)
        _line(right, by_seconds(scores, name), colour, name)
    _dress(left, "measurements", "speed, relative to the best of the space")
    _dress(right, "seconds, compiler and timing", "")
    left.set_xlim(1, max(run.measurements for s in scores for name in names for run in s.runs[name].runs))
    right.set_xscale("log")
    right.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    right.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    right.xaxis.set_minor_locator(ticker.NullLocator())
    figure.text(0.01, 0.94, "How fast a search finds the best schedule", fontsize=15, weight="bold")
    figure.text(0.01, 0.895, caption(scores), fontsize=8.5, color=QUIET)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(names), fontsize=10)
    figure.subplots_adjust(left=0.065, right=0.985, top=0.82, bottom=0.2, wspace=0.05)
    save(figure, path)


def by_measurements(scores: Sequence[Score], name: str) -> Curve:
    """A strategy's quality after each number of measurements, from where every search has a first result.

    A search that has ended keeps its result.
    """
    runs = _runs(scores, name)
    places = range(max(run.reached(SOMETHING) for run in runs), max(run.measurements for run in runs) + 1)
    return [(n, *_over(scores, name, _after, n)) for n in places]


def by_seconds(scores: Sequence[Score], name: str) -> Curve:
    """A strategy's quality over seconds, in even ratios, from the latest first result to the latest end of a run."""
    runs = _runs(scores, name)
    first = max(run.steps[run.reached(SOMETHING) - 1].seconds for run in runs)
    last = max(run.steps[-1].seconds for run in runs)
    places = [first * (last / first) ** (n / 60) for n in range(61)]
    return [(place, *_over(scores, name, _at, place)) for place in places]


def _runs(scores: Sequence[Score], name: str) -> list[SearchRun]:
    """The runs of a strategy that found a schedule."""
    return [run for score in scores for run in score.runs[name].runs if run.quality >= SOMETHING]


def _after(run: SearchRun, measurements: float) -> float:
    return run.steps[min(int(measurements), run.measurements) - 1].quality


def _at(run: SearchRun, seconds: float) -> float:
    return _after(run, sum(step.seconds <= seconds * (1 + 1e-9) for step in run.steps))


def _over(
    scores: Sequence[Score], name: str, of: Callable[[SearchRun, float], float], place: float
) -> tuple[float, float, float]:
    """At a position, the geometric mean over problems of the runs' means, between the quartiles over problems."""
    import numpy as np

    found = [_runs([score], name) for score in scores]
    means = [mean(of(run, place) for run in runs) for runs in found if runs]
    low, high = np.quantile(means, (0.25, 0.75))
    return float(low), mean(means), float(high)


def _line(axis: Any, curve: Curve, colour: str, name: str) -> None:
    places, low, middle, high = zip(*curve, strict=True)
    if name in BANDS:
        axis.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)
    axis.plot(places, middle, color=colour, linewidth=2, label=name)


def _dress(axis: Any, across: str, upwards: str) -> None:
    axis.set_xlabel(across)
    axis.set_ylabel(upwards)
    axis.axhline(1, color=INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
    axis.annotate(
        "the best schedule", (1, 1), (-3, 3), ("axes fraction", "data"), "offset points", ha="right", fontsize=8
    )
    axis.grid()


def caption(scores: Sequence[Score]) -> str:
    """The caption: what is drawn."""
    runs = len(scores[0].tuned.runs)
    return (
        f"{len(scores)} problems, {sum(s.points for s in scores)} schedules, each measured. "
        f"Geometric mean of {runs} runs a problem; bands: quartiles of the problems."
    )
