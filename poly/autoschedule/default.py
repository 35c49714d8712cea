"""The default schedule of a nest: contractions through microkernels, whatever else by its dependences.

    for i: for j:                         for i: for j:
      C[i, j] = 0                           C[i, j] = 0          (taken over by the kernel's first visit)
      for k:                      ->      …tiles, copies and the microkernel of the second statement
        C[i, j] += A[i, k] * B[k, j]

Each contraction gets loops of its own where the dependences allow it. All that is done is steps of a schedule, each
checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from microkernels.dtypes import f16
from microkernels.group_kernel import GroupKernel
from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA, is_gpu
from poly.analysis.contraction import recognise
from poly.autoschedule.defaults import dependence_schedule, vectorized
from poly.autoschedule.defaults.attempt import attempt
from poly.autoschedule.defaults.gpu import gpu_schedule
from poly.autoschedule.defaults.gpu.contraction import gpu_contraction_steps
from poly.autoschedule.plan import contraction_steps
from poly.errors import CostWarning
from poly.ir.budget import TooCostly, limited
from poly.ir.coordinates import linear
from poly.ir.nest import Nest, Statement
from poly.ir.paths import paths
from poly.ir.tree import Band, statements
from poly.model import Caches, Choice
from poly.model.rates import Rates, nominal
from poly.schedules.matching import zeroing
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Distribute, Step

AFFORDABLE = 6_000_000
"""The operations that isl may take for the choice of a schedule: some seconds."""


def default_schedule(nest: Nest, isa: ISA, caches: Caches, threads: int, rates: Rates | None = None) -> Schedule:
    """The schedule that poly.compile takes where none is given; nothing is measured.

    It is the loops as written, and a CostWarning says so, where finding a better one would take isl too long. `rates`
    are those of the machine, where they are known.
    """
    try:
        with limited(AFFORDABLE):
            return _chosen(nest, isa, caches, threads, rates or nominal(isa))
    except TooCostly:
        problem = f"the loops of {nest.name} run as they are written: a better schedule takes too much work to find"
        warnings.warn(f"{problem}. Remedy: give one, poly.compile(…, schedule=…).", CostWarning, stacklevel=2)
        return schedule(nest)


def _chosen(nest: Nest, isa: ISA, caches: Caches, threads: int, rates: Rates) -> Schedule:
    if is_gpu(isa):
        return gpu_schedule(gpu_contracted(nest, isa, {}), isa)
    made = contracted(nest, isa, caches, threads, rates, {})
    return dependence_schedule(nest, isa, caches, threads) if not made.steps else made


def contracted(
    nest: Nest, isa: ISA, caches: Caches, threads: int, rates: Rates, choices: Mapping[str, Choice]
) -> Schedule:
    """The schedule with microkernels for all contractions that the dependences and loops allow; no steps without any.

    `choices` replaces the model's for some statements.
    """

    def steps(statement: Statement, loops: Mapping[str, str]) -> list[Step] | None:
        if nest.array(statement.target.array).dtype == f16:
            return None  # no microkernel of one core computes with halves
        initial, choice = zeroing(nest, statement), choices.get(statement.name)
        return contraction_steps(nest, statement, loops, isa, caches, threads, initial, rates, choice)

    return contracted_by(nest, steps)


def gpu_contracted(nest: Nest, isa: DeviceISA, kernels: Mapping[str, GroupKernel]) -> Schedule:
    """The schedule with microkernels of work-groups for all contractions that the dependences and loops allow.

    `kernels` replaces those of the rule for some statements.
    """

    def steps(statement: Statement, loops: Mapping[str, str]) -> list[Step] | None:
        initial, kernel = zeroing(nest, statement), kernels.get(statement.name)
        return gpu_contraction_steps(nest, statement, loops, isa, initial, kernel)

    return _each_contraction(nest, steps)


def contracted_by(nest: Nest, steps_of: Callable[[Statement, Mapping[str, str]], list[Step] | None]) -> Schedule:
    """As `contracted`, with the steps that `steps_of` makes for a statement and its loops, by iterator."""
    made = _each_contraction(nest, steps_of)
    return vectorized(made) if made.steps else made


def _each_contraction(nest: Nest, steps_of: Callable[[Statement, Mapping[str, str]], list[Step] | None]) -> Schedule:
    """The schedule with these steps for all contractions that have them, as far as they are legal."""
    made = schedule(nest)
    for statement in nest.statements:
        alone = isolated(made, statement)
        if alone is not None:
            base, loops = alone
            steps = steps_of(statement, loops)
            made = (attempt(base, steps) if steps else None) or made
    return made


def isolated(made: Schedule, statement: Statement) -> tuple[Schedule, dict[str, str]] | None:
    """The schedule with loops of its own for a contraction, and their names by iterator.

    None where it is no contraction, or the dependences or the loops don't allow it.
    """
    if recognise(made.nest, statement) is None:
        return None
    alone = _distributed(made, statement)
    loops = _loops(alone, statement) if alone else None
    return None if alone is None or loops is None else (alone, loops)


def _distributed(made: Schedule, statement: Statement) -> Schedule | None:
    """The schedule with loops of its own for a statement; None where the dependences forbid it."""
    alone: Schedule | None = made
    while alone is not None:
        around = [entry for entry in paths(alone.tree)[statement.name] if isinstance(entry, Band)]
        shared = next((band for band in around if len(statements(band)) > 1), None)
        if shared is None:
            return alone
        alone = attempt(alone, [Distribute(shared.name)])
    return None


def _loops(made: Schedule, statement: Statement) -> dict[str, str] | None:
    """The names of the loops that count the statement's iterators, outermost first.

    None where a loop counts something else.
    """
    names: dict[str, str] = {}
    for band in paths(made.tree)[statement.name]:
        if not isinstance(band, Band):
            continue
        value = linear(statement.iterators, band.function(statement.name))
        if value is None or len(value.terms) != 1 or value.terms[0][1] != 1 or value.constant:
            return None
        names[value.terms[0][0]] = band.name
    return names
