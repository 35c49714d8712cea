"""`poly.tune`: a kernel with the fastest schedule that a search finds, for one nest or for several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Literal, overload

from microkernels.errors import shown
from poly.checks import checked_sizes, is_collection
from poly.errors import SearchError, SearchWarning, warn
from poly.function import Function
from poly.ir.nest import Nest, checked_nest
from poly.names import check_sizes_meant

if TYPE_CHECKING:
    from distributed import Client

    from poly.compilation import CTarget, OpenCLTarget
    from poly.search.events import Strategy
    from poly.tuning.outcome import TunedKernel, TunedOpenCLKernel
    from poly.tuning.report import TrialReport


@overload
def tune(
    nest: Nest,
    *,
    weights: None = None,
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
    workers: str | Client | None = None,
    **more: int,
) -> TunedKernel: ...


@overload
def tune(
    nest: Nest,
    *,
    weights: None = None,
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
    workers: str | Client | None = None,
    **more: int,
) -> TunedOpenCLKernel: ...


@overload
def tune(
    nest: Nest,
    *,
    weights: None = None,
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
    workers: str | Client | None = None,
    **more: int,
) -> TunedKernel | TunedOpenCLKernel: ...


@overload
def tune(
    nest: Sequence[Nest | tuple[Nest, Mapping[str, int]]],
    *,
    weights: Sequence[float] | None = None,
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
    workers: str | Client | None = None,
    **more: int,
) -> list[TunedKernel | TunedOpenCLKernel]: ...


def tune(
    nest: Nest | Sequence[Nest | tuple[Nest, Mapping[str, int]]],
    *,
    weights: Sequence[float] | None = None,
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
    workers: str | Client | None = None,
    **more: int,
) -> TunedKernel | TunedOpenCLKernel | list[TunedKernel | TunedOpenCLKernel]:
    """Search for the fastest schedule of a nest by measuring, and compile it.

        kernel = poly.tune(matmul, M=512, N=512, K=512, trials=40)
        kernels = poly.tune([matmul, (smooth, {"M": 100})], M=512, N=512, K=512, seconds=60)

    The result is stored as a tuning record: from then on `poly.compile` uses it, searches for other sizes of the nest
    start from it, and the same call continues where this one ended (trials in the records count as trials, and are not
    measured again). Ctrl-C ends the search: the best kernel so far is returned, with a SearchWarning. `kernel.tuning`
    describes the search.

    Several nests in a list share the budget, and the kernels come in a list of the same order. Each nest gets one batch
    of trials; then the next one goes where it is expected to save most of the nests' time, the sum of each one's time
    per call times its weight. A nest stands alone or in a pair with sizes of its own; sizes given for all go to the
    nests that have them. Ctrl-C ends all searches, if each has a result.

    Args:
        weights: for several nests, how often each is called; by default once.
        strategy: one of `poly.search.strategies.strategies()`, or a generator function of your own.
        trials: the most schedules to judge, of all nests together.
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
        workers: the address of a `dask.distributed` cluster, or its client: its workers build the candidates, with
            their usual compiler, and those on machines like this one measure them.

    Raises:
        SearchError: a budget of zero or less, an unknown strategy or start, a size without a value or outside the
            range that the nest allows, a space without a legal point, or no point that could be measured, with the
            reasons; a cluster that cannot be reached, has no worker that fits, or has one with another poly.
        SpecError: not a nest, an unknown size, or an access outside its array.
        TargetError, ArgumentError, ToolchainError: as `poly.compile`; ArgumentError also for an invalid option.
        RecordError: the store of records cannot be written.
    """
    from codegen.toolchain.compiler import using
    from poly.compilation import checked_toolchain
    from poly.machine.target import parse
    from poly.tuning.options import Options
    from poly.tuning.outcome import interruption
    from poly.tuning.problem import problems
    from poly.tuning.together import tuned

    options = Options(strategy, trials, seconds, start, cold, seed, records, show, on_trial)
    several = is_collection(nest)
    nests: list[Any] = list(nest) if is_collection(nest) else [nest]
    if not several:
        check_sizes_meant(more, checked_nest(nest).open_or_fixed, tune)
    with using(checked_toolchain(parse(target), compiler, flags)):
        tasks = problems(nests, target, threads, checked_sizes(sizes, more), at)
        calls = _checked_weights(weights, len(tasks) if several else None)
        kernels = tuned(tasks, options, calls, workers=workers)
    for item in nests:
        own = item[0] if isinstance(item, tuple) else item
        if isinstance(own, Function):
            own.forget()
    found = [kernel for kernel in kernels if not isinstance(kernel, SearchError)]
    if any(kernel.tuning.interrupted for kernel in found):
        warn(interruption([kernel.tuning for kernel in found]), SearchWarning)
    for kernel in kernels:
        if isinstance(kernel, SearchError):
            raise kernel
    return found if several else found[0]


def _checked_weights(weights: Any, count: int | None) -> list[float]:
    """The weights of `count` nests; none if there are none. Raises SearchError."""
    if weights is None:
        return []
    if count is None:
        raise SearchError("weights are for a list of nests; a single nest has all of the budget.")
    given = list(weights) if is_collection(weights) else [weights]
    if len(given) != count or not all(_is_weight(weight) for weight in given):
        raise SearchError(f"weights must be {count} numbers above 0, one for each nest, not {shown(weights)}.")
    return [float(weight) for weight in given]


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf
