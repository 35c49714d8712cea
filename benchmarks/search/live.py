"""The search live: one product and one convolution are tuned by several strategies, and the results timed in turn.

Each tuning starts from scratch: no records are read, though the cache may hold kernels compiled by other runs. The
results are then timed like any contender of `poly bench`, in the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import poly
from benchmarks.case import Case
from benchmarks.contender import Contender, Entrant, Failed
from benchmarks.probe import PeakProbe
from benchmarks.problems.matmul import Matmul
from benchmarks.runner import Result, Rounds, measure
from benchmarks.search.problems import whole
from benchmarks.search.report import aligned
from benchmarks.workloads import gemm
from codegen.calls.clock import CFunction
from microkernels.dtypes import f32
from poly.measure import process

SQUARE, LAYER = "512", "conv 07"
"""The product and the convolution."""
ROUNDS = Rounds(seconds=3.0, rounds=(7, 100))
TRIALS = 40
"""The measurements of strategies for comparison, which do not stop by themselves."""


@dataclass(frozen=True)
class TuningEffort:
    """The cost of a tuning: seconds in all, and measurements."""

    seconds: float
    trials: int


class Tuner(Entrant, Protocol):
    """An entrant that tunes first; `efforts` has the cost of that, by the case's title."""

    @property
    def efforts(self) -> dict[str, TuningEffort]: ...

    def close(self) -> None:
        """Release what it holds."""


class StrategyKernel:
    """poly's kernel, tuned by a strategy; without `trials` the search stops by itself."""

    def __init__(self, name: str, strategy: str, trials: int | None, cpus: tuple[int, ...]) -> None:
        self.name = name
        self.efforts: dict[str, TuningEffort] = {}
        self._strategy = strategy
        self._trials = trials
        self._cpus = cpus

    def enter(self, case: Case, threads: int) -> Contender:
        """Tune, and prepare to be timed. Raises Failed with poly's message."""
        process.release(self._cpus)  # the compiler may use them all
        try:
            kernel = poly.tune(
                case.nest(),
                strategy=self._strategy,
                trials=self._trials,
                sizes=case.sizes,
                threads=threads,
                records=False,
                show=False,
            )
        except poly.PolyError as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        finally:
            process.pin(process.choose(self._cpus, threads))
        self.efforts[case.title] = TuningEffort(kernel.tuning.elapsed, kernel.tuning.trials)
        arrays = case.arrays()
        timed = CFunction.of(kernel.function, kernel.arguments(*arrays, threads=threads), kernel).timed()
        timed(1)
        result = arrays[case.problem.written[0]].copy()
        return Contender(self.name, poly.__version__, repr(kernel.schedule), timed, lambda: result)

    def close(self) -> None:
        """There is nothing to release."""


def cases() -> list[Case]:
    """The product and the convolution."""
    square = next(case for case in gemm.cases(f32) if isinstance(case.problem, Matmul) and case.size == SQUARE)
    return [square, whole()[LAYER]]


def tuners(cpus: tuple[int, ...]) -> list[Tuner]:
    """The model's choice, Droplet as in `poly.tune`, and strategies for comparison."""
    named = [("model", "model", 1), ("droplet", "droplet", None)]
    named += [(f"{name}, {TRIALS}", name, TRIALS) for name in ("droplet", "random")]
    return [StrategyKernel(name, strategy, trials, cpus) for name, strategy, trials in named]


def run(entrants: Sequence[Tuner], threads: int, announce: Callable[[str], None]) -> list[Result]:
    """Tune and time every case; `announce` is called with what comes next."""
    cpus = process.allowed()
    process.clear_environment()
    try:
        return [
            measure(case, threads, entrants, PeakProbe(cpus, case.dtype, threads), ROUNDS, announce) for case in cases()
        ]
    finally:
        for entrant in entrants:
            entrant.close()
        process.release(cpus)


def text(results: Sequence[Result], entrants: Sequence[Tuner]) -> Iterator[str]:
    """A line for each tuning: its seconds and measurements, and the speed of its result."""
    rows: list[tuple[str, ...]] = [("", "tuned by", "seconds", "measurements", "GFLOP/s", "% peak", "of the model's")]
    for line in lines(results, entrants):
        rows.append(
            (
                line["case"],
                line["tuner"],
                f"{line['tune_seconds']:.1f}",
                str(line["trials"]),
                f"{line['gflops']:.1f}" + " WRONG" * (not line["right"]),
                f"{100 * line['peak_fraction']:.0f}",
                "-" if line["of_the_model"] is None else f"{line['of_the_model']:.3f}",
            )
        )
    yield from aligned(rows, left={0, 1})
    for result in results:
        yield from (f"{name}: not installed ({reason}): skipped" for name, reason in result.missing)
        yield from (f"{result.case.title}: {name} failed: {reason}" for name, reason in result.failed)


def lines(results: Sequence[Result], entrants: Sequence[Tuner]) -> Iterator[dict[str, Any]]:
    """The results of each tuning as values for JSON."""
    efforts = {entrant.name: entrant.efforts for entrant in entrants}
    for result in results:
        model = result.timing("model")
        for timing in result.timings:
            effort = efforts[timing.name][result.case.title]
            yield {
                "case": result.case.title,
                "tuner": timing.name,
                "tune_seconds": effort.seconds,
                "trials": effort.trials,
                "gflops": result.gflops(timing),
                "peak_fraction": result.gflops(timing) / result.peak.median,
                "of_the_model": model.seconds.median / timing.seconds.median if model else None,
                "right": timing.right,
                "version": timing.version,
                "schedule": timing.config,
            }
