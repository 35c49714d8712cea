"""The tuning problem: a nest, a target, threads, and a value for every size, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from microkernels.isa import ISA
from poly.analysis.bounds import check
from poly.checks import checked_sizes
from poly.errors import SearchError
from poly.ir.nest import Nest, checked_nest
from poly.machine.target import Backend, parse


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
    fixed = nest.with_sizes(sizes) if sizes else nest
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


def _check_extents(nest: Nest, measured: Nest) -> None:
    """Raise SearchError if an array has a negative extent, or the sizes violate the nest's context."""
    values = ", ".join(f"{name}={value}" for name, value in measured.fixed)
    if measured.context.is_empty():
        raise SearchError(f"{values} violates the conditions of {nest.name}: {nest.context}.")
    for array, given in zip(measured.arrays, nest.arrays, strict=True):
        for extent, expression in zip(array.shape, given.shape, strict=True):
            if extent.constant < 0:
                raise SearchError(f"at {values} the extent {expression} of {array.name} is {extent.constant}.")
