"""A user's nest as a problem: data for any nest, and a result in double precision to check against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Failed
from benchmarks.problems.program import Program
from microkernels.cached import cached_property
from microkernels.dtypes import DTYPES, DType
from poly.analysis.facts import Facts, facts
from poly.commands.nestfile import load_nest
from poly.compiled import Compiled
from poly.errors import SpecError
from poly.ir.lookups import index_ranges
from poly.ir.nest import Nest
from poly.kernel import Kernel
from poly.lowering.arguments import signature
from poly.machine import machine
from poly.measure.data import Arena, difference
from poly.measure.orders import Data
from poly.measure.trusted import trusted, wide

SEED = 0


@dataclass(frozen=True)
class OwnNest(Program):
    """A nest whose results are compared with those of its loops as written, in double precision.

    Arrays that it only writes start with zeros, all others with random values.
    """

    @cached_property
    def facts(self) -> Facts:
        return facts(self.fixed())

    @property
    def calls(self) -> int:
        return self.facts.calls

    @property
    def reduction(self) -> int:
        return self.facts.length

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        """The arguments; scalars are arrays without dimensions."""
        nest = self.fixed()
        indices = index_ranges(nest, {})
        takes = signature(nest, False)
        arena = Arena(Data(takes, (), SEED, self.facts.delicate, frozenset(), indices))
        for buffer in takes.outputs:
            if buffer.kind == "out":
                arena.values[buffer.name][...] = 0
        return tuple(np.asarray(arena.values[a.name], a.dtype.numpy_name) for a in nest.arguments)

    def expected(self, arrays: tuple[Array, ...]) -> tuple[NDArray[np.float64], ...]:
        """The written arrays after a call. Raises Failed if plain loops over some rows do not confirm them."""
        nest = wide(self.fixed())
        plan = trusted(nest, machine().isa, self.facts.iterations)
        made = _run(nest, plan.made, arrays)
        if plan.vouching is not None and plan.rows is not None:
            place = [array.name for array in nest.arguments].index(plan.rows.array)
            some = _run(nest, plan.vouching, arrays)
            found, wanted = (plan.rows.of(values[place]) for values in (made, some))
            wrong = difference(f"some rows of {plan.rows.array}", found, wanted, self.facts.length)
            if wrong:
                raise Failed(f"the result to compare with is wrong: {wrong}")
        return tuple(made[place].astype(np.float64) for place in self.written)


def _run(nest: Nest, made: Compiled, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """The arguments after a call with copies of these, in the types of a nest."""
    copies = tuple(np.array(given, a.dtype.numpy_name) for a, given in zip(nest.arguments, arrays, strict=True))
    Kernel(nest, machine().isa, 1, None, made)(*(a if a.ndim else a.item() for a in copies))
    return copies


def own_case(where: str, sizes: Mapping[str, int], dtype: str | None) -> Case:
    """The case of a nest at FILE:NAME. Raises SpecError if there is none, or if it leaves a size open."""
    make = partial(loaded, where, dtype)
    nest = make().with_sizes(sizes)
    if nest.sizes:
        options = " ".join(f"--size {name}=…" for name in nest.sizes)
        raise SpecError(
            f"{nest.name} leaves the size{'s' * (len(nest.sizes) > 1)} {', '.join(nest.sizes)} open: {options}"
        )
    name = where.rpartition(":")[2]
    size = " ".join(f"{size}={value}" for size, value in nest.fixed)
    written = next(array.dtype for array in nest.arguments if array.name in nest.written)
    return Case(name, size, written, OwnNest(name, make, dict(sizes)), make, dict(sizes))


def loaded(where: str, dtype: str | None) -> Nest:
    """The nest at FILE:NAME on the parts of complex arrays, with floats of another type if one is given."""
    nest = load_nest(where)
    types = {a.name: DTYPES[dtype] if dtype is not None and a.dtype.is_float else a.dtype for a in nest.arrays}
    return replace(nest, arrays=tuple(replace(a, dtype=types[a.name], is_complex=False) for a in nest.arrays))
