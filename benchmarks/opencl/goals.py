"""The goals of the OpenCL target, and the figures for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.case import Case
from benchmarks.contender import Failed
from benchmarks.header.finding import Goal, GoalFigure
from benchmarks.opencl.overhead import overhead
from benchmarks.ours import NAME
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.matmul import Matmul
from benchmarks.report import ResultLine
from benchmarks.search.problems import LAYERS as RESNET
from benchmarks.workloads import bandwidth, nests, stencil
from codegen.opencl.devices import Device
from microkernels.dtypes import f32
from poly.timing.summary import Summary, geometric_mean, paired_ratio, summarize

PEAK = Goal("peak", "product, of the FMA peak", 0.88, at_least=True)
CLBLAST = Goal("clblast", "product, times CLBlast tuned for the device", 3.0, at_least=True)
PRODUCT = Goal("product", "product, of our C target's speed", 0.93, at_least=True)
LAYERS = Goal("layers", "ResNet-50, of our C target's speed", 0.9, at_least=True)
BOUND = Goal("bound", "of the bandwidth's bound, or of our C target", 0.8, at_least=True)
OVERHEAD = Goal("overhead", "a call beside an empty kernel's launch", 15.0, "µs")
CUBLAS = Goal("cublas", "product, of cuBLAS's speed", 0.8, at_least=True)

GOALS = {goal.name: goal for goal in (PEAK, CLBLAST, PRODUCT, LAYERS, BOUND, OVERHEAD, CUBLAS)}

PRODUCTS, LARGE = (512, 1024, 2048), 4096
QUICK_PRODUCTS, QUICK_LAYERS = (512,), {"03", "08", "14", "17"}

Measure = Callable[[Sequence[Case], Sequence[str]], Iterable[ResultLine]]
"""Measures cases against peers by name."""


@dataclass(frozen=True)
class GoalGroup:
    """Goals that are measured together: their cases, peers, and the figures from a line."""

    goals: tuple[Goal, ...]
    cases: tuple[Case, ...]
    peers: tuple[str, ...]
    findings: Callable[[ResultLine], Iterator[GoalFigure]]


def findings(names: set[str], device: Device, quick: bool, measure: Measure) -> Iterator[GoalFigure]:
    """The figures for these goals."""
    for part in parts(device, quick):
        if names & {goal.name for goal in part.goals}:
            lines = list(measure(part.cases, part.peers))
            found = [one for line in lines for one in part.findings(line) if one.goal.name in names]
            for goal in part.goals:
                yield from (one for one in found if one.goal == goal)
            if LAYERS in part.goals:
                yield mean(found)
    if OVERHEAD.name in names:
        yield from overheads(device.label)


def parts(device: Device, quick: bool) -> Iterator[GoalGroup]:
    """The groups to measure: GPUs have other products, which are also compared with cuBLAS."""
    if device.isa.is_gpu:
        large = (product(LARGE),)
        yield GoalGroup((CLBLAST, CUBLAS), large, ("clblast", "cuda"), large_product)
    else:
        products = tuple(map(product, QUICK_PRODUCTS if quick else PRODUCTS))
        yield GoalGroup((PEAK, CLBLAST, PRODUCT), products, ("c", "clblast"), products_found)
        numbers = [number for number in sorted(RESNET) if not quick or number in QUICK_LAYERS]
        yield GoalGroup((LAYERS,), tuple(map(layer, numbers)), ("c",), layers_found)
    yield GoalGroup((BOUND,), tuple(streams()), ("c",), bound_found)


def product(size: int) -> Case:
    sizes = {"M": size, "N": size, "K": size}
    return Case("gemm", str(size), f32, Matmul(size, size, size), partial(nests.make, "gemm_nn", f32), sizes)


def layer(number: str) -> Case:
    """A layer of ResNet-50, channels last."""
    problem = Convolution(*RESNET[number], layout="NHWC", zeros=True)
    nest = partial(nests.make, f"conv2d_nhwc_{problem.stride}", f32)
    return Case("conv2d", number, f32, problem, nest, problem.sizes)


def streams() -> Iterator[Case]:
    """Memory-bound cases: a stencil, softmax, and a matrix times a vector."""
    yield next(case for case in stencil.cases(f32) if case.size.startswith("jacobi-2d"))
    yield from bandwidth.cases(f32)


def products_found(line: ResultLine) -> Iterator[GoalFigure]:
    """A product against the peak, CLBlast and C."""
    yield figure(PEAK, line, of_peak(line))
    yield against(CLBLAST, line, "clblast")
    yield against(PRODUCT, line, "c")


def large_product(line: ResultLine) -> Iterator[GoalFigure]:
    """A large product against CLBlast and cuBLAS."""
    yield against(CLBLAST, line, "clblast")
    yield against(CUBLAS, line, "cuda")


def layers_found(line: ResultLine) -> Iterator[GoalFigure]:
    """Each layer against C; the goal applies to the mean."""
    yield against(LAYERS, line, "c", judged=False)


def bound_found(line: ResultLine) -> Iterator[GoalFigure]:
    """The better of the ratios to the roofline bound and to C."""
    beside, bound = ratio(line, "c"), of_bound(line)
    found = max((one for one in (beside, bound) if one), key=lambda one: one.median, default=None)
    parts = [f"{one.median:.2f} of {name}" for one, name in ((bound, "the bound"), (beside, "C")) if one]
    yield figure(BOUND, line, found, note=", ".join(parts))


def mean(found: Sequence[GoalFigure]) -> GoalFigure:
    """The geometric mean of the layers."""
    known = [one.value for one in found if one.value is not None]
    wrong = any(one.wrong for one in found)
    return GoalFigure(LAYERS, f"{len(known)} layers", geometric_mean(known), note="geometric mean", wrong=wrong)


def overheads(target: str) -> Iterator[GoalFigure]:
    """The time of a call beyond that of an empty kernel: until it returns, and until it is done."""
    for waiting, what in ((False, "call returns"), (True, "call is done")):
        try:
            found = overhead(target, waiting)
        except Failed as error:
            yield GoalFigure(OVERHEAD, what, None, note=str(error))
            continue
        note = f"{found.ours.median:.1f} µs, empty kernel {found.empty.median:.1f} µs"
        yield GoalFigure(OVERHEAD, what, found.more.median, abs(found.more.spread), note)


def against(goal: Goal, line: ResultLine, peer: str, judged: bool = True) -> GoalFigure:
    """Our speed relative to a peer's, or why there is none."""
    timing = line.result.timing(peer)
    if timing is None:
        return figure(goal, line, None, judged=judged, note=absence(line, peer))
    if not timing.right:
        return figure(goal, line, None, judged=judged, note=f"WRONG RESULT of {peer}, error {timing.error:.1e}")
    note = f"{_gflops(line.gflops)}, {peer} {_gflops(line.result.gflops(timing))}"
    return figure(goal, line, ratio(line, peer), judged=judged, note=note)


def figure(goal: Goal, line: ResultLine, value: Summary | None, note: str = "", judged: bool = True) -> GoalFigure:
    """A figure, noting our speed unless there is another note; it is wrong if our result is."""
    ours = line.result.timing(NAME)
    if ours is None:
        return GoalFigure(goal, line.result.case.title, None, note=absence(line, NAME), wrong=True)
    median, spread = (value.median, value.spread) if value else (None, None)
    return GoalFigure(
        goal, line.result.case.title, median, spread, note or _gflops(line.gflops), judged, not ours.right
    )


def absence(line: ResultLine, name: str) -> str:
    """Why a contender has no figure."""
    reasons = dict((*line.result.missing, *line.result.failed))
    return f"no {name}: {reasons.get(name, 'it takes no such case')}".splitlines()[0]


def ratio(line: ResultLine, peer: str) -> Summary | None:
    """Our speed relative to a peer's, over the rounds."""
    ours, other = line.result.timing(NAME), line.result.timing(peer)
    return paired_ratio(other.samples, ours.samples) if ours and other and other.right else None


def of_peak(line: ResultLine) -> Summary | None:
    """The fraction of the peak, as probed in the same rounds."""
    ours = line.result.timing(NAME)
    if ours is None:
        return None
    flop = line.result.case.problem.flop
    return summarize([flop / s / (1e9 * p) for s, p in zip(ours.samples, line.result.peaks, strict=True)])


def of_bound(line: ResultLine) -> Summary | None:
    """The fraction of the roofline bound."""
    ours = line.result.timing(NAME)
    return summarize([line.result.case.problem.flop / s / (1e9 * line.bound) for s in ours.samples]) if ours else None


def _gflops(value: float | None) -> str:
    return f"{value:.1f} GFLOP/s" if value is not None else "-"
