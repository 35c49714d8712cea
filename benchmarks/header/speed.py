"""The header's kernel against the Python kernel, and gcc's against clang's: same arrays, same clock, in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import poly
from benchmarks.arrays import Array, copy
from benchmarks.case import Case
from benchmarks.contender import Contender
from benchmarks.header.embedded import EmbeddedHeader, build, write
from benchmarks.header.finding import CLANG, NO_CLANG, SPEED, Goal, GoalFigure
from benchmarks.header.setting import Setting
from benchmarks.header.workloads import Workload
from benchmarks.probe import PeakProbe
from benchmarks.runner import Result, measure
from codegen.calls.clock import CFunction
from microkernels.cached import cached_property
from microkernels.isa import ISA
from poly.timing.summary import paired_ratio

PYTHON, HEADER, ALLOCATING, BY_CLANG = "python", "header", "allocating", "clang"


@dataclass(frozen=True)
class SharedArrays:
    """Arrays of a case that all entrants work on, so that their place in memory favours none."""

    case: Case

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        return self.case.problem.arrays(self.case.dtype)

    @cached_property
    def content(self) -> tuple[Array, ...]:
        return tuple(map(copy, self.case.problem.arrays(self.case.dtype)))

    def restore(self) -> None:
        """Restore the arrays' initial content."""
        for array, content in zip(self.arrays, self.content, strict=True):
            array[...] = content


@dataclass(frozen=True)
class InProcess:
    """An entrant in this process: `make` gives its function on the bench's arrays, or raises Failed."""

    name: str
    version: str
    bench: SharedArrays
    make: Callable[[tuple[Array, ...]], CFunction]

    def enter(self, case: Case, threads: int) -> Contender:
        arrays = self.bench.arrays
        timed = self.make(arrays).timed()
        self.bench.restore()
        timed(1)
        result = copy(arrays[case.problem.written[0]])
        return Contender(self.name, self.version, "", timed, lambda: result)


@dataclass(frozen=True)
class Compared:
    """A measured case: its title, and the result with all entrants' times."""

    title: str
    result: Result

    def finding(self, goal: Goal, name: str, base: str, judged: bool = True) -> GoalFigure:
        """The speed of one entrant relative to another."""
        mine, other = self.result.timing(name), self.result.timing(base)
        what = f"{self.title}{', allocating' * (name == ALLOCATING)}"
        if mine is None or other is None:
            why = next((f"{who}: {text}" for who, text in self.result.failed if who in (name, base)), "not measured")
            return GoalFigure(goal, what, None, note=why, judged=judged)
        ratio = paired_ratio(other.samples, mine.samples)
        speeds = self.result.gflops(mine), self.result.gflops(other)
        note = f"{speeds[0]:.1f} GFLOP/s, {100 * speeds[0] / self.result.peak.median:.0f} % of peak"
        wrong = not (mine.right and other.right)
        if wrong:
            note = f"WRONG RESULT, relative errors {mine.error:.1e} and {other.error:.1e}"
        details = (("gflops", speeds[0]), ("other_gflops", speeds[1]))
        return GoalFigure(goal, what, ratio.median, ratio.spread, note, judged, wrong, details)


def compare(workload: Workload, setting: Setting) -> Iterator[Compared]:
    """Measure the cases of a workload."""
    setting.announce(f"{workload.prefix}: kernels")
    kernels = [compiled(case, {} if workload.symbolic else case.sizes, workload.isa) for case in workload.cases]
    embedded = write(_together(workload, kernels), workload.prefix, setting.folder, setting.isas)
    built: dict[str, Callable[[], EmbeddedHeader]] = {
        name: cache(partial(build, embedded, compiler, workload.isa))
        for name, compiler in ((HEADER, setting.host), (BY_CLANG, setting.clang))
        if compiler
    }
    for case, kernel in zip(workload.cases, kernels, strict=True):
        probe = PeakProbe(setting.cpus, case.dtype, 1)
        entrants = list(_entrants(SharedArrays(case), kernel, built, setting))
        result = measure(case, 1, entrants, probe, setting.budget, setting.announce)
        yield Compared(workload.title(case), result)


def findings(compared: Sequence[Compared], clang: bool) -> Iterator[GoalFigure]:
    """The figures for both goals, one after the other. A call that allocates is reported, but not judged."""
    for one in compared:
        yield one.finding(SPEED, HEADER, PYTHON)
        yield one.finding(SPEED, ALLOCATING, PYTHON, judged=False)
    if not clang:
        yield GoalFigure(CLANG, "all", None, note=NO_CLANG)
        return
    for one in compared:
        yield one.finding(CLANG, BY_CLANG, HEADER)


def compiled(case: Case, sizes: Mapping[str, int], isa: ISA | None = None, threads: int = 1) -> poly.Kernel:
    """The Python kernel of a case, with the model's schedule."""
    target = f"c:{isa.name}" if isa else "c"
    made = poly.compile(case.nest(), sizes=sizes, threads=threads, records=False, target=target)
    assert isinstance(made, poly.Kernel), f"{target} is C"
    return made


def _together(workload: Workload, kernels: Sequence[poly.Kernel]) -> Sequence[poly.Kernel]:
    """The kernels of one header: with several special ones, also the one for all other sizes."""
    if workload.symbolic:
        return kernels[:1]
    return [compiled(workload.cases[0], {}, workload.isa), *kernels] if len(kernels) > 1 else kernels


def _entrants(
    bench: SharedArrays, kernel: poly.Kernel, built: Mapping[str, Callable[[], EmbeddedHeader]], setting: Setting
) -> Iterator[InProcess]:
    """The Python kernel, the header by each compiler, and the header's function that allocates."""
    sizes = bench.case.sizes
    yield InProcess(PYTHON, setting.host.version, bench, partial(_python, kernel))
    yield InProcess(HEADER, setting.host.version, bench, partial(_header, built[HEADER], sizes, False))
    if setting.clang:
        yield InProcess(BY_CLANG, setting.clang.version, bench, partial(_header, built[BY_CLANG], sizes, False))
    yield InProcess(ALLOCATING, setting.host.version, bench, partial(_header, built[HEADER], sizes, True))


def _python(kernel: poly.Kernel, arrays: tuple[Array, ...]) -> CFunction:
    return CFunction.of(kernel.function, kernel.arguments(*arrays, threads=1), kernel)


def _header(
    library: Callable[[], EmbeddedHeader], sizes: Mapping[str, int], allocate: bool, arrays: tuple[Array, ...]
) -> CFunction:
    return library().call(arrays, sizes, allocate)
