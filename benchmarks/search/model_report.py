"""The verdict on the model as text: figures, a line for each kind of schedules, and one for each problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median, quantiles
from typing import Any

from benchmarks.search.figures import mean
from benchmarks.search.model import Judged, Verdict, by_kind, figures, rank_of
from benchmarks.search.report import aligned, figure_row, origin_lines

FEW = 5
"""Points of a problem from which a kind has an order worth correlating."""


def text(found: Verdict) -> Iterator[str]:
    """Lines of text."""
    yield from origin_lines(found.tables)
    yield (
        "poly describes this CPU: the model may have been fitted to it."
        if found.described
        else "poly does not describe this CPU: nothing of the model was fitted to it."
    )
    yield ""
    yield from aligned([("", "found", "goal", "", ""), *map(figure_row, figures(found))], left={0, 3, 4})
    yield ""
    yield from aligned([KIND_HEAD, *_kinds(found.own)], left={0})
    yield ""
    yield from aligned([PROBLEM_HEAD, *_problems(found)], left={0, 4})


KIND_HEAD = ("", "points", "rank", "predicted of measured", "quartiles")
PROBLEM_HEAD = ("problem", "points", "choice", "top 5 %", "rank", "repeated", "of measured", "before: choice", "rank")


def _kinds(judged: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    for kind, problems in by_kind(judged).items():
        ratios = [p.predicted / p.least for own in problems for p in own]
        if len(ratios) < 2:
            continue
        ranks = [rank_of(own) for own in problems if len(own) >= FEW]
        low, _, high = quantiles(ratios, n=4, method="inclusive")
        rank = f"{median(ranks):.2f}" if ranks else "-"
        yield (kind, str(len(ratios)), rank, f"{mean(ratios):.2f}", f"{low:.2f} to {high:.2f}")


def _problems(found: Verdict) -> Iterator[tuple[str, ...]]:
    for one, before in zip(found.own, found.before, strict=True):
        yield (
            one.problem,
            str(len(one.predictions)),
            f"{one.choice:.3f}",
            f"{one.top:.3f}",
            f"{one.rank:.2f}",
            f"{one.repeated:.2f}",
            f"{mean(p.predicted / p.least for p in one.predictions):.2f}",
            f"{before.choice:.3f}",
            f"{before.rank:.2f}",
        )


def document(found: Verdict) -> dict[str, Any]:
    """The object that `--json` writes for a machine."""
    return {
        "origin": asdict(found.tables[0].origin),
        "described": found.described,
        "figures": [{**asdict(one), "name": one.name.strip(), "met": one.met} for one in figures(found)],
        "problems": [
            {
                "problem": one.problem,
                "points": len(one.predictions),
                "choice": one.choice,
                "top 5 %": one.top,
                "rank correlation": one.rank,
                "two halves of the measurements": one.repeated,
                "before calibration": {"choice": before.choice, "rank correlation": before.rank},
            }
            for one, before in zip(found.own, found.before, strict=True)
        ],
    }
