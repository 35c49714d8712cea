"""The evaluation as text: figures with their goals, a table of strategies, and a line for each problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.search.figures import Figure, mean
from benchmarks.search.proof import Proof, Tables
from benchmarks.search.scores import FEW, Score
from benchmarks.search.table import Table
from poly.machine import machine

NEARLY = 0.98
"""The quality to which the number of measurements is reported."""


def text(tables: Tables, proof: Proof) -> Iterator[str]:
    """Lines of text."""
    yield from head(tables)
    yield ""
    yield from aligned([("", "found", "goal", "", ""), *map(figure_row, proof.figures)], left={0, 3, 4})
    yield ""
    yield from _strategies(proof.scores)
    yield from _polydl(proof.scores)
    yield ""
    yield from _problems(proof.scores)
    if tables.notes:
        yield ""
        yield from tables.notes


def head(tables: Tables) -> Iterator[str]:
    """Where the tables come from, with a warning if that is not this machine."""
    yield from origin_lines([land.table for land in tables.lands])
    cpu = tables.lands[0].table.origin.machine["cpu"]
    if cpu != machine().cpu:
        yield f"This machine is another one, {machine().cpu}: the model predicts for the table's."
    noise = median(land.noise for land in tables.lands)
    yield "Figures are speeds relative to what an exhaustive search finds, judged on samples that it did not see."
    yield f"Two halves of the visits to a point differ by {100 * noise:.1f} % (median)."


def origin_lines(tables: Sequence[Table]) -> Iterator[str]:
    """A line for each machine and setting that some of the tables are from."""
    groups: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        threads = f"{table.threads} thread" + "s" * (table.threads > 1)
        origin, facts = table.origin, table.origin.machine
        tools = (origin.compiler, f"poly {origin.engine}")
        group = (facts["cpu"], facts["isa"], threads, *tools, f"{origin.arrays} arrays")
        groups.setdefault(group, []).append(table)
    for words, own in groups.items():
        names = f"{len(own)} problems" if len(own) > 1 else own[0].problem
        points = sum(len(table.entries) for table in own)
        visits = [len(entry.passes) for table in own for entry in table.entries.values() if entry.passes]
        often = f"{min(visits)} to {max(visits)}" if min(visits) < max(visits) else f"{visits[0]}"
        yield f"{names}, {points} points, {often} visits each: {', '.join(words)}"


def aligned(rows: Sequence[Sequence[str]], left: set[int]) -> Iterator[str]:
    """Rows of equal length as lines; the columns in `left` are aligned to the left, the others to the right."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        cells = (c.ljust(w) if n in left else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield "  ".join(cells).rstrip()


def figure_row(figure: Figure) -> tuple[str, ...]:
    """A figure beside its goal."""
    sign = "≥" if figure.at_least else "≤"
    met = "met" if figure.met else "MISSED"
    return (figure.name, f"{figure.value:.{figure.digits}f}", f"{sign} {figure.goal:g}", met, figure.note)


def _strategies(scores: Sequence[Score]) -> Iterator[str]:
    """Each strategy with the same number of measurements; medians of the runs, geometric means of the problems."""
    rows = [(f"{FEW} measurements at most", "mean", "worst", "made", f"to {NEARLY}", "seconds", "worst problem")]
    for name in sorted(scores[0].runs, key=lambda name: -mean(score.runs[name].quality for score in scores)):
        worst = min(scores, key=lambda score: score.runs[name].quality)
        rows.append(
            (
                name,
                f"{mean(score.runs[name].quality for score in scores):.3f}",
                f"{worst.runs[name].quality:.3f}",
                f"{median(score.runs[name].measurements for score in scores):.0f}",
                f"{median(score.runs[name].reached(NEARLY) for score in scores):.0f}",
                f"{median(score.runs[name].seconds for score in scores):.1f}",
                worst.problem,
            )
        )
    yield from aligned(rows, left={0, 6})


def _polydl(scores: Sequence[Score]) -> Iterator[str]:
    """PolyDL's ranking, if it was asked for."""
    known = [score.polydl for score in scores if score.polydl is not None]
    if known:
        choices, tops = zip(*known, strict=True)
        yield ""
        yield (
            f"PolyDL's ranking of the same points: first choice {mean(choices):.3f} (worst {min(choices):.3f}), "
            f"best of its top 5 % {mean(tops):.3f}"
        )


def _problems(scores: Sequence[Score]) -> Iterator[str]:
    head = ("problem", "points", "choice", "top 5 %", "droplet", "after", "origin", "after", "random", "5 moved")
    rows = [head]
    for score in scores:
        rows.append(
            (
                score.problem,
                str(score.points),
                f"{score.choice:.3f}",
                f"{score.top:.3f}",
                f"{score.tuned.quality:.3f}",
                f"{score.tuned.measurements:.0f}",
                f"{score.origin.quality:.3f}",
                f"{score.origin.needed:.0f}",
                f"{score.origin.random_needs:.0f}",
                "-" if score.transfer is None else f"{score.transfer:.3f}",
            )
        )
    yield from aligned(rows, left={0})
