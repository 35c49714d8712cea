"""The goals of whole programs, and how far they are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.header.finding import Goal
from benchmarks.programs.line import BASELINE, ProgramLine
from benchmarks.side_by_side import WEAK
from poly.timing.summary import geometric_mean

Figure = Callable[[ProgramLine], float | None]

PRODUCTS = frozenset({"gemm", "2mm", "3mm"})
TRIANGLES = frozenset({"syrk", "syr2k", "trmm", "symm", "covariance", "correlation"})
FACTORISATIONS = frozenset({"cholesky", "lu", "ludcmp", "gramschmidt"})
STREAMS = frozenset({"mvt", "atax", "bicg", "gemver", "gesummv", "trisolv", "durbin"})
STENCILS = frozenset({"jacobi-1d", "jacobi-2d", "heat-3d", "seidel-2d", "fdtd-2d", "adi"})
TABLES = frozenset({"deriche", "nussinov", "floyd-warshall"})


@dataclass(frozen=True)
class Aim:
    """A goal for a figure of programs: for each of them, or for their geometric mean.

    It is one of all programs, of those of a suite, or of some.
    """

    goal: Goal
    figure: Figure
    suite: str | None = None
    programs: frozenset[str] | None = None
    mean: bool = False

    def concerns(self, line: ProgramLine) -> bool:
        return self.suite in (None, line.suite) and (self.programs is None or line.name in self.programs)


def _least(title: str, wanted: float) -> Goal:
    return Goal(title, title, wanted, at_least=True)


BEST = "of the best right peer"
GEMM = "of our plain GEMM"
GCC = f"of {BASELINE} -O3 -march=native"
BUILDING = "from loops to a shared library"

AIMS = (
    Aim(_least(BEST, 2.5), lambda line: line.ratio, "polybench", mean=True),
    Aim(_least(BEST, 1.3), lambda line: line.ratio, "loops", mean=True),
    Aim(_least(GCC, 5), lambda line: line.baseline_ratio, "polybench", mean=True),
    Aim(_least(BEST, WEAK), lambda line: line.ratio),
    Aim(_least(f"products, {GEMM}", 0.9), lambda line: line.gemm_fraction, programs=PRODUCTS),
    Aim(_least(f"triangles, {GEMM}", 0.8), lambda line: line.gemm_fraction, programs=TRIANGLES),
    Aim(_least(f"factorisations, {GEMM}", 0.6), lambda line: line.gemm_fraction, programs=FACTORISATIONS),
    Aim(_least("streams, of the bound", 0.9), lambda line: line.line.bound_fraction, programs=STREAMS),
    Aim(_least(f"stencils, {BEST}", 2), lambda line: line.ratio, programs=STENCILS, mean=True),
    Aim(_least(f"stencils, {BEST}", 1.2), lambda line: line.ratio, programs=STENCILS),
    Aim(_least(f"filters and tables, {BEST}", 2), lambda line: line.ratio, programs=TABLES),
    Aim(_least("threads, of the speed on one", 1), lambda line: line.gain),
    Aim(_least("threads, of the machine's gain", 0.9), lambda line: line.gain_fraction),
    Aim(Goal("workspace", "workspace beyond the arrays", 2, "MB"), lambda line: line.megabytes),
    Aim(Goal("mean time", BUILDING, 1, "s"), lambda line: line.building, mean=True),
    Aim(Goal("time", BUILDING, 5, "s"), lambda line: line.building),
)


def verdicts(lines: Sequence[ProgramLine]) -> Iterator[str]:
    """A line for each goal that concerns these programs: whether it is met, and the programs that miss it."""
    for aim in AIMS:
        found = {line.name: figure for line in lines if aim.concerns(line) if (figure := aim.figure(line)) is not None}
        if found:
            yield f"{aim.goal.title}, {_mean(found, aim.goal) if aim.mean else _each(found, aim.goal)}"


def _mean(found: dict[str, float], goal: Goal) -> str:
    mean = geometric_mean(found.values())
    assert mean is not None, "there is a figure"
    return f"geometric mean {goal.text}: {mean:.2f}, {'met' if goal.met(mean) else 'MISSED'}"


def _each(found: dict[str, float], goal: Goal) -> str:
    missed = [name for name, figure in found.items() if not goal.met(figure)]
    missed.sort(key=lambda name: found[name], reverse=not goal.at_least)
    worst = missed or [(min if goal.at_least else max)(found, key=lambda name: found[name])]
    verdict = f"MISSED by {len(missed)} of {len(found)}" if missed else "met, worst"
    return f"each {goal.text}: {verdict}: " + ", ".join(f"{name} {found[name]:.2f}" for name in worst)
