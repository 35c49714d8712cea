"""The results of whole programs as a table, and what to say about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.document import threads_text
from benchmarks.programs.goals import verdicts
from benchmarks.programs.line import BASELINE, ProgramLine
from benchmarks.report import UNRELIABLE, notes
from benchmarks.runner import ContenderTiming
from benchmarks.search.report import aligned
from poly.machine.topology import size_text
from poly.timing.summary import geometric_mean

HEAD = ("", "threads", "ms", f"{BASELINE} ms", "best peer", "ms", "ratio", "±%", f"of {BASELINE}", "% GEMM",
        "% bound", "workspace", "built in s")  # fmt: skip
LEFT = {0, 4}
NONE = "-"


def cells(one: ProgramLine) -> tuple[str, ...]:
    """The row of the table, in the order of HEAD."""
    mine, gcc = one.timing, one.line.result.timing(BASELINE)
    ratio = one.line.result.ratio(one.line.ours)
    return (
        one.name,
        str(one.threads),
        _milliseconds(mine),
        _milliseconds(gcc),
        one.best.name if one.best else NONE,
        _milliseconds(one.best),
        _number(ratio.median if ratio else None),
        (f"{100 * ratio.spread:.0f}" if ratio else NONE) + UNRELIABLE * (not one.line.reliable),
        _number(one.baseline_ratio),
        _percent(one.gemm_fraction),
        _percent(one.line.bound_fraction),
        _bytes(mine.workspace if mine else None),
        _number(one.building),
    )


def text(lines: Sequence[ProgramLine]) -> Iterator[str]:
    """The table, the goals with the programs that miss them, and notes."""
    yield from aligned([HEAD, *map(cells, lines)], LEFT)
    for threads in dict.fromkeys(line.threads for line in lines):
        some = [line for line in lines if line.threads == threads]
        yield from ("", f"{len(some)} program{'s' * (len(some) > 1)}, {threads_text(threads)}, {means(some)}")
        yield from (f"  {verdict}" for verdict in verdicts(some))
    yield ""
    yield from notes([line.line for line in lines])


def means(lines: Sequence[ProgramLine]) -> str:
    """The geometric means of the speeds relative to the best peer and to gcc."""
    best = geometric_mean(line.ratio for line in lines if line.ratio)
    gcc = geometric_mean(line.baseline_ratio for line in lines if line.baseline_ratio)
    return f"geometric means {_number(best)} of the best right peer and {_number(gcc)} of {BASELINE}:"


def _milliseconds(timing: ContenderTiming | None) -> str:
    return NONE if timing is None else f"{1e3 * timing.seconds.median:.4g}{' wrong' * (not timing.right)}"


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f}"


def _bytes(value: int | None) -> str:
    return NONE if value is None else size_text(value) if value else "0"
