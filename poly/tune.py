"""`poly.tune`: a kernel with the fastest schedule that a search finds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, overload

from poly.checks import checked_sizes
from poly.errors import SearchWarning
from poly.function import Function
from poly.ir.nest import Nest, checked_nest
from poly.names import check_sizes_meant

if TYPE_CHECKING:
    from poly.compilation import CTarget, OpenCLTarget
    from poly.search.events import Strategy
    from poly.tuning.outcome import TunedKernel, TunedOpenCLKernel
    from poly.tuning.report import TrialReport


@overload
def tune(
    nest: Nest,
    *,
    strategy: str | Strategy = "droplet",
    trials: int | None = None,
    seconds: float | None = None,
    target: CTarget = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    at: Mapping[str, int] | None = None,
    start: Literal["model", "origin"] = "model",
    cold: bool = False,
    seed: int = 0,
    records: bool = True,
    show: bool | None = None,
    on_trial: Callable[[TrialReport], object] | None = None,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    **more: int,
) -> TunedKernel: ...


@overload
def tune(
    nest: Nest,
    *,
    strategy: str | Strategy = "droplet",
    trials: int | None = None,
    seconds: float | None = None,
    target: OpenCLTarget,
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    at: Mapping[str, int] | None = None,
    start: Literal["model", "origin"] = "model",
    cold: bool = False,
    seed: int = 0,
    records: bool = True,
    show: bool | None = None,
    on_trial: Callable[[TrialReport], object] | None = None,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    **more: int,
) -> TunedOpenCLKernel: ...


@overload
def tune(
    nest: Nest,
    *,
    strategy: str | Strategy = "droplet",
    trials: int | None = None,
    seconds: float | None = None,
    target: str,
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    at: Mapping[str, int] | None = None,
    start: Literal["model", "origin"] = "model",
    cold: bool = False,
    seed: int = 0,
    records: bool = True,
    show: bool | None = None,
    on_trial: Callable[[TrialReport], object] | None = None,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    **more: int,
) -> TunedKernel | TunedOpenCLKernel: ...


def tune(
    nest: Nest,
    *,
    strategy: str | Strategy = "droplet",
    trials: int | None = None,
    seconds: float | None = None,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    at: Mapping[str, int] | None = None,
    start: Literal["model", "origin"] = "model",
    cold: bool = False,
    seed: int = 0,
    records: bool = True,
    show: bool | None = None,
    on_trial: Callable[[TrialReport], object] | None = None,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    **more: int,
) -> TunedKernel | TunedOpenCLKernel:
    """Search for the fastest schedule of a nest by measuring, and compile it.

        kernel = poly.tune(matmul, M=512, N=512, K=512, trials=40)

    The result is stored as a tuning record: from then on `poly.compile` uses it, searches for other sizes of the nest
    start from it, and the same call continues where this one ended (trials in the records count as trials, and are not
    measured again). Ctrl-C ends the search: the best kernel so far is returned, with a SearchWarning. `kernel.tuning`
    describes the search.

    Args:
        strategy: one of `poly.search.strategies.strategies()`, or a generator function of your own.
        trials: the most schedules to judge.
        seconds: the time after which no further measurement begins. Without either budget the search ends when it
            expects to gain less than 1 %, and after 128 trials at the latest.
        target, threads, sizes, more, compiler, flags: as for `poly.compile`.
        at: values for the open sizes, at which the nest is measured; the kernel serves all values.
        start: where to begin: the model's choice, or the un-optimised corner of the space.
        cold: whether caches are flushed before each call.
        seed: the seed of the strategy's random choices, and of the data.
        records: whether tuning records are read and written.
        show: whether to show progress; by default, if stderr is a terminal.
        on_trial: a function that is called after each trial with a `poly.tuning.report.TrialReport`: the schedule, its
            seconds or failure, the best so far. The trial is stored before. If the function raises, the tuning ends and
            raises the same; `KeyboardInterrupt` ends it as Ctrl-C does, with the best so far. Either way the same call
            goes on from the records.

    Raises:
        SearchError: a budget of zero or less, an unknown strategy or start, a size without a value or outside the
            range that the nest allows, a space without a legal point, or no point that could be measured, with the
            reasons.
        SpecError: not a nest, an unknown size, or an access outside its array.
        TargetError, ArgumentError, ToolchainError: as `poly.compile`; ArgumentError also for an invalid option.
        RecordError: the store of records cannot be written.
    """
    from codegen.compiler import using
    from poly.compilation import checked_toolchain
    from poly.machine.target import parse
    from poly.tuning.options import Options
    from poly.tuning.session import tuned

    check_sizes_meant(more, checked_nest(nest).open_or_fixed, tune)
    options = Options(strategy, trials, seconds, start, cold, seed, records, show, on_trial)
    with using(checked_toolchain(parse(target), compiler, flags)):
        kernel = tuned(nest, options, target=target, threads=threads, sizes=checked_sizes(sizes, more), at=at)
    if isinstance(nest, Function):
        nest.forget()
    if kernel.tuning.interrupted:
        warnings.warn(kernel.tuning.interruption(), SearchWarning, stacklevel=2)
    return kernel
