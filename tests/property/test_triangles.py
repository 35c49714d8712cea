"""Contractions over triangles and bands: microkernels compute boxes of them, and what is outside stays untouched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from contractions import PATTERN, guarded
from headers import need_isa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machines import LARGE
from triangular import FREE, Bound, Triangular, triangular

import poly
from microkernels.isa import ISAS
from poly import f64
from poly.analysis.contraction import recognise
from poly.autoschedule.default import default_schedule
from poly.autoschedule.rules.attempt import attempt
from poly.errors import ScheduleError
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.tree import Micro, bands, walk
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Pack, Tensorize

M, N = poly.sizes("M N")
ALPHA, BETA = 1.5, 1.2


@poly.nest
def symmetric(alpha: f64, beta: f64, C: f64[M, N], A: f64[M, M], B: f64[M, N]) -> None:
    for i in range(M):
        for j in range(N):
            mirrored = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                mirrored += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * mirrored


LOWER, UPPER, STRICT = Bound(high=0), Bound(low=0), Bound(high=-1)
SYRK = Triangular((97, 97, 64), (LOWER, FREE, FREE), "ikj", first="scaled", same=True)
COVARIANCE = Triangular((131, 131, 47), (UPPER, FREE, FREE), transposed="A", first="zeroed", same=True)
TRIANGLE_TIMES_MATRIX = Triangular((40, 81, 40), (FREE, LOWER, FREE))
APART = Triangular((97, 97, 64), (STRICT, FREE, FREE), first="scaled")
SUMS_UP_TO = Triangular((97, 81, 97), (FREE, LOWER, FREE), first="zeroed")
SUMS_FROM = Triangular((97, 81, 97), (FREE, UPPER, FREE), first="scaled")
SUMS_ACROSS = Triangular((50, 131, 131), (FREE, FREE, STRICT), first="zeroed")
STRIDED = Triangular((70, 70, 50), (LOWER, FREE, FREE), same=True, apart=2)


@settings(max_examples=8)
@example(SYRK, True, 2)
@example(COVARIANCE, False, 1)
@example(TRIANGLE_TIMES_MATRIX, True, 1)
@example(STRIDED, True, 1)
@example(SUMS_FROM, True, 2)
@given(triangular("ij ij ik jk ij+ik ij+ik+jk"), st.booleans(), st.sampled_from([1, 2]))
def test_any_part(product: Triangular, known: bool, threads: int) -> None:
    kernel = poly.compile(product.nest, sizes=product.sizes if known else {}, threads=threads)
    product.check(kernel, threads)


@pytest.mark.parametrize(("target", "known"), [("c:avx512", False), ("c:avx2", True), ("c:portable", True)])
@pytest.mark.parametrize(
    "product",
    [SYRK, COVARIANCE, APART, SUMS_UP_TO, SUMS_FROM, SUMS_ACROSS, STRIDED],
    ids=["syrk", "covariance", "apart", "sums up to", "sums from", "sums across", "strided"],
)
def test_they_go_to_a_microkernel(product: Triangular, target: str, known: bool) -> None:
    need_isa(target.removeprefix("c:"))
    kernel = poly.compile(product.nest, sizes=product.sizes if known else {}, target=target, threads=1)
    assert sum(isinstance(node, Micro) for node in walk(kernel.schedule.tree)) == 1
    product.check(kernel, 1)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 40), (65, 97)])
def test_a_symmetric_matrix_of_which_one_triangle_is_stored(rows: int, columns: int) -> None:
    random = np.random.default_rng(rows)
    stored, right, out = (random.standard_normal(shape) for shape in ((rows, rows), (rows, columns), (rows, columns)))
    whole = np.tril(stored) + np.tril(stored, -1).T
    expected = BETA * out + ALPHA * whole @ right
    stored[np.triu_indices(rows, 1)] = np.nan
    kernel = poly.compile(symmetric, M=rows, N=columns, threads=1)
    assert sum(isinstance(node, Micro) for node in walk(kernel.schedule.tree)) == (2 if rows == 65 else 0)
    kernel(ALPHA, BETA, out, stored, right)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14 * rows * 8)


@dataclass(frozen=True)
class InPlace:
    """`B[i, j] += A[i, k] * B[k, j]` for k > i, or `B[i, j] += B[i, k] * A[k, j]` for k > j, then B times a number.

    The steps of the reduction start `behind` the diagonal. `order` has the loops from outside in.
    """

    rows: int
    columns: int
    on_left: bool
    transposed: bool
    order: str
    behind: int = 1
    scaled: bool = True

    @property
    def size(self) -> int:
        return self.rows if self.on_left else self.columns

    @property
    def nest(self) -> poly.Nest:
        own, size = ("i", "M") if self.on_left else ("j", "N")
        ranges = {"i": "M", "j": "N", "k": size}
        if self.order.index("k") < self.order.index(own):
            ranges[own] = f"k - {self.behind - 1}"
        else:
            ranges["k"] = f"{own} + {self.behind}, {size}"
        first, second = ("k", own) if self.transposed else (own, "k")
        factors = [f"A[{first}, {second}]", "B[k, j]" if self.on_left else "B[i, k]"]
        lines = [f"def in_place(A: f64[{size}, {size}], B: f64[M, N], alpha: f64):"]
        lines += [f"{'    ' * (at + 1)}for {loop} in range({ranges[loop]}):" for at, loop in enumerate(self.order)]
        lines += [f"{'    ' * 4}B[i, j] += {' * '.join(factors)}"]
        if self.scaled:
            lines += ["    for i in range(M):", "        for j in range(N):", "            B[i, j] *= alpha"]
        return parse_text(Source("\n".join(lines) + "\n", "in_place.py", 1), {"M": M, "N": N, "f64": f64})

    def check(self, kernel: Callable[..., Any], threads: int) -> None:
        random = np.random.default_rng(self.rows + 100 * self.columns)
        triangle, result = (random.standard_normal(shape) for shape in ((self.size,) * 2, (self.rows, self.columns)))
        upper = np.triu(triangle, self.behind)
        factor = upper if self.on_left else upper.T
        triangle[np.tri(self.size, k=self.behind - 1, dtype=bool)] = np.nan
        scale = ALPHA if self.scaled else 1
        left, right = (factor, result) if self.on_left else (result, factor)
        expected = scale * (result + left @ right)
        error = scale * (self.size + 4) * np.finfo(np.float64).eps * (abs(result) + abs(left) @ abs(right))
        passed = triangle if not self.transposed else np.ascontiguousarray(triangle.T)
        output, memory = guarded(result, PATTERN)
        kernel(passed, output, ALPHA, threads=threads)
        assert (abs(output - expected) <= error).all()
        edge = (memory.size - output.size) // 2
        assert (memory[:edge] == PATTERN).all()
        assert (memory[-edge:] == PATTERN).all()


@st.composite
def in_place(draw: st.DrawFn) -> InPlace:
    length = st.one_of(st.integers(1, 40), st.sampled_from([47, 48, 49, 64, 65, 96, 97, 131]))
    order, behind = draw(st.sampled_from(["ijk", "ikj", "kij", "jik"])), draw(st.integers(1, 9))
    return InPlace(
        draw(length), draw(length), draw(st.booleans()), draw(st.booleans()), order, behind, draw(st.booleans())
    )


@dataclass(frozen=True)
class TwoProducts:
    """`C[i, j] += alpha * A[i, k] * B[k, j] ± D[i, k] * E[k, j]` for all i and j, or those of a triangle.

    D and E are A and B if `same`; `transposed` names the arrays whose indices are exchanged.
    """

    rows: int
    columns: int
    steps: int
    triangle: bool
    order: str
    transposed: str
    sign: str
    same: bool

    @property
    def sizes(self) -> dict[str, int]:
        return {"M": self.rows, "N": self.columns, "K": self.steps}

    @property
    def nest(self) -> poly.Nest:
        places = {"A": ("M", "K"), "B": ("K", "N"), "D": ("M", "K"), "E": ("K", "N")}
        names = ("A", "B", "D", "E") if not self.same else ("A", "B", "A", "B")
        own = {"M": "i", "N": "j", "K": "k"}
        shape = {name: place[::-1] if name in self.transposed else place for name, place in places.items()}
        arguments = ", ".join(f"{name}: f64[{', '.join(place)}]" for name, place in shape.items())
        read = [f"{name}[{', '.join(own[size] for size in shape[name])}]" for name in names]
        ranges = {"i": "M", "j": "min(i + 1, N)" if self.triangle else "N", "k": "K"}
        lines = [f"def products(C: f64[M, N], {arguments}, alpha: f64):"]
        lines += [f"{'    ' * (at + 1)}for {loop} in range({ranges[loop]}):" for at, loop in enumerate(self.order)]
        lines += [f"{'    ' * 4}C[i, j] += {read[0]} * alpha * {read[1]} {self.sign} {read[3]} * {read[2]}"]
        sizes = dict(zip("MNK", poly.sizes("M N K"), strict=True))
        return parse_text(Source("\n".join(lines) + "\n", "products.py", 1), {**sizes, "f64": f64})

    def check(self, kernel: Callable[..., Any], threads: int) -> None:
        random = np.random.default_rng(self.rows + 100 * self.columns + 10_000 * self.steps)
        shapes = {"A": (self.rows, self.steps), "B": (self.steps, self.columns)}
        one = {name: random.standard_normal(shape) for name, shape in shapes.items()}
        other = one if self.same else {name: random.standard_normal(shape) for name, shape in shapes.items()}
        stored = np.tri(self.rows, self.columns, dtype=bool) if self.triangle else np.True_
        before = random.standard_normal((self.rows, self.columns))
        sign = 1 if self.sign == "+" else -1
        change = ALPHA * (one["A"] @ one["B"]) + sign * (other["A"] @ other["B"])
        size = ALPHA * (abs(one["A"]) @ abs(one["B"])) + abs(other["A"]) @ abs(other["B"])
        error = (2 * self.steps + 4) * np.finfo(np.float64).eps * (abs(before) + size)
        given = (("A", one["A"]), ("B", one["B"]), ("D", other["A"]), ("E", other["B"]))
        passed = [np.ascontiguousarray(array.T) if name in self.transposed else array for name, array in given]
        output, memory = guarded(before.copy(), PATTERN)
        kernel(output, *passed, ALPHA, threads=threads)
        assert (abs(output - np.where(stored, before + change, before)) <= np.where(stored, error, 0)).all()
        edge = (memory.size - output.size) // 2
        assert (memory[:edge] == PATTERN).all()
        assert (memory[-edge:] == PATTERN).all()


@st.composite
def two_products(draw: st.DrawFn) -> TwoProducts:
    length = st.one_of(st.integers(1, 40), st.sampled_from([47, 48, 49, 64, 65, 96, 97, 131]))
    return TwoProducts(
        *(draw(length), draw(length), draw(length), draw(st.booleans())),
        draw(st.sampled_from(["ijk", "ikj", "kij"])),
        "".join(sorted(draw(st.sets(st.sampled_from("ABDE"))))),
        draw(st.sampled_from("+-")),
        draw(st.booleans()),
    )


SYR2K = TwoProducts(97, 97, 65, True, "ikj", "BE", "+", False)


@settings(max_examples=4)
@example(SYR2K, True, 2)
@given(two_products(), st.booleans(), st.sampled_from([1, 2]))
def test_any_sum_of_two_products(products: TwoProducts, known: bool, threads: int) -> None:
    sizes = products.sizes if known else {}
    products.check(poly.compile(products.nest, sizes=sizes, threads=threads), threads)


@pytest.mark.parametrize("target", ["c:avx512", "c:avx2", "c:portable"])
def test_a_sum_of_two_products_goes_to_two_microkernels(target: str) -> None:
    need_isa(target.removeprefix("c:"))
    kernel = poly.compile(SYR2K.nest, sizes=SYR2K.sizes, target=target, threads=1)
    assert sum(isinstance(node, Micro) for node in walk(kernel.schedule.tree)) == 2
    SYR2K.check(kernel, 1)


TRMM = InPlace(97, 65, on_left=True, transposed=True, order="ijk")
ON_THE_RIGHT = InPlace(65, 97, on_left=False, transposed=True, order="ikj", behind=3)


@settings(max_examples=6)
@example(TRMM, True, 2)
@example(ON_THE_RIGHT, False, 1)
@given(in_place(), st.booleans(), st.sampled_from([1, 2]))
def test_any_triangle_is_multiplied_in_place(product: InPlace, known: bool, threads: int) -> None:
    sizes = {"M": product.rows, "N": product.columns} if known else {}
    product.check(poly.compile(product.nest, sizes=sizes, threads=threads), threads)


@pytest.mark.parametrize("target", ["c:avx512", "c:avx2", "c:portable"])
@pytest.mark.parametrize("product", [TRMM, ON_THE_RIGHT], ids=["on the left", "on the right"])
def test_a_product_in_place_goes_to_a_microkernel(product: InPlace, target: str) -> None:
    need_isa(target.removeprefix("c:"))
    known = product is not TRMM or target != "c:avx512"
    nest = product.nest.with_sizes({"M": product.rows, "N": product.columns} if known else {})
    made = default_schedule(nest, Target.nominal(ISAS[target.removeprefix("c:")], LARGE, 1))
    kernel = poly.compile(nest, schedule=made, target=target, threads=1)
    assert sum(isinstance(node, Micro) for node in walk(kernel.schedule.tree)) == 1
    product.check(kernel, 1)


@pytest.mark.parametrize("target", ["c:avx512", "c:avx2", "c:portable"])
@pytest.mark.parametrize("product", [TRMM, ON_THE_RIGHT], ids=["on the left", "on the right"])
@pytest.mark.parametrize("packed", ["A", "B", "AB"])
def test_panels_of_a_triangle(product: InPlace, target: str, packed: str) -> None:
    """Copied before all loops, whatever the model says, where what is copied is not overwritten before it is read."""
    need_isa(target.removeprefix("c:"))
    nest = product.nest.with_sizes({"M": product.rows, "N": product.columns})
    isa = ISAS[target.removeprefix("c:")]
    steps = default_schedule(nest, Target.nominal(isa, LARGE, 1)).steps
    at = next(number for number, step in enumerate(steps) if isinstance(step, Tensorize))
    before = [step for step in steps[:at] if not isinstance(step, Pack)]
    copies = [Pack(array, None, steps[at].statement) for array in packed]
    made = attempt(schedule(nest), [*before, *copies, *steps[at:]])
    assert (made is not None) or "B" in packed
    if made is not None:
        product.check(poly.compile(nest, schedule=made, target=target, threads=1), 1)


def test_no_tile_replaces_what_another_has_yet_to_read() -> None:
    made = schedule(TRMM.nest).part("S0", where="i // 8 == k // 8", into="near").split(i=8, j=8)
    made = made.order("j_tile i_tile i j k")
    with pytest.raises(ScheduleError, match=r"distribute.* is illegal: near.* must run before S0"):
        made.distribute("i", last="near")
    with pytest.raises(ScheduleError, match=r"reverse.* is illegal"):
        made.distribute("i", last="S0").reverse("i_tile")


@dataclass(frozen=True)
class ByHand:
    """Register tiles of `rows`, steps cut into pieces of `depth` or not, and the order of the loops over tiles.

    The operands are copied inside so many of these loops; None for no copy.
    """

    rows: int
    depth: int | None
    order: tuple[str, ...]
    left: int | None
    right: int | None

    def made(self, nest: poly.Nest) -> Schedule:
        """The schedule; raises ScheduleError if a step is refused."""
        made, statement = schedule(nest), nest.statements[-1]
        found = recognise(nest, statement)
        assert found is not None
        last = [band.name for band in bands(made.tree)][-3:]
        row, column, step = (
            next(name for name in last if name[0] == loop) for (loop,) in (found.rows, found.columns, found.reduce)
        )
        columns = 64 // nest.array("C").dtype.size
        made = made.split(**{row: self.rows, column: columns})
        made = made.split(**{step: self.depth}) if self.depth else made
        loops = {"row": row, "column": column, "step": step}
        tiles = [f"{loops[name]}_tile" for name in self.order]
        made = made.order(" ".join([*tiles, row, column, step]))
        for role, inside, array in (("left", self.left, found.left.array), ("right", self.right, found.right.array)):
            if inside is not None:
                at = ([None, *tiles])[min(inside, len(tiles))]
                made = made.pack(array, at=at, role=role if found.left.array == found.right.array else None)
        return made.microkernel(f"gemm_avx2_{self.rows}x{columns}")


@st.composite
def by_hand(draw: st.DrawFn) -> ByHand:
    inside, depth = st.one_of(st.none(), st.integers(0, 3)), draw(st.sampled_from([None, 7, 32]))
    order = draw(st.permutations(["row", "column", *(["step"] if depth else [])]))
    return ByHand(draw(st.sampled_from([1, 4, 6])), depth, tuple(order), draw(inside), draw(inside))


@settings(max_examples=18)
@example(SYRK, ByHand(6, 32, ("step", "column", "row"), 1, 2), True)
@example(APART, ByHand(4, None, ("row", "column"), 1, 0), False)
@given(triangular("ij ij ik jk ij+jk"), by_hand(), st.booleans())
def test_any_tiles_and_copies(product: Triangular, choice: ByHand, known: bool) -> None:
    need_isa("avx2")
    try:
        made = choice.made(product.nest.with_sizes(product.sizes) if known else product.nest)
        kernel = poly.compile(made.nest, schedule=made, target="c:avx2")
    except ScheduleError as error:
        refused = (
            "not contiguous",
            "not a box",
            "different steps",
            "smaller blocks",
            "too complicated",
            "too much work",
        )
        assert any(text in str(error) for text in refused), error
        return
    product.check(kernel, 1)
