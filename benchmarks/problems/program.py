"""A whole program as a problem: its loops, its data, and its results by a compiler that keeps the order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from math import prod

import islpy as isl
import numpy as np
from numpy.typing import NDArray

from benchmarks import toolchain
from benchmarks.arrays import Array, random
from benchmarks.problems.c_call import as_written
from codegen.ir.expr import Load
from microkernels.dtypes import DType
from poly.analysis.work import work
from poly.ir.counting import count
from poly.ir.nest import Nest, Statement

Fill = Callable[[tuple[int, ...], DType, int], Array]
"""Makes an array of a shape and a type; the number differs between the arrays of a program."""
Part = tuple[slice, ...]

STRICT = ("-O1", "-march=native", "-ffp-contract=off")
"""Flags by which a compiler changes no order, and rounds each operation by itself."""

CHAIN = 10**6
"""The most operations that may round an element one after the other, in a recurrence through all of them."""


@dataclass(frozen=True)
class Program:
    """A problem that is a whole program. Each call starts from the same data, and all that it writes is checked.

    `nest` makes the loops, with open sizes. `fills` make the arrays by name, others are random in [-1, 1); `scalars`
    are passed by value. `operations` are the published ones of a program that is mostly contractions; in others they
    are counted. `determined` are the parts of results that the data determine, where that is not all. `condition` is
    by how much the data magnify rounding errors.
    """

    name: str
    nest: Callable[[], Nest]
    sizes: Mapping[str, int]
    fills: Mapping[str, Fill] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)
    operations: int | None = None
    determined: Mapping[str, Part] = field(default_factory=dict)
    condition: float = 1.0

    def fixed(self) -> Nest:
        """The loops, with fixed sizes."""
        return self.nest().with_sizes(self.sizes)

    @property
    def calls(self) -> int:
        """How many calls in a row may go on from what the last one left; the next one starts from the first data."""
        return 1

    @property
    def flop(self) -> int:
        known = work(self.fixed()) if self.operations is None else None
        return max(1, known.flop if known else self.operations or 1)

    @property
    def reduction(self) -> int:
        nest = self.fixed()
        elements = sum(prod(e.constant for e in nest.array(name).shape) for name in nest.written if _passed(nest, name))
        return int(max(self.flop // elements, min(self.flop, CHAIN)) * self.condition**2)

    @property
    def written(self) -> tuple[int, ...]:
        nest = self.fixed()
        return tuple(n for n, array in enumerate(nest.arguments) if array.name in nest.written)

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        """The arguments; scalars are arrays without dimensions."""
        return tuple(
            self._argument(array.name, tuple(e.constant for e in array.shape), array.dtype, array.kind, seed)
            for seed, array in enumerate(self.fixed().arguments)
        )

    def _argument(self, name: str, shape: tuple[int, ...], dtype: DType, kind: str, seed: int) -> Array:
        if kind == "scalar":
            return np.asarray(self.scalars[name], dtype.numpy_name)
        return self.fills.get(name, random)(shape, dtype, seed)

    def results(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """The written parts that the data determine."""
        names = [array.name for array in self.fixed().arguments]
        return tuple(arrays[n][self.determined.get(names[n], ...)] for n in self.written)

    def expected(self, arrays: tuple[Array, ...]) -> tuple[NDArray[np.float64], ...]:
        """The results of the loops as written, in C."""
        as_written(self.fixed(), arrays, toolchain.host(), STRICT).timed()(1)
        return tuple(array.astype(np.float64) for array in self.results(arrays))

    def traffic(self, dtype: DType) -> int:
        nest = self.fixed()
        read = [(s, access) for s in nest.statements for access in s.reads]
        written = [(s, s.target) for s in nest.statements]
        arrays = [array for array in nest.arguments if array.kind == "array"]
        return sum(array.dtype.size * _elements(array.name, way) for way in (read, written) for array in arrays)


def _elements(name: str, accesses: Iterable[tuple[Statement, Load]]) -> int:
    """The number of an array's elements that some accesses touch."""
    touched = [statement.relation(access).range() for statement, access in accesses if access.array == name]
    return count(reduce(isl.Set.union, touched)).elements if touched else 0


def _passed(nest: Nest, name: str) -> bool:
    return nest.array(name).kind != "local"
