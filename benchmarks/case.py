"""What is measured: a problem, stated for poly and peers alike, and the loops that poly compiles for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, as_by_numpy
from microkernels.dtypes import DType

ALIGNED = " aligned"
"""Ends the size of a case on aligned arrays."""


class Problem(Protocol):
    """A computation on arrays, in the terms of its field; peers look at its type and take those that they support."""

    @property
    def flop(self) -> int:
        """Additions and multiplications of the plain algorithm."""
        ...

    @property
    def reduction(self) -> int:
        """The number of rounded operations behind one element of the result, which determines its error."""
        ...

    @property
    def written(self) -> tuple[int, ...]:
        """Positions of the arrays that are written; the first of them holds the result."""
        ...

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        """Fresh arrays, the same on every call, in the order of the nest's arguments."""
        ...

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64] | tuple[NDArray[np.float64], ...]:
        """The result in float64, for `arrays` before the computation; of a whole program all results."""
        ...

    def traffic(self, dtype: DType) -> int:
        """The minimum memory traffic in bytes, from cold caches: each input and output once."""
        ...


@dataclass(frozen=True)
class Case:
    """A line of the benchmark. `nest` makes the loops, `sizes` are their sizes; `--quick` runs only `quick` cases.

    `aligned` arrays start on cache lines, others where NumPy's own arrays do. A `cold` case is timed one call at a
    time, by threads that slept. An array that is `packed` we pack before the clock starts, as some peers do.
    """

    workload: str
    size: str
    dtype: DType
    problem: Problem
    nest: Callable[[], Any]
    sizes: Mapping[str, int] = field(default_factory=dict)
    quick: bool = False
    aligned: bool = False
    cold: bool = False
    packed: str | None = None

    def arrays(self) -> tuple[Array, ...]:
        """Fresh arrays, the same on every call and for every contender."""
        arrays = self.problem.arrays(self.dtype)
        return arrays if self.aligned else as_by_numpy(arrays)

    def on_cache_lines(self) -> Case:
        """The same case on aligned arrays."""
        return replace(self, size=self.size + ALIGNED, aligned=True)

    @property
    def title(self) -> str:
        return f"{self.workload} {self.size} {self.dtype.name}"
