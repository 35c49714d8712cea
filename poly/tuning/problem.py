"""The tuning problem: a nest, a target, threads, and a value for every size, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from microkernels.errors import plain
from microkernels.isa import ISA
from poly.analysis.bounds import check
from poly.checks import checked_sizes
from poly.errors import SearchError, SpecError
from poly.ir.nest import Nest, checked_nest
from poly.machine.target import Backend, parse
from poly.records import Key, key_for


@dataclass(frozen=True)
class TuningProblem:
    """A problem to tune. `nest` includes the fixed sizes; `at` has the values at which the open ones are measured."""

    nest: Nest
    target: Backend
    threads: int
    at: tuple[tuple[str, int], ...] = ()

    @property
    def isa(self) -> ISA:
        return self.target.isa

    @property
    def measured(self) -> Nest:
        """The nest with a value for every size."""
        return self.nest.with_sizes(dict(self.at))

    @property
    def title(self) -> str:
        """`matmul M=512 N=512 K=512, avx512, 1 thread`; for a device its name, driver and compute units."""
        sizes = " ".join(f"{name}={value}" for name, value in (*self.nest.fixed, *self.at))
        device, many = self.target.device, "s" if self.threads != 1 else ""
        where = f"{self.threads} thread{many}"
        if device is not None:
            where = f"{device.name} ({device.platform}, driver {device.driver}), {self.threads} compute unit{many}"
        return ", ".join((f"{self.nest.name} {sizes}".rstrip(), self.isa.name, where))


def problem(
    nest: Nest, target: str, threads: int | None, sizes: Mapping[str, int], at: Mapping[str, int] | None
) -> TuningProblem:
    """The problem of tuning a nest.

    Raises:
        SpecError: an argument that is not a nest, an unknown size, or an access outside its array.
        SearchError: a size has no value, or the nest has no iterations or is invalid at these values.
        TargetError, ArgumentError: as for poly.compile.
    """
    checked_nest(nest)
    fixed = nest.for_sizes(sizes) if sizes else nest
    goal = parse(target)
    task = TuningProblem(fixed, goal, goal.threads(threads), tuple(checked_sizes(at, {}, "at").items()))
    measured = task.measured
    if measured.sizes:
        missing = ", ".join(measured.sizes)
        example = ", ".join(f"{size}=512" for size in measured.sizes)
        raise SearchError(
            f"{nest.name} can only be measured at known sizes, and nothing says what {missing} should be. "
            f"Fix them ({example}), or tune one kernel for all sizes by its speed at some: at=dict({example})."
        )
    _check_extents(nest, measured)
    if all(statement.domain.is_empty() for statement in check(measured).statements):
        raise SearchError(f"{task.title}: at these sizes no statement is ever run, so there is nothing to measure.")
    return task


def problem_key(task: TuningProblem, cold: bool) -> Key:
    """The key of a problem's records; cold ones are apart, since poly.compile uses records for warm caches."""
    key = key_for(task.nest, task.isa, task.threads, task.target.device)
    return replace(key, target=f"{key.target}, cold") if cold else key


def problems(
    nests: Iterable[object], target: str, threads: int | None, sizes: Mapping[str, int], at: Mapping[str, int] | None
) -> list[TuningProblem]:
    """The problems of tuning several nests, each given alone or with sizes of its own in a pair.

    The common `sizes` and `at` are for the nests that leave these sizes open. Raises as `problem`; SpecError also for
    something else than a nest or a pair in the list, an empty list, and a size that no nest leaves open.
    """
    pairs = [_pair(item) for item in nests]
    if not pairs:
        raise SpecError("the list of nests to tune is empty: give at least one nest.")
    fixed = [nest.for_sizes(own) if own else nest for nest, own in pairs]
    if len(fixed) == 1:
        return [problem(fixed[0], target, threads, sizes, at)]
    at = checked_sizes(at, {}, "at")
    known = {size for nest in fixed for size in nest.sizes}
    if unknown := [name for name in (*sizes, *at) if name not in known]:
        names = ", ".join(nest.name for nest in fixed)
        raise SpecError(
            f"none of {names} has a size {plain(unknown[0])} that is still open. "
            f"Their open sizes: {', '.join(sorted(known)) or 'none'}."
        )
    return [
        problem(nest, target, threads, *({n: given[n] for n in nest.sizes if n in given} for given in (sizes, at)))
        for nest in fixed
    ]


def _pair(item: object) -> tuple[Nest, dict[str, int]]:
    """A nest of a list, and its own sizes. Raises SpecError."""
    if isinstance(item, tuple) and len(item) == 2:
        return checked_nest(item[0]), checked_sizes(item[1], {})
    return checked_nest(item), {}


def _check_extents(nest: Nest, measured: Nest) -> None:
    """Raise SearchError if an array has a negative extent, or the sizes violate the nest's context."""
    values = ", ".join(f"{name}={value}" for name, value in measured.fixed)
    if measured.context.is_empty():
        raise SearchError(f"{values} violates the conditions of {nest.name}: {nest.context}.")
    for array, given in zip(measured.arrays, nest.arrays, strict=True):
        for extent, expression in zip(array.shape, given.shape, strict=True):
            if extent.constant < 0:
                raise SearchError(f"at {values} the extent {expression} of {array.name} is {extent.constant}.")
