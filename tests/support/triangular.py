"""Random matrix products over part of their iterations: each two of the three loops may bound each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
LOOPS = "ijk"
FACTOR, SCALE = -1.5, 0.75


@dataclass(frozen=True)
class Bound:
    """`first + low <= second <= first + high`; a None bounds nothing."""

    low: int | None = None
    high: int | None = None

    def holds(self, first: int, second: int) -> Array:
        """Whether the bound holds, for all values of the first and the second loop."""
        apart = np.arange(second)[None, :] - np.arange(first)[:, None]
        above = True if self.low is None else apart >= self.low
        below = True if self.high is None else apart <= self.high
        return np.ones(apart.shape, bool) & above & below

    def terms(self, first: str, second: str) -> dict[str, tuple[list[str], list[str]]]:
        """For each of the two loops: its least values, and the ends of its range, in terms of the other."""
        low, high = self.low, self.high
        return {
            second: (
                [] if low is None else [f"{first} + {low}"],
                [] if high is None else [f"{first} + {high + 1}"],
            ),
            first: (
                [] if high is None else [f"{second} - {high}"],
                [] if low is None else [f"{second} - {low} + 1"],
            ),
        }


FREE = Bound()


@dataclass(frozen=True)
class Triangular:
    """`C[i, j] += A[i, k] * B[k, j]` where the bounds of (i, j), (i, k) and (j, k) hold.

    `order` has the loops from outside in. `transposed` names the arrays whose indices are exchanged; `first` is what is
    done to C where the bound of (i, j) holds: `zeroed`, `scaled` or `kept`. A's rows serve as B's columns if `same`.
    Of the rows and columns of C only each `apart`-th is stored.
    """

    extents: tuple[int, int, int]
    bounds: tuple[Bound, Bound, Bound]
    order: str = "ijk"
    transposed: str = ""
    first: str = "kept"
    same: bool = False
    offset: int = 0
    dtype: DType = f64
    apart: int = 1

    @property
    def sizes(self) -> dict[str, int]:
        extents = zip(LOOPS, self.extents, strict=True)
        return {f"N{loop}": extent for loop, extent in extents if loop != "j" or not self.same}

    @cached_property
    def nest(self) -> Nest:
        """The loops as written, with a symbolic size for each."""
        kind, bound = self.dtype.name, self.bounds
        shapes = {"C": ("i", "j"), "A": ("i", "k"), "B": ("k", "j")}
        places = {name: shape[::-1] if name in self.transposed else shape for name, shape in shapes.items()}
        times = {"C": self.apart, "A": 1, "B": 1}

        def indices(name: str, bases: Iterable[str]) -> str:
            return ", ".join(f"{times[name]}*({base} + {self.offset})" for base in bases)

        arguments = ", ".join(
            f"{name}: {kind}[{indices(name, (f'N{i}' for i in place))}]" for name, place in places.items()
        )
        read = {name: f"{name}[{indices(name, place)}]" for name, place in places.items()}
        right = read["A"].replace("i +", "j +") if self.same else read["B"]
        lines = [f"def triangular({arguments}, alpha: {kind}, beta: {kind}):"]
        pair = {("i", "j"): bound[0]}
        if self.first != "kept":
            change = "= 0" if self.first == "zeroed" else "*= beta"
            lines += [*_loops("ij", pair), f"{'    ' * 3}{read['C']} {change}"]
        pairs = {**pair, ("i", "k"): bound[1], ("j", "k"): bound[2]}
        lines += [*_loops(self.order, pairs), f"{'    ' * 4}{read['C']} += alpha * {read['A']} * {right}"]
        text = "\n".join(lines).replace("Nj", "Ni" if self.same else "Nj") + "\n"
        names = {name: poly.sizes(name) for name in self.sizes}
        return parse_text(Source(text, "triangular.py", 1), {**names, "f32": f32, "f64": f64})

    def check(self, kernel: Callable[..., Any], threads: int) -> None:
        """Assert that a kernel agrees with float64 sums, and reads and writes only what the loops do.

        What the loops do not read is NaN, and what they do not write PATTERN.
        """
        kind, o, apart = self.dtype.numpy_name, self.offset, self.apart
        rows, columns, steps = self.extents
        random = np.random.default_rng(rows + 100 * columns + 10_000 * steps)
        stored, left_read, right_read = self._masks()
        results = (apart * (rows + o), apart * (columns + o))
        whole = {"C": results, "A": (rows + o, steps + o), "B": (steps + o, columns + o)}
        given = {name: np.full(shape, np.nan, kind) for name, shape in whole.items()}
        part = {name: values[o:, o:] for name, values in given.items()}
        given["C"][...], part["C"] = PATTERN, given["C"][apart * o :: apart, apart * o :: apart]
        part["A"][...] = np.where(left_read, random.standard_normal((rows, steps)), np.nan)
        right = part["A"].T if self.same else part["B"]
        if not self.same:
            part["B"][...] = np.where(right_read, random.standard_normal((steps, columns)), np.nan)
        start = np.zeros((rows, columns)) if self.first == "zeroed" else random.standard_normal((rows, columns))
        part["C"][...] = np.where(stored, np.nan if self.first == "zeroed" else start, PATTERN)
        before = given["C"].copy()
        start = (SCALE if self.first == "scaled" else 1) * start.astype(kind).astype(np.float64)
        left, right = (
            np.where(mask, values.astype(np.float64), 0)
            for mask, values in ((left_read, part["A"]), (right_read, right))
        )
        expected = start + FACTOR * (left @ right)
        error = (steps + 4) * np.finfo(kind).eps * (abs(start) + abs(FACTOR) * (abs(left) @ abs(right)))
        passed = {name: np.ascontiguousarray(v.T) if name in self.transposed else v for name, v in given.items()}
        output, memory = guarded(passed["C"], PATTERN)
        kernel(output, passed["A"], passed["B"], FACTOR, SCALE, threads=threads)
        after = output.T if "C" in self.transposed else output
        result = after[apart * o :: apart, apart * o :: apart].copy()
        after[apart * o :: apart, apart * o :: apart][stored] = before[apart * o :: apart, apart * o :: apart][stored]
        np.testing.assert_array_equal(after, before)
        assert (abs(result - expected) <= error)[stored].all(), f"off by {np.max(abs(result - expected)[stored])}"
        edge = (memory.size - output.size) // 2
        assert (memory[:edge] == PATTERN).all()
        assert (memory[-edge:] == PATTERN).all()

    def _masks(self) -> tuple[Array, Array, Array]:
        """Which elements of C are stored, and which of A and B are multiplied, for the bounds of each pair of loops."""
        rows, columns, steps = self.extents
        ij, ik, jk = self.bounds
        left = ik.holds(rows, steps)
        right = jk.holds(columns, steps).T
        return ij.holds(rows, columns), left, right


def _loops(order: str, pairs: dict[tuple[str, str], Bound]) -> list[str]:
    """The heads of loops, each bounded by those around it."""
    lines = []
    for at, loop in enumerate(order):
        lows, ends = ["0"], [f"N{loop}"]
        for pair, bound in pairs.items():
            if loop in pair and set(pair) <= set(order[: at + 1]):
                low, end = bound.terms(*pair)[loop]
                lows += low
                ends += end
        low, end = (
            f"{name}({', '.join(terms)})" if terms[1:] else terms[0] for name, terms in (("max", lows), ("min", ends))
        )
        lines.append(f"{'    ' * (at + 1)}for {loop} in range({low}, {end}):")
    return lines


@st.composite
def bounds(draw: st.DrawFn) -> Bound:
    """A triangle below or above a diagonal, with it or without, or a band around it."""
    low, high = draw(st.integers(-9, 9)), draw(st.integers(0, 40))
    return draw(st.sampled_from([Bound(low=low), Bound(high=low), Bound(low=0), Bound(high=0), Bound(low, low + high)]))


@st.composite
def triangular(draw: st.DrawFn, kinds: str) -> Triangular:
    """A product with one of the bounds in `kinds`, such as `ij ik jk ij+ik`, at sizes around those of tiles."""
    found = {kind: draw(bounds()) for kind in draw(st.sampled_from(kinds.split())).split("+")}
    length = st.one_of(st.integers(1, 40), st.sampled_from([47, 48, 49, 64, 65, 96, 97, 131]))
    rows, columns, steps = draw(length), draw(length), draw(length)
    same = draw(st.booleans()) and not {"ik", "jk"} & set(found)
    return Triangular(
        (rows, rows if same else columns, steps),
        (found.get("ij", FREE), found.get("ik", FREE), found.get("jk", FREE)),
        draw(st.sampled_from(["ijk", "ikj", "kij", "jik"])),
        "".join(sorted(draw(st.sets(st.sampled_from("CAB"))))),
        draw(st.sampled_from(["kept", "scaled", "zeroed"])),
        same,
        draw(st.sampled_from([0, 0, 3])),
        draw(st.sampled_from([f32, f64])),
        draw(st.sampled_from([1, 1, 2])),
    )
