"""Prepare to measure a space: compute the trusted result for comparison with candidates, and the order for the arrays.

The kernels that compute the result use double precision and one thread. The first choice is the loops as written, plain
C without any schedule step or microkernel. If these take too long, the default schedule is used, and if the elements
are independent of each other, as in every contraction, it is checked against plain loops over some rows of the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from codegen.errors import ToolchainError
from codegen.ir.expr import loads
from codegen.ir.integer import Affine
from codegen.toolchain.build import build
from microkernels.dtypes import bf16, f64
from microkernels.isa import ISA
from poly.analysis.bounds import check
from poly.analysis.facts import facts
from poly.autoschedule.default import default_schedule
from poly.autoschedule.spaces.space import Space
from poly.compiled import Compiled, translate
from poly.errors import SearchError
from poly.ir.lookups import index_ranges
from poly.ir.nest import Nest
from poly.ir.sets import function, index, number, set_space, zero
from poly.lowering.arguments import signature
from poly.machine import machine
from poly.machine.cores import allowed_cpus
from poly.measure.child import Child, Died
from poly.measure.data import difference
from poly.measure.orders import Cores, Data, OrderFailed, Setup, Trust, result
from poly.measure.process import choose
from poly.model.host import here
from poly.schedules.schedule import schedule

PLAIN = 30_000_000
"""The most iterations of plain loops: some tenths of a second."""
PATIENCE = 120.0
"""The time limit for the trusted result, in seconds."""

QUEUED = 256
"""The most calls in a row on a device, all of which are enqueued before the first one starts."""

GPU_CACHE = 256 << 20
"""Bytes: at least as large as the last-level caches of the GPUs of 2025."""


@dataclass(frozen=True)
class Rows:
    """Every `step`-th index along a dimension of an array, and the last one."""

    array: str
    dimension: int
    step: int

    def of(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """These rows of the array's values."""
        last = values.shape[self.dimension] - 1
        places = sorted({*range(0, last + 1, self.step), last})
        return np.take(values, places, self.dimension)


@dataclass(frozen=True)
class Trusted:
    """A trusted kernel; `vouching`, if present, computes `rows` of the same result to verify it."""

    made: Compiled
    vouching: Compiled | None = None
    rows: Rows | None = None


@dataclass(frozen=True)
class Recipe:
    """All that it takes to measure a nest, without sets: it can be sent to another machine of the same kind.

    `setup` has the order for the arrays, but neither the folder with the results nor the CPUs, which are those of the
    machine that measures. `settable` are the arrays that may be fresh.
    """

    name: str
    kernel: Trusted
    data: Data
    settable: frozenset[str]
    setup: Setup

    def prepared(self, child: Child, folder: Path) -> Setup:
        """Compute the trusted result in the child, store it in the folder, and return the order for the timing.

        Raises SearchError if that result cannot be computed.
        """
        fresh = self._stored(child, folder)
        cores = Cores(self.setup.cores.threads, choose(allowed_cpus(), self.setup.cores.threads))
        return replace(self.setup, data=replace(self.setup.data, fresh=fresh), cores=cores, results=str(folder))

    def _stored(self, child: Child, folder: Path) -> frozenset[str]:
        """Store the result, and return the arrays that the nest reads only where it has written before."""
        kernel, fresh = self.kernel, self.settable
        if self._compute(kernel.made, fresh, child, folder):
            fresh = frozenset()
            self._compute(kernel.made, fresh, child, folder)
        if kernel.vouching is not None and kernel.rows is not None:
            self._vouch(kernel.vouching, kernel.rows, fresh, child, folder)
        return fresh

    def _vouch(self, made: Compiled, rows: Rows, fresh: frozenset[str], child: Child, folder: Path) -> None:
        """Compare the result with rows computed by plain loops."""
        some = folder / "rows"
        try:
            some.mkdir(exist_ok=True)
            self._compute(made, fresh, child, some)
            found, expected = (rows.of(np.load(result(str(at), rows.array))) for at in (folder, some))
        except OSError as error:
            raise self._error(str(error)) from error
        wrong = difference(f"some rows of {rows.array}", found, expected, self.setup.length)
        if wrong:
            raise self._error(wrong)

    def _compute(self, made: Compiled, fresh: frozenset[str], child: Child, folder: Path) -> bool:
        """Run a kernel on the data and store its output; return whether it read unset elements of `fresh` arrays."""
        try:
            library = build(made.library, made.flags, folder)
            sign = replace(self.data.signature, scratch=made.scratch)
            data = replace(self.data, signature=sign, fresh=fresh)
            order = Trust(str(library), data, Cores(1, choose(allowed_cpus(), 1)), str(folder))
            answer = child.ask(order, PATIENCE)
        except (ToolchainError, Died, OSError) as error:
            raise self._error(str(error)) from error
        if isinstance(answer, OrderFailed):
            raise self._error(answer.reason)
        return bool(cast("tuple[str, ...]", answer))

    def _error(self, reason: str) -> SearchError:
        message = f"{self.name} cannot be measured: the result to compare candidates with has failed."
        return SearchError(f"{message} {reason}")


def wide(nest: Nest) -> Nest:
    """The nest in double precision. Raises SpecError if it accesses elements outside its arrays."""
    exact = {a.name for a in nest.arrays if a.dtype == bf16} - nest.written  # it has fewer values than are drawn
    arrays = tuple(replace(a, dtype=f64) if a.dtype.is_float and a.name not in exact else a for a in nest.arrays)
    return check(replace(nest, arrays=arrays))


def trusted(nest: Nest, isa: ISA, iterations: int) -> Trusted:
    """The kernels for a trustworthy result of a nest without open sizes."""
    if iterations <= PLAIN:
        return Trusted(translate(schedule(nest), isa))
    made = translate(default_schedule(nest, here(isa, 1)), isa)
    rows = some_rows(nest, iterations)
    return Trusted(made) if rows is None else Trusted(made, translate(schedule(only(nest, rows)), isa), rows)


def some_rows(nest: Nest, iterations: int) -> Rows | None:
    """Rows of the result that plain loops can compute in time; None if its elements depend on one another."""
    targets = {s.target.array for s in nest.statements}
    if len(targets) > 1 or any(load.array in targets for s in nest.statements for load in loads(s.expr)):
        return None
    (array,) = targets
    extents = [extent.evaluate({}) for extent in nest.array(array).shape]
    if not extents:
        return None
    dimension = extents.index(max(extents))
    return Rows(array, dimension, min(extents[dimension], 2 * iterations // PLAIN + 1))


def only(nest: Nest, rows: Rows) -> Nest:
    """The nest restricted to the iterations that write these rows."""
    dimensions = len(nest.array(rows.array).shape)
    last = nest.array(rows.array).shape[rows.dimension].evaluate({}) - 1
    space = set_space((), dimensions, rows.array)
    place = index(space, rows.dimension)
    is_last = place.eq_set(function(space, Affine.of(last)))
    kept = is_last.union(place.mod_val(number(rows.step)).eq_set(zero(space)))
    return replace(
        nest,
        statements=tuple(
            replace(s, domain=s.relation(s.target).intersect_range(kept).domain()) for s in nest.statements
        ),
    )


def recipe(space: Space, seed: int, cold: bool) -> Recipe:
    """How to measure a space's nest."""
    nest = wide(space.nest.with_sizes(dict(space.sizes)))
    known = facts(nest)
    on_device = space.device is not None
    calls = min(known.calls, QUEUED) if on_device else known.calls
    looked_up = index_ranges(space.nest, dict(space.sizes))
    return Recipe(
        name=nest.name,
        kernel=trusted(nest, machine().isa if on_device else space.isa, known.iterations),
        data=Data(signature(nest, True).in_parts, (), seed, known.delicate, frozenset(), index_ranges(nest, {})),
        settable=known.settable,
        setup=Setup(
            data=Data(
                signature(space.nest, not on_device).in_parts, space.sizes, seed, known.delicate, frozenset(), looked_up
            ),
            cores=Cores(space.threads, ()),
            results="",
            length=known.length,
            calls=1 if cold else calls,
            flush=2 * (_cached(space) if cold else 0),
            device=space.device.label if space.device is not None else "",
        ),
    )


def _cached(space: Space) -> int:
    """The size in bytes of the largest cache of the CPU or GPU that runs the space's schedules."""
    gpu = space.device is not None and space.device.isa.is_gpu
    return GPU_CACHE if gpu else max(cache.bytes for cache in machine().caches)
