"""Random products of two arrays with any affine subscripts, some with output elements that several loops reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from contractions import PATTERN, guarded
from hypothesis import strategies as st

import poly
from poly import DType, Nest, f32, f64
from poly.frontends.python import parse_text
from poly.frontends.source import Source

Array = np.ndarray[Any, Any]
Index = tuple[tuple[str, int], ...]
"""A sum of loops, each times a factor."""

LOOPS = "ijklm"


@dataclass(frozen=True)
class Scatter:
    """`Y[…] += A[…] * B[…]` over a box of loops, or over the part of it where `first + second < limit`.

    Each access is a tuple of indices; `loops` are from outside in. Y is set to 0 before if `zeroed`.
    """

    loops: tuple[str, ...]
    extents: tuple[int, ...]
    output: tuple[Index, ...]
    left: tuple[Index, ...]
    right: tuple[Index, ...]
    zeroed: bool = False
    clipped: bool = False
    dtype: DType = f32

    @property
    def sizes(self) -> dict[str, int]:
        return {f"N{loop}": extent for loop, extent in zip(self.loops, self.extents, strict=True)}

    @cached_property
    def nest(self) -> Nest:
        """The loops as written, with a symbolic size for each."""
        kind = self.dtype.name
        shapes = {name: ", ".join(map(_length, access)) for name, access in self.accesses.items()}
        lengths = ", ".join(f"N{loop}" for loop in self.loops)
        arguments = ", ".join(f"{name}: {kind}[{shape}]" for name, shape in shapes.items())
        lines = [f"def scatter({arguments}, L: f32[{lengths}]):"]
        if self.zeroed:
            for at, index in enumerate(self.output):
                lines.append(f"{'    ' * (at + 1)}for y{at} in range({_length(index)}):")
            inside = "    " * (len(self.output) + 1)
            lines.append(f"{inside}Y[{', '.join(f'y{at}' for at in range(len(self.output)))}] = 0")
        for at, loop in enumerate(self.loops):
            lines.append(f"{'    ' * (at + 1)}for {loop} in range(N{loop}):")
        inside = "    " * (len(self.loops) + 1)
        if self.clipped:
            lines.append(f"{inside}if {self.loops[0]} + {self.loops[-1]} < N{self.loops[-1]} + 1:")
            inside += "    "
        terms = {name: f"{name}[{', '.join(map(_sum, access))}]" for name, access in self.accesses.items()}
        lines.append(f"{inside}{terms['Y']} += {terms['A']} * {terms['B']}")
        names = {name: poly.sizes(name) for name in self.sizes}
        return parse_text(Source("\n".join(lines) + "\n", "scatter.py", 1), {**names, "f32": f32, "f64": f64})

    @property
    def accesses(self) -> dict[str, tuple[Index, ...]]:
        return {"A": self.left, "B": self.right, "Y": self.output}

    def arrays(self) -> tuple[Array, Array, Array]:
        """Random A and B; Y is full of NaN if the nest sets it to 0."""
        random = np.random.default_rng(0)
        kind = self.dtype.numpy_name
        left, right, output = (
            (random.random([self._extent(index) for index in access]) - 0.25).astype(kind)
            for access in self.accesses.values()
        )
        return left, right, np.full_like(output, np.nan) if self.zeroed else output

    def _extent(self, index: Index) -> int:
        return sum(factor * (self.sizes[f"N{loop}"] - 1) for loop, factor in index) + 1

    def expected(self, left: Array, right: Array, output: Array) -> tuple[Array, Array]:
        """The result in float64, and a bound on the rounding error."""
        grid = dict(zip(self.loops, np.indices(self.extents).reshape(len(self.loops), -1), strict=True))
        if self.clipped:
            first, last = self.loops[0], self.loops[-1]
            inside = grid[first] + grid[last] < self.extents[-1] + 1
            grid = {loop: values[inside] for loop, values in grid.items()}

        def at(access: tuple[Index, ...]) -> tuple[Any, ...]:
            return tuple(sum(factor * grid[loop] for loop, factor in index) for index in access)

        products = left.astype(np.float64)[at(self.left)] * right.astype(np.float64)[at(self.right)]
        start = np.zeros(output.shape) if self.zeroed else output.astype(np.float64)
        total, scale, count = start.copy(), np.abs(start), np.ones(output.shape)
        np.add.at(total, at(self.output), products)
        np.add.at(scale, at(self.output), np.abs(products))
        np.add.at(count, at(self.output), 1.0)
        return total, (count + 4) * np.finfo(self.dtype.numpy_name).eps * scale


def _sum(index: Index) -> str:
    return " + ".join(loop if factor == 1 else f"{factor} * {loop}" for loop, factor in index)


def _length(index: Index) -> str:
    """The extent of a dimension, in the sizes: one more than the greatest sum."""
    total = " + ".join(f"N{loop}" if factor == 1 else f"{factor} * N{loop}" for loop, factor in index)
    rest = sum(factor for _, factor in index) - 1
    return f"{total} - {rest}" if rest else total


@st.composite
def scatters(draw: st.DrawFn, largest: int = 4000) -> Scatter:
    """Two to five loops of awkward extents; each index of the output is a sum of one or two of them."""
    loops = draw(st.permutations(LOOPS[: draw(st.integers(2, 5))]))
    output = draw(_accesses(loops, draw(st.integers(1, 3))))
    left, right = (draw(_accesses(loops, draw(st.integers(1, 3)), simple=True)) for _ in range(2))
    extents = [1 for _ in loops]
    for at in draw(st.permutations(range(len(loops)))):
        room = largest // np.prod(extents, dtype=int)
        extents[at] = draw(st.sampled_from([n for n in (1, 2, 3, 5, 8, 17, 33, 67) if n <= room]))
    return Scatter(
        tuple(loops),
        tuple(extents),
        output,
        left,
        right,
        draw(st.booleans()),
        draw(st.integers(0, 3)) == 0,
        draw(st.sampled_from([f32, f64])),
    )


@st.composite
def _accesses(draw: st.DrawFn, loops: list[str], rank: int, simple: bool = False) -> tuple[Index, ...]:
    names = draw(st.lists(st.sampled_from(loops), min_size=1, max_size=min(len(loops), rank + 1), unique=True))
    rank = min(rank, len(names))
    groups: list[list[str]] = [[name] for name in names[:rank]]
    for name in names[rank:]:
        groups[draw(st.integers(0, rank - 1))].append(name)
    factors = st.sampled_from([1, 1, 1, 2] if not simple else [1, 1, 1, 1, 1, 2])
    return tuple(tuple((name, draw(factors)) for name in group) for group in groups)


def check_scatter(kernel: Callable[..., Any], scatter: Scatter, **options: int) -> None:
    """Assert that the kernel agrees with float64 sums up to rounding, and changes nothing around the arrays."""
    values = scatter.arrays()
    (left, _), (right, _) = (guarded(v, np.nan) for v in values[:2])
    output, whole = guarded(values[2], PATTERN)
    before = whole.copy()
    kernel(left, right, output, np.zeros(scatter.extents, np.float32), **options)
    exact, bound = scatter.expected(*values)
    assert (np.abs(output - exact) <= bound).all(), f"off by {np.nanmax(np.abs(output - exact))}"
    outside = np.ones(whole.size, bool)
    start = (whole.size - output.size) // 2
    outside[start : start + output.size] = False
    np.testing.assert_array_equal(whole[outside], before[outside])


POLYNOMIALS = Scatter(
    ("i", "j", "k"), (5, 8, 3), ((("i", 1), ("j", 1)),), ((("i", 1),), (("k", 1),)), ((("k", 1),), (("j", 1),))
)
TRANSPOSED = Scatter(
    ("p", "q", "k", "c", "r", "s"),
    (5, 6, 17, 8, 3, 3),
    ((("p", 1), ("r", 1)), (("q", 1), ("s", 1)), (("k", 1),)),
    ((("p", 1),), (("q", 1),), (("c", 1),)),
    ((("c", 1),), (("k", 1),), (("r", 1),), (("s", 1),)),
)
