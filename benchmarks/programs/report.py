"""The results of whole programs as a table, and what to say about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.problems.program import Program
from benchmarks.report import UNRELIABLE, ResultLine, notes
from benchmarks.runner import ContenderTiming
from benchmarks.search.report import aligned
from benchmarks.side_by_side import WEAK
from benchmarks.stats import Summary, geometric_mean, paired_ratio
from poly.machine.text import size_text

BASELINE = "gcc"
"""The peer to which every program is compared, beside the best one."""
HEAD = ("", "threads", "ms", f"{BASELINE} ms", "best peer", "ms", "ratio", "±%", f"of {BASELINE}", "% GEMM",
        "% bound", "workspace", "built in s")  # fmt: skip
LEFT = {0, 4}
NONE = "-"


@dataclass(frozen=True)
class ProgramLine:
    """A program's result, and the part of the FMA peak that our plain GEMM reached in the same run, if it was measured.

    The rate of a program is a part of the GEMM's if nearly all of its operations are a contraction's.
    """

    line: ResultLine
    gemm: float | None

    @property
    def name(self) -> str:
        return self.line.result.case.size

    @property
    def timing(self) -> ContenderTiming | None:
        return self.line.result.timing(self.line.ours)

    @property
    def best(self) -> ContenderTiming | None:
        return self.line.result.best_peer(self.line.ours)

    @property
    def baseline(self) -> Summary | None:
        """The speed relative to gcc, if its result is right."""
        mine, peer = self.timing, self.line.result.timing(BASELINE)
        return paired_ratio(peer.samples, mine.samples) if mine and peer and peer.right else None

    @property
    def gemm_fraction(self) -> float | None:
        """Our rate as a part of our plain GEMM's."""
        problem = self.line.result.case.problem
        if self.gemm is None or not isinstance(problem, Program) or problem.operations is None:
            return None
        return None if self.line.peak_fraction is None else self.line.peak_fraction / self.gemm

    def cells(self) -> tuple[str, ...]:
        """The row of the table, in the order of HEAD."""
        mine, gcc = self.timing, self.line.result.timing(BASELINE)
        ratio = self.line.result.ratio(self.line.ours)
        return (
            self.name,
            str(self.line.result.threads),
            _milliseconds(mine),
            _milliseconds(gcc),
            self.best.name if self.best else NONE,
            _milliseconds(self.best),
            _number(ratio.median if ratio else None),
            (f"{100 * ratio.spread:.0f}" if ratio else NONE) + UNRELIABLE * (not self.line.reliable),
            _number(self.baseline.median if self.baseline else None),
            _percent(self.gemm_fraction),
            _percent(self.line.bound_fraction),
            _bytes(mine.workspace if mine else None),
            _number(mine.building if mine else None),
        )


def text(lines: Sequence[ProgramLine]) -> Iterator[str]:
    """The table, the geometric means, the programs that are slower than a peer, and notes."""
    yield from aligned([HEAD, *(line.cells() for line in lines)], LEFT)
    yield ""
    for threads in dict.fromkeys(line.line.result.threads for line in lines):
        yield from summary([line for line in lines if line.line.result.threads == threads], threads)
    yield ""
    yield from notes([line.line for line in lines])


def summary(lines: Sequence[ProgramLine], threads: int) -> Iterator[str]:
    """Geometric means over the programs on a number of threads, and those that are slower than the best peer."""
    best = {line.name: line.line.ratio for line in lines if line.line.ratio is not None}
    gcc = {line.name: line.baseline.median for line in lines if line.baseline is not None}
    yield f"{len(lines)} programs, {threads} thread{'s' * (threads > 1)}, geometric means:"
    yield f"  {_mean(best.values())} of the best right peer, least {_least(best)}"
    yield f"  {_mean(gcc.values())} of {BASELINE} -O3 -march=native, least {_least(gcc)}"
    built = {line.name: -mine.building for line in lines if (mine := line.timing) and mine.building is not None}
    if built:
        slowest = min(built, key=lambda name: built[name])
        mean = _mean(-seconds for seconds in built.values())
        yield f"  {mean} s from loops to a shared library, most {-built[slowest]:.2f} ({slowest})"
    weak = sorted((ratio, name) for name, ratio in best.items() if ratio < WEAK)
    named = "; ".join(f"{ratio:.2f} {name}" for ratio, name in weak) or "none"
    yield f"  below {WEAK} of the best right peer: {named}"


def _least(ratios: dict[str, float]) -> str:
    return "-" if not ratios else f"{min(ratios.values()):.2f} ({min(ratios, key=lambda name: ratios[name])})"


def _mean(values: Iterable[float]) -> str:
    return _number(geometric_mean(values))


def _milliseconds(timing: ContenderTiming | None) -> str:
    return NONE if timing is None else f"{1e3 * timing.seconds.median:.4g}{' wrong' * (not timing.right)}"


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f}"


def _bytes(value: int | None) -> str:
    return NONE if value is None else size_text(value) if value else "0"
