"""Schedules of contractions written by hand: tiles, copies, threads and edges of microkernels against float64 sums."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from headers import need_isa
from numpy.lib.stride_tricks import sliding_window_view
from shared_nests import matmul, nt

import poly
from microkernels.catalogue import find
from microkernels.isa import ISAS
from microkernels.kernel import OuterProduct
from poly import Nest, Schedule, f32, f64
from poly.schedules.steps import Pack, Step

Array = np.ndarray[Any, Any]
Steps = Callable[[Schedule, OuterProduct], Schedule]
Oracle = Callable[[Array, Array], Array]

M, N, K, H = poly.sizes("M N K H")
F, P, Q, C, R, S = poly.sizes("F P Q C R S")


@poly.nest
def tn(A: f32[K, M], B: f32[K, N], C: f32[M, N], alpha: f32):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += alpha * A[k, i] * B[k, j]


@poly.nest
def tt(A: f64[K, M], B: f64[N, K], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] -= A[k, i] * B[j, k]


@poly.nest
def transposed_result(A: f32[M, K], B: f32[K, N], C: f32[N, M]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[j, i] += A[i, k] * B[k, j]


@poly.nest
def batched(A: f32[H, M, K], B: f32[H, K, N], C: f32[H, M, N]):
    for h in range(H):
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[h, i, j] += A[h, i, k] * B[h, k, j]


@poly.nest
def twice(A: f32[M, K], B: f32[K, N], C: f32[M, N], D: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
    for p in range(M):
        for q in range(N):
            for r in range(K):
                D[p, q] += 2.0 * A[p, r] * B[r, q]


@poly.nest
def nchw(A: f32[H, C, P + R - 1, Q + S - 1], W: f32[F, C, R, S], Y: f32[H, F, P, Q]):
    for h in range(H):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    for c in range(C):
                        for r in range(R):
                            for s in range(S):
                                Y[h, f, p, q] += A[h, c, p + r, q + s] * W[f, c, r, s]


@poly.nest
def nhwc(A: f32[H, P + R - 1, Q + S - 1, C], W: f32[R, S, C, F], Y: f32[H, P, Q, F]):
    for h in range(H):
        for p in range(P):
            for q in range(Q):
                for f in range(F):
                    for r in range(R):
                        for s in range(S):
                            for c in range(C):
                                Y[h, p, q, f] += A[h, p + r, q + s, c] * W[r, s, c, f]


def product(text: str) -> Oracle:
    return lambda left, right: np.einsum(text, left, right)


def convolution(text: str, height: int) -> Oracle:
    """A convolution; its image's rows are dimension `height`, the filter's are the letters r and s in `text`."""

    def run(image: Array, weights: Array) -> Array:
        shape = tuple(weights.shape[text.split(",")[1].split("->")[0].index(letter)] for letter in "rs")
        return np.einsum(text, sliding_window_view(image, shape, (height, height + 1)), weights)

    return run


ORACLES: dict[str, Oracle] = {
    "matmul": product("ik,kj->ij"),
    "nt": product("ik,jk->ij"),
    "tn": product("ki,kj->ij"),
    "tt": product("ki,jk->ij"),
    "transposed_result": product("ik,kj->ji"),
    "batched": product("hik,hkj->hij"),
    "nchw": convolution("hcpqrs,fcrs->hfpq", 2),
    "nhwc": convolution("hpqcrs,rscf->hpqf", 1),
}
FACTORS = {"tn": 0.5, "tt": -1.0}


def check(kernel: poly.Kernel, sizes: Mapping[str, int], oracle: Oracle, factor: float) -> None:
    """The result is as close to float64's as the length of the sums allows; NaN in what is assigned does no harm."""
    nest, rng = kernel.nest, np.random.default_rng(0)
    assigned = any(s.op == "=" for s in nest.statements)
    arrays = [array for array in nest.arguments if array.shape]
    dtype = arrays[0].dtype.numpy_name
    shapes = [tuple(extent.evaluate(sizes) for extent in array.shape) for array in arrays]
    left, right, start = ((rng.random(shape) - 0.25).astype(dtype) for shape in shapes)
    output = np.full_like(start, np.nan) if assigned else start.copy()
    kernel(left, right, output, *([factor] if len(nest.arguments) > 3 else []))
    wide = [values.astype(np.float64) for values in (left, right)]
    before = 0.0 if assigned else start.astype(np.float64)
    exact = before + factor * oracle(*wide)
    length = oracle(*map(np.ones_like, wide)).max(initial=0)
    bound = (length + 2) * np.finfo(dtype).eps * (np.abs(before) + oracle(*map(np.abs, wide)))
    assert output.shape == exact.shape
    assert (np.abs(output - exact) <= bound).all(), dict(sizes)


def tiled(s: Schedule, kernel: OuterProduct, rows: str, columns: str, order: str, *copies: Step) -> Schedule:
    """The kernel on tiles of two loops; `order` is that of all loops, `copies` are those that it can't do without."""
    return s.split(**{rows: kernel.rows, columns: kernel.columns}).order(order).apply(copies).microkernel(kernel.name)


def in_place(s: Schedule, kernel: OuterProduct, *copies: Step) -> Schedule:
    return tiled(s, kernel, "i", "j", "i_tile j_tile i j k", *copies)


def five_loops(s: Schedule, kernel: OuterProduct, *copies: Step) -> Schedule:
    """Blocks of columns, of the reduction and of rows, as in BLIS."""
    blocks = s.split(j=2 * kernel.columns).split(i=2 * kernel.rows).split(k=4)
    return tiled(blocks, kernel, "i", "j", "j_tile k_tile i_tile j_tile2 i_tile2 i j k", *copies)


def planes(s: Schedule, kernel: OuterProduct) -> Schedule:
    return tiled(s, kernel, "i", "j", "h i_tile j_tile i j k")


def images(s: Schedule, kernel: OuterProduct) -> Schedule:
    """Channel-first: rows are filters, columns the pixels of an image's row."""
    return tiled(s, kernel, "f", "q", "h p f_tile q_tile f q c r s")


def pixels(s: Schedule, kernel: OuterProduct) -> Schedule:
    """Channel-last: rows are the pixels of an image's row, columns filters."""
    return tiled(s, kernel, "q", "f", "h p f_tile q_tile q f r s c")


CASES: dict[str, tuple[Nest, str, Steps]] = {
    "nothing packed": (matmul, "gemm_avx512_6x64", in_place),
    "left packed": (matmul, "gemm_avx512_8x48", lambda s, k: in_place(s, k).pack("A", at="i_tile")),
    "right packed": (matmul, "gemm_avx512_14x32", lambda s, k: in_place(s, k).pack("B")),
    "both packed": (
        matmul,
        "gemm_avx512_6x64",
        lambda s, k: five_loops(s, k).pack("B", at="k_tile").pack("A", at="k_tile"),
    ),
    "threads share rows": (
        matmul,
        "gemm_avx512_8x48",
        lambda s, k: five_loops(s, k).pack("B", at="k_tile").pack("A", at="i_tile").parallel("i_tile"),
    ),
    "threads share columns": (
        matmul,
        "gemm_avx512_28x16",
        lambda s, k: five_loops(s, k).parallel("j_tile").pack("A").pack("B", at="k_tile"),
    ),
    "smaller tiles than the kernel's": (
        matmul,
        "gemm_avx512_14x32",
        lambda s, k: s.tile(i=5, j=19).order("i_tile j_tile i j k").microkernel(k.name).pack("A"),
    ),
    "reduction backwards": (
        matmul,
        "gemm_avx512_6x64",
        lambda s, k: in_place(s.reverse("k"), k).pack("B", at="j_tile"),
    ),
    "left, avx2": (matmul, "gemm_avx2_6x16", lambda s, k: in_place(s, k).pack("A")),
    "both, avx2": (
        matmul,
        "gemm_avx2_4x24",
        lambda s, k: five_loops(s, k).pack("B", at="j_tile2").pack("A", at="k_tile"),
    ),
    "nothing, portable": (matmul, "gemm_portable_6x8", in_place),
    "both, portable": (matmul, "gemm_portable_6x8", lambda s, k: five_loops(s, k).pack("A").pack("B", at="k_tile")),
    "nt": (nt, "gemm_avx512_6x32", lambda s, k: in_place(s, k, Pack("B"))),
    "nt, avx2": (nt, "gemm_avx2_12x4", lambda s, k: five_loops(s, k, Pack("B", "k_tile")).pack("A", at="i_tile")),
    "tn": (tn, "gemm_avx512_14x32", lambda s, k: in_place(s, k).pack("A")),
    "tn in place": (tn, "gemm_avx512_6x64", in_place),
    "tt": (tt, "gemm_avx512_8x24", lambda s, k: five_loops(s, k, Pack("B", "k_tile"))),
    "tt, portable": (tt, "gemm_portable_6x4", lambda s, k: in_place(s, k, Pack("B", "j_tile")).pack("A")),
    "result transposed": (
        transposed_result,
        "gemm_avx512_6x64",
        lambda s, k: tiled(s, k, "j", "i", "i_tile j_tile j i k", Pack("A", "i_tile")),
    ),
    "batches": (batched, "gemm_avx512_6x64", lambda s, k: planes(s, k).pack("B", at="h").parallel("h")),
    "batches packed before": (batched, "gemm_avx2_6x16", lambda s, k: planes(s, k).pack("B").pack("A", at="i_tile")),
    "channels first": (nchw, "gemm_avx512_6x64", lambda s, k: images(s, k).pack("W")),
    "channels first, both": (nchw, "gemm_avx512_14x32", lambda s, k: images(s, k).pack("A", at="p").pack("W")),
    "channels last": (nhwc, "gemm_avx512_6x64", lambda s, k: pixels(s, k).pack("W").parallel("h")),
    "channels last, both": (nhwc, "gemm_avx2_6x16", lambda s, k: pixels(s, k).pack("A", at="p").pack("W", at="f_tile")),
}
"""Nests with a microkernel and a schedule."""


def compiled(name: str) -> tuple[poly.Kernel, OuterProduct]:
    """The case's kernel, with open sizes."""
    nest, kernel_name, steps = CASES[name]
    isa = ISAS[kernel_name.split("_")[1]]
    need_isa(isa)
    kernel = find(kernel_name, nest.arguments[0].dtype)
    schedule = steps(poly.schedule(nest), kernel)
    return poly.compile(nest, schedule=schedule, target=f"c:{isa.name}", threads=2), kernel


def edges(tile: int) -> tuple[int, ...]:
    """Extents around whole tiles."""
    return (1, tile - 1 or 1, tile, tile + 1, 2 * tile + 1)


def samples(nest: Nest, kernel: OuterProduct) -> Iterable[dict[str, int]]:
    """Sizes at the tiles' edges, in some of their combinations; the last ones leave nothing to do."""
    draw = random.Random(0)
    wide, high = edges(kernel.columns), edges(kernel.rows)
    known = {"K": (1, 3, 4, 9), "H": (1, 3), "C": (1, 3), "P": (1, 4), "R": (1, 3), "S": (1, 2)}
    role = {"M": high, "N": wide, "F": high, "Q": wide}
    if nest.name == "nhwc":
        role = {"F": wide, "Q": high}
    if nest.name == "transposed_result":
        role = {"M": wide, "N": high}
    values = {**known, **role}
    for _ in range(8):
        yield {size: draw.choice(values[size]) for size in nest.sizes}
    some = {size: values[size][1] for size in nest.sizes}
    for size in {"M", "N", "K", "H"} & set(nest.sizes):
        yield {**some, size: 0}


@pytest.mark.parametrize("name", CASES)
def test_every_edge(name: str) -> None:
    compiled_kernel, kernel = compiled(name)
    nest = compiled_kernel.nest
    for sizes in samples(nest, kernel):
        check(compiled_kernel, sizes, ORACLES[nest.name], FACTORS.get(nest.name, 1.0))


@pytest.mark.parametrize("name", ["nothing packed", "threads share rows", "tt, portable", "channels first, both"])
def test_known_sizes(name: str) -> None:
    nest, kernel_name, steps = CASES[name]
    kernel = find(kernel_name, nest.arguments[0].dtype)
    need_isa(kernel.isa)
    sizes = {"M": 13, "N": 70, "K": 9, "H": 2, "F": 15, "P": 3, "Q": 37, "C": 2, "R": 3, "S": 2}
    sizes = {size: sizes[size] for size in nest.sizes}
    fixed = nest.with_sizes(sizes)
    made = poly.compile(fixed, schedule=steps(poly.schedule(fixed), kernel), target=f"c:{kernel.isa.name}", threads=2)
    check(made, sizes, ORACLES[nest.name], FACTORS.get(nest.name, 1.0))


def flat_columns(s: Schedule) -> Schedule:
    """Columns that lie in runs of three."""
    apart = s.distribute("d").order("a_2 b_2 d_2 c_2 k").flatten("d_2", "c_2").split(b_2=6, d_2_c_2=8)
    return apart.order("a_2 d_2_c_2_tile b_2_tile b_2 d_2_c_2 k")


EINSUMS: dict[str, tuple[str, dict[str, int], Callable[[Schedule], Schedule]]] = {
    "zeroed before": (
        "mk,kn->mn",
        {},
        lambda s: s.distribute("m").tile(m_2=6, n_2=8).microkernel("gemm_portable_6x8", statement="S1"),
    ),
    "zeroed by the kernel": (
        "mk,kn->mn",
        {},
        lambda s: (
            (s.distribute("m").split(k=4).split(m_2=6, n_2=8).order("k_tile m_2_tile n_2_tile m_2 n_2 k"))
            .microkernel("gemm_portable_6x8", initial="S0")
            .pack("B", at="k_tile")
            .pack("A", at="m_2_tile")
        ),
    ),
    "zeroed by the kernel, two levels": (
        "mk,kn->mn",
        {},
        lambda s: (
            (
                s.distribute("m")
                .split(k=6)
                .split(k=2)
                .split(m_2=6, n_2=8)
                .order("k_tile m_2_tile k_tile2 n_2_tile m_2 n_2 k")
            )
            .microkernel("gemm_portable_6x8", statement="S1", initial="S0")
            .pack("B", at="k_tile")
        ),
    ),
    "columns in runs": (
        "abk,kcd->dabc",
        {"d": 5, "c": 3},
        lambda s: flat_columns(s).pack("B", at="d_2_c_2_tile").microkernel("gemm_portable_6x8", initial="S0"),
    ),
    "columns in runs, both packed": (
        "abk,kcd->dabc",
        {"d": 5, "c": 3},
        lambda s: flat_columns(s).pack("B").microkernel("gemm_portable_6x8", initial="S0").pack("A", at="a_2"),
    ),
    "rows in runs": (
        "abk,kcd->dabc",
        {"b": 4, "d": 5, "c": 3},
        lambda s: (
            (
                s.distribute("d")
                .order("a_2 b_2 d_2 c_2 k")
                .flatten("a_2", "b_2")
                .flatten("d_2", "c_2")
                .split(a_2_b_2=6, d_2_c_2=8)
                .order("a_2_b_2_tile d_2_c_2_tile a_2_b_2 d_2_c_2 k")
            )
            .pack("B")
            .microkernel("gemm_portable_6x8", initial="S0")
            .pack("A", at="a_2_b_2_tile")
        ),
    ),
    "three loops of the reduction": (
        "aijk,kjib->ab",
        {},
        lambda s: (
            (s.distribute("a").split(a_2=6, b_2=8).order("a_2_tile b_2_tile a_2 b_2 i j k"))
            .microkernel("gemm_portable_6x8", initial="S0")
            .pack("A")
            .pack("B")
        ),
    ),
    "four loops of the reduction": (
        "aijkl,lkjib->ab",
        {},
        lambda s: (
            (s.distribute("a").split(a_2=6, b_2=8).order("l a_2_tile b_2_tile a_2 b_2 i j k"))
            .microkernel("gemm_portable_6x8", initial="S0")
            .pack("A", at="l")
            .pack("B")
        ),
    ),
    "columns apart": (
        "kb,ak->ba",
        {},
        lambda s: (
            (s.distribute("b").split(a_2=8, b_2=6).order("a_2_tile b_2_tile b_2 a_2 k"))
            .pack("B", at="a_2_tile")
            .microkernel("gemm_portable_6x8", initial="S0")
        ),
    ),
}
"""Two-operand sums with a schedule for the portable microkernel."""


@pytest.mark.parametrize("name", EINSUMS)
def test_einsums(name: str) -> None:
    text, fixed, steps = EINSUMS[name]
    nest = poly.einsum(text, dtype=f32, **fixed)
    made = poly.compile(nest, schedule=steps(poly.schedule(nest)), target="c:portable", threads=2)
    draw = random.Random(0)
    for extents in ((1, 2), (5, 6, 7, 8, 9), (1, 3, 17), (0, 4)):
        for _ in range(4):
            check(made, {size: draw.choice(extents) for size in nest.sizes}, product(text), 1.0)


def refusal(make: Callable[[], object]) -> str:
    """The text of the error."""
    with pytest.raises(poly.ScheduleError) as caught:
        make()
    return str(caught.value)


PORTABLE = find("gemm_portable_6x8", f32)


def test_operands_that_a_kernel_cannot_read_are_refused() -> None:
    assert refusal(lambda: in_place(poly.schedule(nt), find("gemm_portable_6x4", f64))) == (
        "microkernel(gemm_portable_6x4): B is not contiguous along j. Remedy: pack(B) before."
    )
    known = nchw.with_sizes({"C": 2, "R": 3, "S": 3})
    flat = poly.schedule(known).order("h p f q c r s").flatten("c", "r", "s")
    order = "h p f_tile q_tile f q c_r_s"
    assert refusal(lambda: tiled(flat, PORTABLE, "f", "q", order, Pack("A", "p"))) == (
        "microkernel(gemm_portable_6x8): A has no constant stride along c_r_s. "
        "Remedy: don't flatten the loops of the reduction."
    )


def test_copies_of_one_array_for_two_kernels() -> None:
    schedule = poly.schedule(twice).split(i=6, j=8, p=6, q=8).order("i_tile j_tile i j k").order("p_tile q_tile p q r")
    kernels = schedule.microkernel(PORTABLE.name).microkernel(PORTABLE.name)
    schedule = kernels.pack("B", at="j_tile").pack("B", at="p_tile")
    made = poly.compile(twice, schedule=schedule, target="c:portable")
    left, right = np.random.default_rng(0).random((2, 9, 9), np.float32)
    results = np.zeros((2, 9, 9), np.float32)
    made(left, right, *results)
    np.testing.assert_allclose(results, [left @ right, 2.0 * left @ right], rtol=1e-6)


def test_a_given_schedule_is_followed_for_strided_arrays_too() -> None:
    schedule = in_place(poly.schedule(matmul), find("gemm_portable_4x8", f32))
    kernel = poly.compile(matmul, schedule=schedule, target="c:portable")
    wide = np.arange(13 * 20, dtype=np.float32).reshape(13, 20) % 7
    right, out = np.ones((9, 11), np.float32), np.zeros((13, 11), np.float32)
    kernel(wide[:, :9], right, out)
    np.testing.assert_array_equal(out, wide[:, :9] @ right)
    assert kernel.strided.schedule.steps == kernel.schedule.steps
    assert "A_ld" in kernel.strided.source


def test_an_array_that_moves_along_a_loop_of_the_other_operand_is_refused() -> None:
    """A skewed loop around a tile says A[i - j, k]: the kernel reads each row at one place for all columns."""
    skewed = poly.schedule(matmul.with_sizes({"M": 2, "N": 2, "K": 1})).order("i k j").skew("i", by="j")
    for made in (skewed, skewed.pack("A", at="i"), skewed.pack("B", at="i")):
        assert refusal(lambda s=made: s.microkernel("gemm_portable_6x8")) == (
            "microkernel(gemm_portable_6x8): in a tile, A is accessed elsewhere for each iteration of j, "
            "since a loop around is skewed by it. Remedy: leave out the skew, or skew after tiling."
        )


def test_a_kernel_over_nothing_is_left_out() -> None:
    """No loop of an empty nest has a least or a greatest value."""

    @poly.nest
    def shifted(B: f32[Q, M], A: f32[K + Q, P], D: f32[M, P, K]):
        for p in range(M):
            for k in range(K):
                for q in range(Q):
                    for i in range(P):
                        D[p, i, k] += B[q, p] * A[q + k, i]

    empty = shifted.with_sizes({"P": 5, "K": 0})
    made = poly.schedule(empty).skew("k", by="i").microkernel("gemm_portable_6x8")
    kernel = poly.compile(empty, schedule=made, target="c:portable", records=False)
    kernel(np.ones((6, 2), np.float32), np.ones((6, 5), np.float32), np.ones((2, 5, 0), np.float32))
