"""Copies that plain statements read: kernels with dense boxes against the loops as written; the text of refusals."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from shared_nests import jacobi, product, transpose

import poly
from poly import f32, f64

M, N, K, A_box = poly.sizes("M N K A_box")
Array = np.ndarray[Any, Any]
Steps = Callable[[poly.Schedule], poly.Schedule]


@poly.nest
def lower(L: f64[N, N], x: f64[N], y: f64[N]):
    for i in range(N):
        y[i] = 0.0
        for j in range(i + 1):
            y[i] += L[i, j] * x[j]


@poly.nest
def strided(x: f64[3 * N + 1], y: f64[N], z: f64[N]):
    for i in range(N):
        y[i] = x[3 * i] + x[3 * i + 1]
    for j in range(N):
        z[j] = y[j] * x[2 * j]


@poly.nest
def taken(A: f64[A_box + N], y: f64[N]):
    for i in range(N):
        y[i] = A[i + A_box]


@poly.nest
def product_and_sums(A: f32[M, K], B: f32[K, N], C: f32[M, N], s: f32[N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
    for p in range(N):
        s[p] = 0.0
        for q in range(K):
            s[p] += B[q, p]


@poly.nest
def two_readers(A: f64[M, N], B: f64[N, M], s: f64[N]):
    for j in range(N):
        s[j] = 0.0
        for i in range(M):
            s[j] += A[i, j]
        for i in range(M):
            B[j, i] = s[j] * A[i, j]


SIZES = [{"M": m, "N": n, "K": k} for m, n, k in ((0, 0, 0), (1, 1, 1), (5, 7, 3), (17, 33, 9), (40, 23, 30))]


def arrays(nest: poly.Nest, sizes: dict[str, int]) -> list[Array]:
    """Random values; NaN in what the nest assigns before it reads it."""
    rng = np.random.default_rng(1)
    made = []
    for array in nest.arguments:
        assigned = next((s for s in nest.statements if s.target.array == array.name), None)
        values = rng.random(tuple(extent.evaluate(sizes) for extent in array.shape))
        made.append((values * np.nan if assigned and assigned.op == "=" else values).astype(array.dtype.numpy_name))
    return made


def check(schedule: poly.Schedule, sizes: Iterable[dict[str, int]], threads: int = 2) -> None:
    """The kernel computes what the loops as written compute, and changes nothing else."""
    kernel = poly.compile(schedule.nest, schedule=schedule, threads=threads)
    for each in sizes:
        ours, theirs = arrays(schedule.nest, each), arrays(schedule.nest, each)
        schedule.nest.reference(*theirs)
        kernel(*ours)
        for our, their in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(our, their, rtol=1e-5 if our.dtype == np.float32 else 1e-12)


def apart(s: poly.Schedule) -> poly.Schedule:
    """The matrix product's own loops, `i_2 j_2 k`."""
    return s.distribute("j").distribute("i")


def blocks(s: poly.Schedule) -> poly.Schedule:
    """The product in blocks of rows and columns."""
    return apart(s).tile(i_2=8, j_2=16)


SCHEDULES: dict[str, tuple[poly.Nest, Steps]] = {
    "tiles": (product, lambda s: apart(s).tile(i_2=8, j_2=16, k=4).pack("A", at="k_tile").pack("B", at="k_tile")),
    "levels": (product, lambda s: apart(s).tile(i_2=8, j_2=16, k=4).pack("B").pack("A", at="i_2_tile")),
    "shared": (product, lambda s: blocks(s).pack("B", at="j_2_tile").pack("A").parallel("i_2_tile")),
    "private": (product, lambda s: blocks(s).parallel("i_2_tile").pack("B", at="j_2_tile").pack("A", at="i_2_tile")),
    "as written": (product, lambda s: s.pack("A", at="i").pack("B", at="j")),
    "one element": (product, lambda s: s.pack("A", at="k").pack("B", at="k")),
    "whole": (product, lambda s: s.pack("A").pack("B")),
    "vectors": (product, lambda s: apart(s).order("i_2 k j_2").split(j_2=32).pack("B", at="k").vectorize("j_2")),
    "transposed": (transpose, lambda s: s.tile(j=8, i=16).pack("A", at="i_tile")),
    "transposed, parallel": (transpose, lambda s: s.tile(j=8, i=16).parallel("j_tile").pack("A", at="i_tile")),
    "transposed, flat": (transpose, lambda s: s.pack("A", at="j").unroll(i=4)),
    "rows": (jacobi, lambda s: s.split(i=16).pack("A", at="i_tile")),
    "rows, parallel": (jacobi, lambda s: s.split(i=16).parallel("i_tile").pack("A", at="i_tile").vectorize("j")),
    "halo": (jacobi, lambda s: s.tile(i=16, j=8).pack("A", at="j_tile")),
    "nested": (jacobi, lambda s: s.tile(i=16, j=8).pack("A").pack("A", at="i_tile").pack("A", at="j_tile")),
    "outside in": (jacobi, lambda s: s.tile(i=9, j=8).pack("A", at="j_tile").parallel("i_tile").pack("A", at="i_tile")),
    "backwards": (jacobi, lambda s: s.tile(i=16, j=8).reverse("i_tile").reverse("j").pack("A", at="j_tile")),
    "triangle": (lower, lambda s: s.split(i=8).pack("L", at="i_tile").pack("x", at="i_tile")),
    "triangle's rows": (lower, lambda s: s.pack("L", at="i").pack("x", at="i")),
    "triangle's tiles": (lower, lambda s: s.distribute("i").tile(i_2=8, j=4).pack("L", at="j_tile").pack("x", at="j")),
    "strided": (strided, lambda s: s.split(i=4).pack("x", at="i_tile")),
    "strided, two loops": (strided, lambda s: s.pack("x")),
    "two readers": (two_readers, lambda s: s.pack("A", at="j")),
    "one of two readers": (two_readers, lambda s: s.pack("A", at="j", statement="S2")),
}
"""Nests with schedules."""


@pytest.mark.parametrize("name", SCHEDULES)
def test_any_size(name: str) -> None:
    nest, steps = SCHEDULES[name]
    check(steps(poly.schedule(nest)), [{size: values[size] for size in nest.sizes} for values in SIZES])


@pytest.mark.parametrize("name", SCHEDULES)
def test_known_sizes(name: str) -> None:
    nest, steps = SCHEDULES[name]
    fixed = nest.with_sizes({size: SIZES[-2][size] for size in nest.sizes})
    check(steps(poly.schedule(fixed)), [{}])


@pytest.mark.parametrize("name", ["tiles", "halo", "nested", "triangle"])
def test_empty_arrays(name: str) -> None:
    nest, steps = SCHEDULES[name]
    check(steps(poly.schedule(nest.with_sizes(dict.fromkeys(nest.sizes, 0)))), [{}])


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_values(name: str) -> None:
    nest, steps = SCHEDULES[name]
    schedule = steps(poly.schedule(nest))
    assert eval(repr(schedule), {"schedule": poly.schedule, nest.name: nest}) == schedule
    assert poly.Schedule.from_json(nest, schedule.to_json()) == schedule
    assert str(schedule).count("# pack") == sum(step.name == "pack" for step in schedule.steps)


def test_loops_show_where_copies_are_made() -> None:
    schedule = poly.schedule(jacobi).split(i=16).pack("A", at="i_tile")
    assert (
        str(schedule)
        == """\
for i_tile in range((M + 14) // 16):
    # pack A
    for i in range(max(1, 16*i_tile), min(M - 1, 16*i_tile + 16)):
        for j in range(1, N - 1):
            B[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])"""
    )


def test_the_copy_is_a_loop_nest_of_its_own() -> None:
    made = SCHEDULES["transposed"][1](poly.schedule(transpose))
    source = poly.compile(transpose, target="c:portable", schedule=made).source
    copy = """\
for (int64_t A_0 = 16*i_tile; A_0 < imin(M, 16*i_tile + 16); A_0 += 1) {
    POLY_SIMD
    for (int64_t A_1 = 8*j_tile; A_1 < imin(N, 8*j_tile + 8); A_1 += 1) {
        A_box[8*A_0 - 128*i_tile + A_1 - 8*j_tile] = A[A_0*N + A_1];
    }
}
"""
    (indent,) = re.findall(r"^( *)for \(int64_t A_0", source, re.MULTILINE)
    assert textwrap.indent(copy, indent) in source


def test_boxes_are_as_large_as_the_footprint() -> None:
    rows = poly.compile(jacobi, schedule=poly.schedule(jacobi).split(i=16).pack("A", at="i_tile"), threads=1)
    assert rows.workspace(M=1000, N=800) == 18 * 800 * 8
    tiles = poly.compile(jacobi, schedule=poly.schedule(jacobi).tile(i=16, j=6).pack("A", at="j_tile"), threads=1)
    assert tiles.workspace(M=1000, N=800) == 18 * 8 * 8


def test_threads_have_boxes_of_their_own() -> None:
    nest, steps = SCHEDULES["transposed, parallel"]
    kernel = poly.compile(nest, schedule=steps(poly.schedule(nest)))
    assert kernel.workspace(threads=3, M=100, N=100) == 3 * 16 * 8 * 8
    nest, steps = SCHEDULES["whole"]
    kernel = poly.compile(nest, schedule=steps(poly.schedule(nest)).parallel("i"))
    assert kernel.workspace(threads=3, M=16, N=32, K=48) == 48 * (16 + 32) * 4


def test_names_that_are_taken() -> None:
    check(poly.schedule(taken).split(i=4).pack("A", at="i_tile"), [{"N": 11, "A_box": 5}])


def tiles(s: poly.Schedule) -> poly.Schedule:
    """The matrix product in a microkernel's tiles."""
    return apart(s).tile(i_2=6, j_2=8)


def deep(s: poly.Schedule) -> poly.Schedule:
    """The matrix product in blocks of the reduction."""
    return apart(s).split(k=7).order("k_tile i_2 j_2 k")


def panels(s: poly.Schedule) -> poly.Schedule:
    """The microkernel in place of the tiles."""
    return tiles(s).microkernel("gemm_portable_6x8")


@pytest.mark.parametrize(
    "steps",
    [
        lambda s: panels(s).pack("A", at="i_2_tile").pack("B"),
        lambda s: deep(s).tile(i_2=6, j_2=8).microkernel("gemm_portable_6x8").pack("B", at="k_tile"),
        lambda s: tiles(s).pack("B", at="j_2_tile").microkernel("gemm_portable_6x8"),
    ],
)
def test_panels_for_microkernels(steps: Steps) -> None:
    schedule = steps(poly.schedule(product))
    kernel = poly.compile(product, schedule=schedule, target="c:portable", threads=2)
    assert "pack_f32_portable(" in kernel.source
    for sizes in SIZES:
        ours, theirs = arrays(product, sizes), arrays(product, sizes)
        product.reference(*theirs)
        kernel(*ours)
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-5)


def test_a_panel_for_one_statement_and_a_box_for_another() -> None:
    tiled = poly.schedule(product_and_sums).tile(i=6, j=8).microkernel("gemm_portable_6x8")
    schedule = tiled.pack("B", at="i_tile").split(p=4).pack("B", at="p_tile")
    kernel = poly.compile(product_and_sums, schedule=schedule, target="c:portable")
    assert "B_panels" in kernel.source and "B_box" in kernel.source
    for sizes in SIZES:
        ours, theirs = arrays(product_and_sums, sizes), arrays(product_and_sums, sizes)
        product_and_sums.reference(*theirs)
        kernel(*ours)
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-5)
        np.testing.assert_allclose(ours[3], theirs[3], rtol=1e-5)


@pytest.mark.parametrize("sizes", [{"M": 1, "N": 40}, {"M": 3, "N": 40}, {"M": 40, "N": 1}], ids=str)
@pytest.mark.parametrize("known", [True, False])
def test_copies_below_parallel_loops_in_each_other_are_those_of_the_reading_thread(
    sizes: dict[str, int], known: bool
) -> None:
    """The outer loop may run once and be gone from the C: the threads of the inner one then read its copy."""
    made = poly.schedule(transpose.with_sizes(sizes) if known else transpose).split(i=4)
    check(made.pack("A", at="i_tile").parallel("i_tile").pack("A", at="j").parallel("j"), [sizes])


def test_only_one_of_the_parallel_loops_around_each_other_needs_several_iterations() -> None:
    """Threads share the inner loop where the outer one runs once."""
    both = poly.schedule(transpose.with_sizes({"N": 1})).parallel("j").parallel("i")
    assert "omp parallel for" in poly.compile(both.nest, schedule=both, threads=2).source


def refusal(make: Callable[[], object]) -> str:
    """The text of the error."""
    with pytest.raises(poly.ScheduleError) as caught:
        make()
    return str(caught.value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: poly.schedule(product).pack("D"), "pack: product has no array D. Arrays: A, B, C."),
        (lambda: poly.schedule(product).pack("A", at="m"), "there is no loop m. Loops: i, j, k."),
        (lambda: poly.schedule(transpose).pack("B"), "pack(B): transpose does not read B."),
        (lambda: poly.schedule(two_readers).pack("A", at="j", statement="S0"), "pack(A): S0 does not read A."),
        (
            lambda: poly.schedule(product).pack("C", at="k"),
            "pack(C): the same loops write elements of C that S1 reads after that; their copy would be too old.",
        ),
        (
            lambda: poly.schedule(product).pack("A", role="right"),
            "pack(A, role=right): no contraction reads A as its right operand here. Remedy: leave role out.",
        ),
        (
            lambda: poly.compile(
                product, schedule=panels(poly.schedule(product)).pack("B").pack("B", at="j_2_tile"), target="c:portable"
            ),
            "pack(B): the microkernel of S1 reads a copy of B already. Remedy: pack it once.",
        ),
        (
            lambda: tiles(poly.schedule(product)).pack("B", at="i_2").microkernel("gemm_portable_6x8"),
            "microkernel(gemm_portable_6x8): a copy of B is made inside loop i_2, which the kernel takes. "
            "Remedy: pack(B) at a loop around i_2.",
        ),
    ],
)
def test_refusals(make: Callable[[], object], text: str) -> None:
    assert refusal(make) == text
