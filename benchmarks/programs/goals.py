"""The goals of whole programs, and how far they are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.header.finding import Goal
from benchmarks.programs.line import BASELINE, ProgramLine
from benchmarks.side_by_side import WEAK
from benchmarks.stats import geometric_mean

Figure = Callable[[ProgramLine], float | None]

MEGABYTE = 1e6
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


def _ratio(line: ProgramLine) -> float | None:
    return line.line.ratio


def _baseline(line: ProgramLine) -> float | None:
    return line.baseline.median if line.baseline else None


def _gemm(line: ProgramLine) -> float | None:
    return line.gemm_fraction


def _bound(line: ProgramLine) -> float | None:
    return line.line.bound_fraction


def _gain(line: ProgramLine) -> float | None:
    return line.gain


def _gain_fraction(line: ProgramLine) -> float | None:
    return line.gain_fraction


def _workspace(line: ProgramLine) -> float | None:
    return line.timing.workspace / MEGABYTE if line.timing and line.timing.workspace is not None else None


def _building(line: ProgramLine) -> float | None:
    return line.timing.building if line.timing else None


def _least(title: str, wanted: float) -> Goal:
    return Goal(title, title, wanted, at_least=True)


BEST = "of the best right peer"
GEMM = "of our plain GEMM"
GCC = f"of {BASELINE} -O3 -march=native"
BUILDING = "from loops to a shared library"

AIMS = (
    Aim(_least(BEST, 2.5), _ratio, "polybench", mean=True),
    Aim(_least(BEST, 1.3), _ratio, "loops", mean=True),
    Aim(_least(GCC, 5), _baseline, "polybench", mean=True),
    Aim(_least(BEST, WEAK), _ratio),
    Aim(_least(f"products, {GEMM}", 0.9), _gemm, programs=PRODUCTS),
    Aim(_least(f"triangles, {GEMM}", 0.8), _gemm, programs=TRIANGLES),
    Aim(_least(f"factorisations, {GEMM}", 0.6), _gemm, programs=FACTORISATIONS),
    Aim(_least("streams, of the bound", 0.9), _bound, programs=STREAMS),
    Aim(_least(f"stencils, {BEST}", 2), _ratio, programs=STENCILS, mean=True),
    Aim(_least(f"stencils, {BEST}", 1.2), _ratio, programs=STENCILS),
    Aim(_least(f"filters and tables, {BEST}", 2), _ratio, programs=TABLES),
    Aim(_least("threads, of the speed on one", 1), _gain),
    Aim(_least("threads, of the machine's gain", 0.9), _gain_fraction),
    Aim(Goal("workspace", "workspace beyond the arrays", 2, "MB"), _workspace),
    Aim(Goal("mean time", BUILDING, 1, "s"), _building, mean=True),
    Aim(Goal("time", BUILDING, 5, "s"), _building),
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
